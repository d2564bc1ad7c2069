"""Makes a recording from the versions of objects as they come by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steersman.api.times import time_text
from steersman.trace.filters import ExportFilters
from steersman.trace.gvk import GVK, POD
from steersman.trace.limits import MAX_TS
from steersman.trace.objects import ObjectError, check_object, describe
from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace, TraceError, TraceEvent, slot
from steersman.trace.sanitize import sanitize
from steersman.trace.spechash import pod_hash, spec_hash
from steersman.trace.tracked import Tracked

# A chain of owners is two or three long; a longer one is a mistake, an endless one a loop.
MAX_OWNERS = 16

Lookup = Callable[[GVK, str, str], Mapping[str, Any] | None]
_Slot = tuple[str, str]  # kind as text, namespace/name


@dataclass(frozen=True, slots=True)
class _Change:
    """One line of the recording: an object applied, or (`obj` None) the object in `slot` deleted."""

    ts: int
    slot: _Slot
    obj: dict[str, Any] | None = None
    hash: int = 0
    uid: str = ""


class TraceBuilder:
    """Collects changes in time order; `export` cuts a Trace out of them.

    config: kind (`apps/v1.Deployment`) to Tracked. Feed *every* object, also of kinds that are not
    tracked: pods tell how long they ran, the others who owns whom. `lookup(kind, namespace, name)`
    answers for an owner that was never fed, with its object or None.

    Rules as SimKube's tracer has them (acrlabs/simkube 4ff5124, sk-tracer/src/store.rs), but for:
    objects are told apart by kind and name (there by name alone), pods by uid as well; an object
    deleted and applied again within one second gets a second event of that second, else a replay,
    which applies before it deletes, would lose it; the index names the exported objects only.
    """

    def __init__(self, config: Mapping[str, Tracked], lookup: Lookup | None = None) -> None:
        self._config = {str(GVK.parse(kind)): tracked for kind, tracked in config.items()}
        self._lookup = lookup
        self._now = 0
        self._changes: list[_Change] = []
        self._alive: dict[_Slot, int] = {}  # tracked objects that exist, with the hash of their spec
        self._owners: dict[_Slot, tuple[_Slot, ...]] = {}
        self._lives: dict[_Slot, dict[int, list[PodLife]]] = {}
        self._pods: dict[tuple[str, str], tuple[list[PodLife], int]] = {}  # (ns/name, uid) to its life
        self._uids: dict[str, str] = {}  # ns/name of a pod to the uid seen last

    def apply(self, obj: Mapping[str, Any], ts: float) -> None:
        """Note a version of `obj`, seen at `ts` (seconds since 1970). The builder keeps no part of it.

        Recorded only if the spec differs from the last one. A `ts` before the last counts as the last:
        clocks step back, the order of calls does not. TraceError if `obj` is not a Kubernetes object.
        """
        clean = self._sanitized(obj)
        second = self._second(ts)
        gvk = GVK.of(clean)
        here = (str(gvk), slot(clean))
        uid = _uid(obj)
        references = clean["metadata"].get("ownerReferences") or ()
        namespace = clean["metadata"].get("namespace")
        self._owners[here] = tuple(_owner_slot(reference, namespace) for reference in references)
        tracked = self._config.get(here[0])
        if tracked is not None and not (tracked.skip_owned and references):
            new = spec_hash(clean.get("spec"))
            if self._alive.get(here) != new:
                self._changes.append(_Change(second, here, clean, new, uid))
            self._alive[here] = new
        if gvk == POD:
            self._observe(clean, here, uid)

    def delete(self, obj: Mapping[str, Any], ts: float) -> None:
        """Note that `obj` is gone; its metadata is enough. A pod that was running ends here."""
        clean = self._sanitized(obj)
        second = self._second(ts)
        here = (str(GVK.of(clean)), slot(clean))
        if here[0] == str(POD):
            self._end_pod(clean, here, _uid(obj) or self._uids.get(here[1], ""), second)
        if self._alive.pop(here, None) is not None:
            self._changes.append(_Change(second, here))

    def export(self, start: int | None = None, end: int | None = None, filters: ExportFilters | None = None) -> Trace:
        """The recording of [start, end), whole seconds since 1970; its first event is the state at `start`.

        By default from the first change to past the last; TraceError if that leaves no time at all.
        Left out: what `filters` exclude, objects that an exported object owns (replay makes them
        again), pods without an owner that finished before `start`. A later export is not affected.
        """
        if start is None and not self._changes:
            remedy = "Check which kinds are tracked, and that objects of them were there"
            raise TraceError("the recording", "", "nothing of a tracked kind was recorded", remedy)
        start = self._changes[0].ts if start is None else start
        end = self._now + 1 if end is None else end
        if not 0 <= start < end <= MAX_TS + 1:
            asked = f"there is no time from {_shown(start)} to before {_shown(end)}"
            recorded = f"; what is recorded ends at {_shown(self._now)}" if self._changes else ""
            raise TraceError("the recording", "", asked + recorded, "Give a start before the end")
        window, at_start, exported = self._select(start, end, filters or ExportFilters())
        first = TraceEvent(start, tuple(at_start.values()))
        index: dict[str, dict[str, int]] = {}
        for (kind, name), value in sorted(exported.items()):
            index.setdefault(kind, {})[name] = value
        lifecycles = {owner: self._clipped(owner, start, end) for owner in sorted(exported)}
        return Trace(
            config=dict(self._config),
            events=(first, *_events(window)),
            index=index,
            lifecycles={owner: by_hash for owner, by_hash in lifecycles.items() if by_hash},
        )

    def _select(
        self, start: int, end: int, filters: ExportFilters
    ) -> tuple[list[_Change], dict[_Slot, dict[str, Any]], dict[_Slot, int]]:
        """The changes to export, the objects alive at `start`, and the hash of every exported object."""
        at_start: dict[_Slot, dict[str, Any]] = {}
        exported: dict[_Slot, int] = {}
        alive: set[_Slot] = set()
        window: list[_Change] = []
        for change in self._changes:
            if change.ts >= end:
                break
            if change.obj is None:
                if change.slot not in alive:
                    continue
                alive.discard(change.slot)
            elif change.slot not in alive and self._left_out(change, start, filters, exported):
                continue
            else:
                alive.add(change.slot)
                exported[change.slot] = change.hash
            if change.ts >= start:
                window.append(change)
            elif change.obj is not None:
                at_start[change.slot] = change.obj
            else:
                at_start.pop(change.slot)
                exported.pop(change.slot)
        return window, at_start, exported

    def _sanitized(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        try:
            clean = sanitize(obj)
            check_object(clean)
        except (ObjectError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            problem = f"not a Kubernetes object{describe(obj)}: {error}"
            raise TraceError("the recording", "", problem, "Feed objects as the API server sends them") from None
        return clean

    def _second(self, ts: float) -> int:
        if not 0 <= ts <= MAX_TS:
            raise TraceError("the recording", "", f"{ts} is no time", "Give seconds since 1970")
        self._now = max(self._now, int(ts))
        return self._now

    def _observe(self, pod: dict[str, Any], here: _Slot, uid: str) -> None:
        """Store how far the pod has got, under the first owner whose pods' lives are wanted."""
        self._uids[here[1]] = uid
        life = PodLife.of(pod)
        known = self._pods.get((here[1], uid))
        if known is not None:
            lives, i = known
            if life.follows(lives[i]):
                lives[i] = life
            return
        if life.empty:
            return
        for owner in self._ancestors(here) if self._owners.get(here) else (here,):
            tracked = self._config.get(owner[0])
            if tracked is not None and tracked.lifecycle and owner in self._alive:
                lives = self._lives.setdefault(owner, {}).setdefault(pod_hash(pod.get("spec") or {}), [])
                self._pods[(here[1], uid)] = (lives, len(lives))
                lives.append(life)
                return

    def _end_pod(self, pod: dict[str, Any], here: _Slot, uid: str, second: int) -> None:
        if pod.get("status"):
            self._observe(pod, here, uid)  # the last version may tell the true end
        lives, i = self._pods.get((here[1], uid), ([], 0))
        if lives and lives[i].running:
            lives[i] = PodLife(lives[i].start, second)

    def _ancestors(self, here: _Slot) -> Iterator[_Slot]:
        """Owners of the object in `here`, theirs, and so on: nearest first, each once."""
        seen = {here}
        level = [here]
        for _ in range(MAX_OWNERS):
            level = [owner for at in level for owner in self._owners_of(at) if owner not in seen]
            seen.update(level)
            yield from dict.fromkeys(level)

    def _owners_of(self, at: _Slot) -> tuple[_Slot, ...]:
        if at not in self._owners and self._lookup is not None:
            namespace, _, name = at[1].rpartition("/")
            found = self._lookup(GVK.parse(at[0]), namespace, name)
            if found is not None:
                references = (found.get("metadata") or {}).get("ownerReferences") or ()
                self._owners[at] = tuple(_owner_slot(reference, namespace) for reference in references)
        return self._owners.get(at, ())

    def _left_out(self, change: _Change, start: int, filters: ExportFilters, exported: Mapping[_Slot, int]) -> bool:
        assert change.obj is not None
        if filters.excludes(change.obj) or any(owner in exported for owner in self._ancestors(change.slot)):
            return True
        lives, i = self._pods.get((change.slot[1], change.uid), ([], 0))
        if change.slot[0] != str(POD) or change.ts >= start or not lives:
            return False
        end = lives[i].end
        return end is not None and end < start

    def _clipped(self, owner: _Slot, start: int, end: int) -> dict[int, tuple[PodLife, ...]]:
        clipped: dict[int, tuple[PodLife, ...]] = {}
        for pod, lives in self._lives.get(owner, {}).items():
            kept = tuple(part for life in lives if (part := life.clip(start, end)) is not None)
            if kept:
                clipped[pod] = kept
        return clipped


