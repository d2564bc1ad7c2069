"""Reads the bytes of a trace step by step, so that an error knows its place and nothing blows up.

The envelope (five keys, events, lists of objects) is walked header by header; each object is first
measured, then decoded, then checked. A length is believed only once its bytes have been seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import msgpack
from msgpack.exceptions import FormatError, OutOfData, StackError

from steersman.trace.gvk import GVK
from steersman.trace.limits import (
    MAX_EVENTS,
    MAX_KIND_LENGTH,
    MAX_NAME_LENGTH,
    MAX_OBJECT_BYTES,
    MAX_OBJECTS,
    MAX_STRING_BYTES,
    MAX_TS,
    MAX_VALUES,
)
from steersman.trace.objects import ObjectError, check_object, describe, kind_of
from steersman.trace.podlife import PodLife
from steersman.trace.recording import VERSION, Trace, TraceError, TraceEvent
from steersman.trace.tracked import Tracked

_DAMAGED = "The file is damaged: copy it again, or export it again with `skctl export`"
_FOREIGN = "This is not what SimKube 2.x or Steersman writes: check the program that made the file"

# JSON has no binary data. Keys are checked by _unique, whose message is the better one.
_OPTIONS: dict[str, Any] = {
    "max_str_len": MAX_STRING_BYTES,
    "max_bin_len": 0,
    "max_ext_len": 0,
    "strict_map_key": False,
}

_Keys = dict[str, Callable[[str], Any]]


def decode(raw: bytes, where: str) -> Trace:
    """The trace in `raw`; TraceError, with `where` in its text, if it is not one."""
    _check_start(raw, where)
    return _Decoder(raw, where).trace()


def _check_start(raw: bytes, where: str) -> None:
    """Say what the file is, where its first byte shows that it is something else."""
    if not raw:
        raise TraceError(where, "", "the file is empty", _DAMAGED)
    first = raw[0]
    if 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
        raise TraceError(
            where,
            "",
            "the trace is of version 1 (a positional array), which is no longer read",
            "Record it again with SimKube 2.x, or with `steersman record`",
        )
    if raw[:2] == b"\x1f\x8b":
        raise TraceError(where, "", "the file is compressed with gzip", "Unpack it first: gunzip FILE")
    if raw[:64].lstrip()[:1] in (b"{", b"["):
        remedy = "Give the .sktrace file itself, not its JSON form"
        raise TraceError(where, "", "the file is JSON, not msgpack", remedy)
    if not (0x80 <= first <= 0x8F or first in (0xDE, 0xDF)):
        raise TraceError(where, "", f"not a trace: its first byte is 0x{first:02x}, no map", _FOREIGN)


class _Decoder:
    def __init__(self, raw: bytes, where: str) -> None:
        self.raw, self.where = raw, where
        self.values = self.objects = self.lives = self.hashes = 0
        self.unpacker = msgpack.Unpacker(max_buffer_size=len(raw), object_pairs_hook=_unique, **_OPTIONS)
        self.unpacker.feed(raw)

    def trace(self) -> Trace:
        parts = self.record(
            "",
            {
                "version": self.version,
                "config": self.config,
                "events": self.events,
                "index": self.index,
                "pod_lifecycles": self.lifecycles,
            },
        )
        extra = len(self.raw) - self.unpacker.tell()
        if extra:
            self.fail("", f"{extra} bytes follow the end of the trace", _DAMAGED)
        return Trace(parts["version"], parts["config"], parts["events"], parts["index"], parts["pod_lifecycles"])

    def version(self, place: str) -> int:
        version = self.scalar(place)
        if type(version) is not int or version != VERSION:
            remedy = f"This reads version {VERSION}: export it with SimKube 2.0 to 2.7, or `steersman record`"
            self.fail(place, f"unsupported version {_shown(version)}", remedy)
        return VERSION

    def config(self, place: str) -> dict[str, Tracked]:
        tracked: dict[str, Tracked] = self.record(place, {"trackedObjects": self.tracked_objects})["trackedObjects"]
        return tracked

    def tracked_objects(self, place: str) -> dict[str, Tracked]:
        tracked: dict[str, Tracked] = {}
        for _ in self.count(self.unpacker.read_map_header, place, "a map of kinds", MAX_OBJECTS):
            kind = self.kind(place)
            at = f"{place}.{kind}"
            if kind in tracked:
                self.fail(at, "the kind is there twice", _FOREIGN)
            options = self.value(at)
            try:
                tracked[kind] = Tracked.parse(options)
            except ValueError as error:
                self.fail(at, str(error), _FOREIGN)
        return tracked

    def events(self, place: str) -> tuple[TraceEvent, ...]:
        events: list[TraceEvent] = []
        for i in self.count(self.unpacker.read_array_header, place, "an array of events", MAX_EVENTS):
            at = f"{place}[{i}]"
            parts = self.record(
                at, {"ts": self.timestamp, "applied_objs": self.object_list, "deleted_objs": self.object_list}
            )
            if events and parts["ts"] < events[-1].ts:
                remedy = "Events must be in order of time: sort them, or export the trace again"
                self.fail(f"{at}.ts", f"{parts['ts']} is before the event before it, {events[-1].ts}", remedy)
            events.append(TraceEvent(parts["ts"], parts["applied_objs"], parts["deleted_objs"]))
        return tuple(events)

    def timestamp(self, place: str) -> int:
        ts = self.scalar(place)
        if type(ts) is not int or not 0 <= ts <= MAX_TS:
            self.fail(place, f"expected whole seconds since 1970, found {_shown(ts)}", _FOREIGN)
        return ts

    def object_list(self, place: str) -> tuple[dict[str, Any], ...]:
        objects: list[dict[str, Any]] = []
        for i in self.count(self.unpacker.read_array_header, place, "an array of objects", MAX_OBJECTS):
            self.objects += 1
            if self.objects > MAX_OBJECTS:
                self.fail(place, f"more than {MAX_OBJECTS} objects in the trace", _split())
            at = f"{place}[{i}]"
            obj = self.value(at)
            try:
                self.values += check_object(obj)
            except ObjectError as error:
                at += describe(obj)
                self.fail(f"{at}: {error.field}" if error.field else at, error.problem, _FOREIGN)
            if self.values > MAX_VALUES:
                self.fail(at, f"more than {MAX_VALUES} values in the objects so far", _split())
            objects.append(obj)
        return tuple(objects)

    def index(self, place: str) -> dict[str, dict[str, int]]:
        index: dict[str, dict[str, int]] = {}
        for _ in self.count(self.unpacker.read_map_header, place, "a map of kinds", MAX_OBJECTS):
            kind = self.kind(place)
            at = f"{place}.{kind}"
            if kind in index:
                self.fail(at, "the kind is there twice", _FOREIGN)
            hashes = index[kind] = {}
            for _ in self.count(self.unpacker.read_map_header, at, "a map of names", MAX_OBJECTS):
                name = self.slot(at)
                if name in hashes:
                    self.fail(f"{at}.{name}", "the name is there twice", _FOREIGN)
                hashes[name] = self.hash(f"{at}.{name}")
                self.hashes += 1
                if self.hashes > MAX_OBJECTS:
                    self.fail(at, f"more than {MAX_OBJECTS} hashes in index and pod_lifecycles", _split())
        return index

    def lifecycles(self, place: str) -> dict[tuple[str, str], dict[int, tuple[PodLife, ...]]]:
        owners: dict[tuple[str, str], dict[int, tuple[PodLife, ...]]] = {}
        for n in self.count(self.unpacker.read_map_header, place, "a map of owners", MAX_OBJECTS):
            at = f"{place}, owner {n}"
            pair = self.count(self.unpacker.read_array_header, at, "a pair of kind and namespace/name", 2)
            if len(pair) != 2:
                self.fail(at, "expected a pair of kind and namespace/name", _FOREIGN)
            owner = (self.kind(at), self.slot(at))
            at = f"{place}.{owner[0]} {owner[1]}"
            if owner in owners:
                self.fail(at, "the owner is there twice", _FOREIGN)
            owners[owner] = self.pod_lives(at)
        return owners

    def pod_lives(self, place: str) -> dict[int, tuple[PodLife, ...]]:
        by_hash: dict[int, tuple[PodLife, ...]] = {}
        for _ in self.count(self.unpacker.read_map_header, place, "a map of pod hashes", MAX_OBJECTS):
            pod = self.hash(place)
            self.hashes += 1
            if self.hashes > MAX_OBJECTS:
                self.fail(place, f"more than {MAX_OBJECTS} hashes in index and pod_lifecycles", _split())
            at = f"{place}, pod hash {pod}"
            if pod in by_hash:
                self.fail(at, "the pod hash is there twice", _FOREIGN)
            lives: list[PodLife] = []
            for i in self.count(self.unpacker.read_array_header, at, "an array of lifecycles", MAX_OBJECTS):
                self.lives += 1
                if self.lives > MAX_OBJECTS:
                    self.fail(at, f"more than {MAX_OBJECTS} pod lifecycles in the trace", _split())
                life = self.value(f"{at}[{i}]")
                try:
                    lives.append(PodLife.decode(life))
                except ValueError as error:
                    self.fail(f"{at}[{i}]", str(error), _FOREIGN)
            by_hash[pod] = tuple(lives)
        return by_hash

    # --- the pieces -------------------------------------------------------------------------------

    def record(self, place: str, keys: _Keys) -> dict[str, Any]:
        """A map with exactly `keys`, in any order; each is read by its own function."""
        found: dict[str, Any] = {}
        size = len(self.count(self.unpacker.read_map_header, place, f"a map of {', '.join(keys)}", 1000))
        for _ in range(size):
            key = self.scalar(place)
            if not isinstance(key, str) or key not in keys:
                self.fail(place, f"unknown key {str(key)[:40]!r}; expected {', '.join(keys)}", _FOREIGN)
            if key in found:
                self.fail(place, f"{key} is there twice", _FOREIGN)
            found[key] = keys[key](f"{place}.{key}" if place else key)
        for key in keys:
            if key not in found:
                self.fail(place, f"{key} is missing", _FOREIGN)
        return found

    def count(self, header: Callable[[], int], place: str, what: str, limit: int) -> range:
        """Read the header of an array or a map; one step for each element it claims."""
        try:
            size = header()
        except OutOfData:
            self.truncated(place)
        except ValueError:
            self.fail(place, f"expected {what}", _FOREIGN)
        if size > limit:
            self.fail(place, f"expected {what}, with at most {limit} elements, found {size}", _split())
        return range(size)

    def value(self, place: str) -> Any:
        """Any value up to the size of an object: measured before anything is allocated for it."""
        start = self.unpacker.tell()
        try:
            self.unpacker.skip()
        except OutOfData:
            self.truncated(place)
        except (FormatError, StackError, ValueError) as error:
            self.unreadable(place, error)
        end = self.unpacker.tell()
        if end - start > MAX_OBJECT_BYTES:
            self.fail(place, f"takes {end - start} bytes, more than {MAX_OBJECT_BYTES}", _split())
        try:
            return msgpack.unpackb(self.raw[start:end], object_pairs_hook=_unique, **_OPTIONS)
        except (FormatError, StackError, ValueError) as error:
            self.unreadable(place, error)

    def scalar(self, place: str) -> Any:
        """A string, number, boolean or nil."""
        at = self.unpacker.tell()
        if at >= len(self.raw):
            self.truncated(place)
        first = self.raw[at]
        if 0x80 <= first <= 0x9F or 0xDC <= first <= 0xDF:
            self.fail(place, "expected a single value, found an array or a map", _FOREIGN)
        try:
            return self.unpacker.unpack()
        except OutOfData:
            self.truncated(place)
        except (FormatError, StackError, ValueError) as error:
            self.unreadable(place, error)

    def kind(self, place: str) -> str:
        text = self.scalar(place)
        if type(text) is not str or len(text) > MAX_KIND_LENGTH:
            self.fail(place, f"expected a kind such as apps/v1.Deployment, found {_shown(text)}", _FOREIGN)
        try:
            GVK.parse(text)
        except ValueError as error:
            self.fail(place, str(error), _FOREIGN)
        return text

    def slot(self, place: str) -> str:
        text = self.scalar(place)
        if type(text) is not str or not 0 < len(text) <= 2 * MAX_NAME_LENGTH + 1:
            self.fail(place, f"expected namespace/name, found {_shown(text)}", _FOREIGN)
        return text

    def hash(self, place: str) -> int:
        number = self.scalar(place)
        if type(number) is not int or number < 0:
            self.fail(place, f"expected a hash (a number of 64 bits), found {_shown(number)}", _FOREIGN)
        return number

    # --- the errors -------------------------------------------------------------------------------

    def truncated(self, place: str) -> NoReturn:
        self.fail(place, f"the file ends here, after {len(self.raw)} bytes, in the middle of a value", _DAMAGED)

    def unreadable(self, place: str, error: Exception) -> NoReturn:
        if isinstance(error, StackError):
            self.fail(place, "nested too deeply to be read", _FOREIGN)
        if isinstance(error, UnicodeDecodeError):
            self.fail(place, "a string is not UTF-8", _DAMAGED)
        if isinstance(error, FormatError):
            self.fail(place, f"no msgpack at byte {self.unpacker.tell()}", _DAMAGED)
        text = str(error)
        if "max_bin_len" in text or "max_ext_len" in text:
            text = "binary data, which no object in JSON has"
        elif "max_str_len" in text:
            text = f"a string is longer than {MAX_STRING_BYTES} bytes"
        self.fail(place, text[:200], _FOREIGN)

    def fail(self, place: str, problem: str, remedy: str) -> NoReturn:
        raise TraceError(self.where, place, problem, remedy)


def _shown(value: Any) -> str:
    return repr(value)[:40] if isinstance(value, str | int) else kind_of(value)


def _split() -> str:
    return "Export a shorter time or fewer kinds; the limits are in docs/traces.md"


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dict from the pairs of a map. The keys are shared: specs repeat the same few hundred."""
    result: dict[Any, Any] = {}
    for key, value in pairs:
        if type(key) is not str:
            raise ValueError(f"a key must be a string, found {kind_of(key)}")
        result[sys.intern(key)] = value
    if len(result) != len(pairs):
        seen: Iterator[str] = (key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise ValueError(f"the key {str(next(seen))[:40]!r} is there twice in one map")
    return result
