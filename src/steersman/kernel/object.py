"""Objects: immutable versions made of sections that versions, templates and views share.

An `Object` is a key, a revision and four sections: metadata, spec, the rest of the top level (`data`, `rules`, …)
and status. A write makes a new `Object` that shares every section it did not change. A section has its value, its
canonical JSON bytes, or both; its digest and its field set are computed once, lazily, whoever asks.

Two things stay outside the sections, because they differ where everything else is alike: the resourceVersion, and a
pod's `spec.nodeName`, an overlay on the spec that thousands of pods share.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, NamedTuple

import orjson
from xxhash import xxh3_128_intdigest

from .fieldset import FieldSet
from .value import EMPTY, Frozen, freeze

SORTED: Final = orjson.OPT_SORT_KEYS
MASK: Final = (1 << 128) - 1
TRUSTED: Final = -(1 << 10)
"""The depth at which `freeze` starts for bytes of our own: what was taken in once is not judged again."""


class Key(NamedTuple):
    """The slot of an object. `namespace` is "" for cluster-scoped kinds. Totally ordered."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"

    @property
    def gk(self) -> tuple[str, str]:
        """Group and kind."""
        return (self.group, self.kind)


class Manager(NamedTuple):
    """One entry of managedFields; `fields` is shared with every object that has the same set."""

    name: str
    operation: str
    subresource: str
    api_version: str
    time: str
    fields: FieldSet

    def to_json(self) -> dict[str, Any]:
        """The entry as the API shows it."""
        out: dict[str, Any] = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            **({"time": self.time} if self.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_json(),
        }
        if self.subresource:
            out["subresource"] = self.subresource
        return out


class Section:
    """One frozen part of an object. At least one of value and bytes is present."""

    __slots__ = ("_canon", "_digest", "_raw", "_value", "born", "fields", "shape", "valid")

    def __init__(self, value: Frozen | None, raw: bytes | None = None) -> None:
        self._value = value
        self._raw = raw
        self._digest = -1
        self._canon: Any = None
        self.fields: FieldSet | None = None
        """The set of all fields present, once somebody asked for it (`api.structure`)."""
        self.born: Section | None = None
        """The status with which an object of this spec is born, once somebody asked for it (`api.write`)."""
        self.shape: tuple[Any, ...] | None = None
        """What the field set of a status depends on, where its intake told (`api.status_fields`)."""
        self.valid: object = None
        """The schema under which this value was found valid and complete with defaults, or None."""

    @property
    def value(self) -> Frozen:
        """The frozen value; parsed again when only its bytes were kept."""
        value = self._value
        if value is None:
            value = self._value = freeze(orjson.loads(self._raw or b"{}"), TRUSTED)
            PARSED.admit(self)
        return value

    def peek(self) -> dict[str, Any]:
        """The value for reading once: parsed anew, and not kept, when only bytes are there."""
        value = self._value
        return orjson.loads(self._raw or b"{}") if value is None else value

    @property
    def raw(self) -> bytes:
        """Canonical JSON: keys sorted, no spaces. A right-sized copy: the serialiser's own buffer wastes half."""
        raw = self._raw
        if raw is None:
            raw = self._raw = memoryview(orjson.dumps(self._value, option=SORTED)).tobytes()
        return raw

    @property
    def kept(self) -> int:
        """How many bytes it is kept as; 0 while it is a value only."""
        raw = self._raw
        return 0 if raw is None else len(raw)

    @property
    def digest(self) -> int:
        """128 bits of the canonical bytes."""
        digest = self._digest
        if digest < 0:
            digest = self._digest = xxh3_128_intdigest(self.raw)
        return digest

    def __reduce__(self) -> tuple[Any, ...]:
        return (Section, (None, self.raw))

    def drop_value(self) -> None:
        """Keeps the bytes only."""
        _ = self.raw
        self._value = None


EMPTY_SECTION: Final = Section(EMPTY)


class ParsedCache:
    """Keeps the values of recently used sections, bounded in bytes; the others keep their bytes only.

    A parsed pod takes 22 KB against 3.9 KB of bytes, hence the bound. It changes what things cost, never a result.
    When it is full, only every `ADMIT_EVERY`-th newcomer takes the place of the oldest: a walk over more objects than
    fit then lets go of what it has just touched, which is cheap, and not of what it touched long ago, which is not.
    What is used often gets in all the same.
    """

    __slots__ = ("_entries", "_turn", "held", "limit")

    PARSED_PER_BYTE: Final = 6
    """Memory of a parsed value per byte of JSON, measured on pods (22 KB / 3.9 KB)."""
    ADMIT_EVERY: Final = 16

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._turn = 0
        self._entries: OrderedDict[int, tuple[Section, int]] = OrderedDict()

    def admit(self, section: Section) -> None:
        """Counts a section that holds a value; over the limit, it or the oldest ones let go of theirs."""
        entries = self._entries
        key = id(section)
        if key in entries:
            entries.move_to_end(key)
            return
        cost = len(section.raw) * self.PARSED_PER_BYTE
        if self.held + cost > self.limit:
            self._turn = (self._turn + 1) % self.ADMIT_EVERY
            if self._turn:
                section._value = None
                return
        entries[key] = (section, cost)
        self.held += cost
        while self.held > self.limit:
            _, (oldest, freed) = entries.popitem(last=False)
            self.held -= freed
            oldest.drop_value()

    def clear(self) -> None:
        """Drops every value held."""
        for section, _ in self._entries.values():
            section.drop_value()
        self._entries.clear()
        self.held = 0


PARSED: Final = ParsedCache(limit=48 << 20)