def _uid(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("uid") or "")


def _owner_slot(reference: Mapping[str, Any], namespace: str | None) -> _Slot:
    # An owner is in the namespace of what it owns. A cluster-scoped owner gets a slot that no object
    # has: such owners (a node, mostly) are never what a replay would make the object from.
    name = str(reference["name"])
    return str(GVK.of(reference)), f"{namespace}/{name}" if namespace else name


def _events(changes: list[_Change]) -> Iterator[TraceEvent]:
    """One event a second, and a new one where an object comes back in the second it was deleted."""
    ts: int | None = None
    applied: list[dict[str, Any]] = []
    deleted: dict[_Slot, dict[str, Any]] = {}
    for change in changes:
        if ts is not None and (change.ts != ts or (change.obj is not None and change.slot in deleted)):
            yield TraceEvent(ts, tuple(applied), tuple(deleted.values()))
            applied, deleted = [], {}
        ts = change.ts
        if change.obj is not None:
            applied.append(change.obj)
        else:
            deleted[change.slot] = _tombstone(change.slot)
    if ts is not None:
        yield TraceEvent(ts, tuple(applied), tuple(deleted.values()))


def _tombstone(at: _Slot) -> dict[str, Any]:
    gvk = GVK.parse(at[0])
    namespace, _, name = at[1].rpartition("/")
    metadata: dict[str, Any] = {"annotations": {}, "name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}


def _shown(seconds: int) -> str:
    """A time as people write it; a number where the calendar ends."""
    return time_text(seconds) if 0 <= seconds <= MAX_TS else str(seconds)
