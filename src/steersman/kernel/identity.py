"""Identity: when two states are the same for everybody who could tell.

One reviewed table says, by kind and path, what of an object does not count: `drop` (only that it is there), `rank`
(only its order among the like values of the same object counts), `token` (kept: check's uids and generated names are
canonical already, see `smallest`), `clip` (values above a bound are one). Without it no livelock ever closes into a
loop: generations and times count up for ever. `Canon(())` is the table switched off (law C1).

Terms are 128-bit hashes of (component, slot, digest); a state's fingerprint is their *sum*: XOR would let twins cancel.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import orjson
from xxhash import xxh3_128_intdigest

from .object import SORTED, Object, Section

GK = tuple[str, str]
Tree = dict[str, Any]
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names, as Kubernetes draws them: no vowels, so no words."""
SUFFIX_LENGTH: Final = 5


def digest(*parts: Any) -> int:
    """128 bits of the parts' texts."""
    return xxh3_128_intdigest("\0".join([str(part) for part in parts]).encode())


_terms: dict[Any, int] = {}
TERMS_LIMIT: Final = 1 << 20
"""Cached hashes of small tuples; emptied when full."""


def term(*parts: Any) -> int:
    """`digest` of small hashable parts, remembered."""
    found = _terms.get(parts)
    if found is None:
        if len(_terms) >= TERMS_LIMIT:
            _terms.clear()
        found = _terms[parts] = digest(*parts)
    return found


_STEPS: Final = re.compile(r'"([^"]+)"|(\[\]|[^.\[\]"]+)')


class Rule(NamedTuple):
    """One row of the table. `path` starts at the object; `[]` stands for every item of a list; a name with dots in it
    stands in quotes."""

    gk: GK | None
    path: str
    action: str
    """drop (its value, not that it is there) | version (so, of a resourceVersion that was read) | absent (as if it were
    not there) | rank | token | clip:N"""
    why: str

    @property
    def steps(self) -> list[str]:
        """The names on the path."""
        return [quoted or name for quoted, name in _STEPS.findall(self.path)]


SINCE: Final = 'metadata.annotations."endpoints.kubernetes.io/last-change-trigger-time"'
"""When the change came about that an endpoint follows: a measure of speed."""
TABLE: Final[tuple[Rule, ...]] = (
    Rule(None, "metadata.creationTimestamp", "drop", "order of creation is not order of anything a loop may rely on"),
    Rule(None, "metadata.deletionTimestamp", "token:set", "that deletion began counts, not when"),
    Rule(None, "metadata.generation", "rank", "counts up with every change of spec; only compared with observed ones"),
    Rule(None, "status.observedGeneration", "rank", "see metadata.generation"),
    Rule(None, "status.conditions[].observedGeneration", "rank", "see metadata.generation"),
    Rule(None, "status.conditions[].lastTransitionTime", "drop", "for people; delays are read through c.after"),
    Rule(None, "status.conditions[].lastUpdateTime", "drop", "for people"),
    Rule(None, "status.conditions[].lastProbeTime", "drop", "for people"),
    Rule(None, "status.conditions[].lastHeartbeatTime", "drop", "for people"),
    Rule(("", "Pod"), "status.startTime", "drop", "for people"),
    Rule(("batch", "Job"), "status.startTime", "drop", "deadlines are read through c.after"),
    Rule(("batch", "Job"), "status.completionTime", "drop", "for people; delays are read through c.after"),
    Rule(("batch", "CronJob"), "status.active[].resourceVersion", "version", "of a reference, which names by uid"),
    Rule(("", "PersistentVolume"), "spec.claimRef.resourceVersion", "version", "of a reference, which names by uid"),
    Rule(("", "Endpoints"), SINCE, "absent", "for people: whether it is there depends on what was seen before"),
    Rule(("discovery.k8s.io", "EndpointSlice"), SINCE, "absent", "as with Endpoints"),
    Rule(("", "Pod"), "status.containerStatuses[].state.running.startedAt", "drop", "for people"),
    Rule(("", "Pod"), "status.containerStatuses[].state.terminated.startedAt", "drop", "for people"),
    Rule(("", "Pod"), "status.containerStatuses[].state.terminated.finishedAt", "drop", "for people"),
)