class Object:
    """One version of an object. Never changed after it is made; see `replace`."""

    __slots__ = (
        "_canon",
        "_content",
        "_term",
        "api_version",
        "key",
        "managers",
        "meta",
        "node",
        "rest",
        "rv",
        "spec",
        "standing",
        "status",
        "times",
    )

    def __init__(
        self,
        key: Key,
        api_version: str,
        rv: int,
        meta: Section,
        spec: Section | None,
        rest: Section | None,
        status: Section | None,
        managers: tuple[Manager, ...] = (),
        node: str | None = None,
    ) -> None:
        self.key = key
        self.api_version = api_version
        self.rv = rv
        self.meta = meta
        self.spec = spec
        self.rest = rest
        self.status = status
        self.managers = managers
        self.node = node
        self.standing: Any = None
        """How its status is owned, once somebody found out (`api.status_fields`)."""
        self._term = -1
        self._content = -1
        self.times: tuple[int, ...] | None = None
        """The times that stand in it, in microseconds, once somebody asked (`kernel.fingerprint`)."""
        self._canon: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.meta, self.spec, self.rest, self.status, self.managers, self.node)
        return (Object, (self.key, self.api_version, self.rv, *parts))

    @property
    def uid(self) -> str:
        """The identity of this incarnation."""
        return self.meta.value.get("uid", "")  # type: ignore[no-any-return]

    @property
    def metadata(self) -> Frozen:
        """Metadata without resourceVersion and managedFields."""
        return self.meta.value

    @property
    def spec_value(self) -> Any:
        """The spec with the nodeName overlay, or None."""
        if self.spec is None:
            return None
        value = self.spec.value
        return value if self.node is None else Frozen({**value, "nodeName": self.node})

    @property
    def status_value(self) -> Any:
        """The status, or None."""
        return None if self.status is None else self.status.value

    @property
    def value(self) -> Frozen:
        """The whole object as controllers read it: everything but managedFields."""
        meta = self.meta.value
        if self.rv:  # a version that was never stored (the answer of a dry run) has no revision
            meta = Frozen({**meta, "resourceVersion": str(self.rv)})
        out: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.key.kind, "metadata": meta}
        if self.spec is not None:
            out["spec"] = self.spec_value
        if self.rest is not None:
            out.update(self.rest.value)
        if self.status is not None:
            out["status"] = self.status.value
        return Frozen(out)

    def to_json(self) -> bytes:
        """The whole object, managedFields included, as JSON; sections are spliced in, not serialised again."""
        meta: dict[str, Any] = dict(self.meta.value)
        if self.rv:
            meta["resourceVersion"] = str(self.rv)
        if self.managers:
            meta["managedFields"] = [manager.to_json() for manager in sorted(self.managers, key=_rendered_order)]
        out: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.key.kind, "metadata": meta}
        if self.spec is not None:
            out["spec"] = orjson.Fragment(self.spec.raw) if self.node is None else self.spec_value
        if self.rest is not None:
            out.update(self.rest.value)
        if self.status is not None:
            out["status"] = orjson.Fragment(self.status.raw)
        return orjson.dumps(out)

    def replace(self, **changes: Any) -> Object:
        """A new version with some of key, rv, meta, spec, rest, status, managers, node changed."""
        get = changes.get
        return Object(
            self.key,
            self.api_version,
            get("rv", self.rv),
            get("meta", self.meta),
            get("spec", self.spec),
            get("rest", self.rest),
            get("status", self.status),
            get("managers", self.managers),
            get("node", self.node),
        )

    def at(self, rv: int) -> Object:
        """The same version at another revision; what was computed about its content is kept."""
        other = self.replace(rv=rv)
        other._canon = self._canon
        other._content = self._content
        other.standing = self.standing
        other.times = self.times
        return other

    def same_content(self, other: Object) -> bool:
        """Whether everything but the revision and the times in managedFields is equal."""
        return (
            self.node == other.node
            and _same(self.meta, other.meta)
            and _same(self.spec, other.spec)
            and _same(self.rest, other.rest)
            and _same(self.status, other.status)
        )

    @property
    def content(self) -> int:
        """128 bits of what a controller can read, but for the revision: key and sections, without managers."""
        content = self._content
        if content < 0:
            parts = [*self.key, self.node or ""]
            for section in (self.meta, self.spec, self.rest, self.status):
                parts.append("" if section is None else f"{section.digest:x}")
            content = self._content = xxh3_128_intdigest("\0".join(parts).encode())
        return content

    @property
    def term(self) -> int:
        """The concrete digest: 128 bits of key, revision, sections and managers. Stores sum these."""
        term = self._term
        if term < 0:
            parts = [
                "\0".join(self.key),
                str(self.rv),
                self.node or "",
                *[f"{0 if s is None else s.digest:x}" for s in (self.meta, self.spec, self.rest, self.status)],
                *[f"{m.name}\0{m.operation}\0{m.subresource}\0{m.time}\0{m.fields.digest():x}" for m in self.managers],
            ]
            term = self._term = xxh3_128_intdigest("\1".join(parts).encode())
        return term

    def __repr__(self) -> str:
        return f"<{self.key} rv={self.rv}>"


def _rendered_order(entry: Manager) -> tuple[str, ...]:
    """Kubernetes' order of managedFields: appliers first, then by age."""
    return (entry.operation, entry.time, entry.name, entry.api_version, entry.subresource)


def _same(a: Section | None, b: Section | None) -> bool:
    if a is b:
        return True
    if a is None or b is None:
        return False
    return a.digest == b.digest