class Canon:
    """The canonical digests under one table. Caches what it computes on sections and objects: use one per process
    of search."""

    __slots__ = ("_trees", "managers", "ranks", "table")

    def __init__(self, table: tuple[Rule, ...] = TABLE, managers: bool = True, ranks: bool = True) -> None:
        self.table = table if ranks else tuple([rule for rule in table if rule.action != "rank"])
        self.ranks = ranks
        """Whether the table's rows for generations are in force."""
        self.managers = managers
        """Whether managedFields count. Controllers never see them, so they can only matter where somebody applies."""
        self._trees: dict[GK, Tree] = {}

    def of(self, obj: Object) -> int:
        """The canonical digest of an object: its key, what counts of its sections, and who manages which fields."""
        found = obj._canon
        if found is not None and found[0] is self:
            return found[1]  # type: ignore[no-any-return]
        return self.both(obj)[1]

    def counters(self, obj: Object) -> tuple[int, ...]:
        """The ranked values of an object, as they are: versions of one slot are compared by them."""
        found = obj._canon
        counters: tuple[int, ...] = (found if found is not None and found[0] is self else self.both(obj))[2]
        return counters

    def both(self, obj: Object) -> tuple[Canon, int, tuple[int, ...]]:
        """(this, the digest, the counters), computed; `obj._canon` keeps it."""
        tree = self.tree(obj.key.gk)
        counters: list[Any] = []
        parts: list[Any] = [*obj.key, obj.node or ""]
        for name, section in (("metadata", obj.meta), ("spec", obj.spec), ("", obj.rest), ("status", obj.status)):
            if section is None:
                parts.append("")
                continue
            text, ranked = self._section(section, tree if name == "" else tree.get(name))
            parts.append(text)
            counters.extend(ranked)
        order = sorted(set(counters))
        parts.extend([order.index(counter) for counter in counters])
        if self.managers:
            parts.extend([f"{m.name}\1{m.operation}\1{m.subresource}\1{m.fields.digest():x}" for m in obj.managers])
        found = obj._canon = (self, digest(*parts), tuple(counters))
        return found

    def text(self, obj: Object) -> str:
        """What `of` is the digest of, as text, but for who manages which fields."""
        tree = self.tree(obj.key.gk)
        counters: list[Any] = []
        parts: list[str] = [*obj.key, obj.node or ""]
        for name, section in (("metadata", obj.meta), ("spec", obj.spec), ("", obj.rest), ("status", obj.status)):
            below = tree if name == "" else tree.get(name, {})
            value = None if section is None else _apply(section.value, below, counters)
            parts.append(orjson.dumps(value, option=SORTED).decode())
        order = sorted(set(counters))
        return "\0".join([*parts, *[str(order.index(counter)) for counter in counters]])

    def _section(self, section: Section, tree: Tree | None) -> tuple[str, tuple[Any, ...]]:
        if not tree:
            return f"{section.digest:x}", ()
        found = section._canon
        if found is not None and found[0] is tree:
            return found[1]  # type: ignore[no-any-return]
        counters: list[Any] = []
        value = _apply(section.value, tree, counters)
        text = f"{xxh3_128_intdigest(orjson.dumps(value, option=SORTED)):x}"
        section._canon = (tree, (text, tuple(counters)))
        return text, tuple(counters)

    def tree(self, gk: GK) -> Tree:
        """The table's rows for a kind, by path; `[]` stands for the items of a list."""
        tree = self._trees.get(gk)
        if tree is None:
            tree = self._trees[gk] = {}
            for rule in self.table:
                if rule.gk is None or rule.gk == gk:
                    node = tree
                    *inner, last = rule.steps
                    for name in inner:
                        node = node.setdefault(name, {})
                    node[last] = rule.action
        return tree


def _apply(value: Any, tree: Tree, counters: list[Any]) -> Any:
    """`value` with the table's rows applied; ranked values are collected and leave a mark."""
    if isinstance(value, list):
        below = tree.get("[]")
        return [_apply(item, below, counters) for item in value] if below else value
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for name in sorted(value):
        item, action = value[name], tree.get(name)
        if action is None:
            out[name] = item
        elif isinstance(action, dict):
            inner = _apply(item, action, counters)
            if inner or not item:
                out[name] = inner
        elif action == "absent":
            continue
        elif action == "rank":
            counters.append(item)
            out[name] = "#"
        elif action.startswith("token:"):
            out[name] = action
        elif action.startswith("clip:"):
            out[name] = min(item, int(action[5:])) if isinstance(item, int) else item
        else:  # drop, version: that it is there still counts
            out[name] = "-"
    return out


def uid_text(slot: str, number: int) -> str:
    """A uid that looks like one (UUID version 4) and is a function of slot and number."""
    bits = f"{xxh3_128_intdigest(f'{slot}#{number}'.encode()):032x}"
    return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"


def suffix_text(number: int) -> str:
    """The `number`-th suffix of generated names."""
    out = ""
    for _ in range(SUFFIX_LENGTH):
        number, at = divmod(number, len(SUFFIX_ALPHABET))
        out = SUFFIX_ALPHABET[at] + out
    return out
