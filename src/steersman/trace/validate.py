"""What is wrong with a trace that can be read: SimKube's rules under their codes, and ours under S.

SimKube's rules: acrlabs/simkube 4ff5124, `sk-cli/src/validation`. Its E-rules differ here in three points: of an
environment variable the *name* of the Secret or ConfigMap is looked up (there, by a slip, the key); a reference that is
`optional` is none that a pod needs; and init containers are looked at, too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from steersman.trace.gvk import GVK, POD
from steersman.trace.objects import describe
from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace, TraceEvent, slot
from steersman.trace.spechash import pod_hash, spec_hash
from steersman.trace.templates import find, template_paths


@dataclass(frozen=True, slots=True)
class Rule:
    """`fix` says in words what `fixed` does about it; empty where a person has to decide."""

    code: str
    name: str
    about: str
    fix: str
    ours: bool = False

    @property
    def severity(self) -> str:
        """`error`: a replay goes wrong. `warning`: it works, but something is not as it should be."""
        return "warning" if self.code in _WARNINGS else "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a rule. `place` is as in `events[3].applied_objs[0] (apps/v1.Deployment shop/web)`."""

    rule: Rule
    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.rule.code} {self.rule.severity}: {self.place}: {self.problem}"


_WARNINGS: Final = frozenset({"W0000", "S0001", "S0002", "S0003"})
_CANNOT_START: Final = "its pods cannot start in a replay"

RULES: Final = {
    rule.code: rule
    for rule in (
        Rule(
            "W0000",
            "status_field_populated",
            "An applied object has a status. Controllers write it, not who applies objects; a replay leaves it out.",
            "removes the status",
        ),
        Rule(
            "E0001",
            "service_account_missing",
            f"A pod template names a ServiceAccount that is not in the trace at that moment, so {_CANNOT_START}.",
            "removes serviceAccount and serviceAccountName where the account is missing",
        ),
        Rule(
            "E0002",
            "envvar_secret_missing",
            f"A variable is taken from a Secret that is not in the trace at that moment, so {_CANNOT_START}.",
            "removes the entry of env or envFrom",
        ),
        Rule(
            "E0003",
            "envvar_configmap_missing",
            f"A variable is taken from a ConfigMap that is not in the trace at that moment, so {_CANNOT_START}.",
            "removes the entry of env or envFrom",
        ),
        Rule(
            "E0004",
            "volume_secret_missing",
            f"A volume is a Secret that is not in the trace at that moment, so {_CANNOT_START}.",
            "puts an emptyDir in its place",
        ),
        Rule(
            "E0005",
            "volume_configmap_missing",
            f"A volume is a ConfigMap that is not in the trace at that moment, so {_CANNOT_START}.",
            "puts an emptyDir in its place",
        ),
        Rule(
            "S0001",
            "index_hash_stale",
            "The index has another hash than the spec applied last: the trace was changed after it was recorded.",
            "computes the hash anew",
            ours=True,
        ),
        Rule(
            "S0002",
            "deletion_of_nothing",
            "An object is deleted that is not there at that moment. A replay does nothing then.",
            "removes the deletion",
            ours=True,
        ),
        Rule(
            "S0003",
            "secret_with_data",
            "A Secret is in the trace with its contents. Whoever gets the file can read them; no replay needs them.",
            "removes data and stringData; the name stays",
            ours=True,
        ),
        Rule(
            "S0004",
            "kind_not_tracked",
            "An object is of a kind that config.trackedObjects does not have: SimKube's driver does not know it.",
            "",
            ours=True,
        ),
        Rule(
            "S0005",
            "life_ends_before_it_begins",
            "A pod's recorded life ends before it begins: the clock of its node went back. A replay takes it as 0 s.",
            "ends the life when it begins",
            ours=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class _Reference:
    """A kind of reference from a pod's spec. `holders` point to what is repaired, `source` is the key in it."""

    code: str
    kind: str
    holders: tuple[str, ...]
    name: Callable[[dict[str, Any]], Any]


def _named(key: str, name: str, holder: str = "") -> Callable[[dict[str, Any]], Any]:
    """Reads the name of what an entry needs, None where it needs nothing."""

    def read(entry: dict[str, Any]) -> Any:
        outer = entry.get(holder) if holder else entry
        source = outer.get(key) if isinstance(outer, dict) else None
        return source.get(name) if isinstance(source, dict) and source.get("optional") is not True else None

    return read


_ENV: Final = tuple(f"/{containers}/*" for containers in ("initContainers", "containers"))
_REFERENCES: Final = (
    _Reference("E0002", "Secret", tuple(f"{at}/env" for at in _ENV), _named("secretKeyRef", "name", "valueFrom")),
    _Reference("E0002", "Secret", tuple(f"{at}/envFrom" for at in _ENV), _named("secretRef", "name")),
    _Reference("E0003", "ConfigMap", tuple(f"{at}/env" for at in _ENV), _named("configMapKeyRef", "name", "valueFrom")),
    _Reference("E0003", "ConfigMap", tuple(f"{at}/envFrom" for at in _ENV), _named("configMapRef", "name")),
    _Reference("E0004", "Secret", ("/volumes",), _named("secret", "secretName")),
    _Reference("E0005", "ConfigMap", ("/volumes",), _named("configMap", "name")),
)
_ACCOUNT_FIELDS: Final = ("serviceAccountName", "serviceAccount")


def validate(trace: Trace) -> list[Finding]:
    """Everything that breaks a rule, in order of the file. Empty for a sound trace."""
    return _Pass(trace).findings


def fixed(trace: Trace) -> Trace:
    """`trace` with every fix that `RULES` tells of, its index and its bare pods' hashes following their specs."""
    return _Pass(trace).repaired()


class _Pass:
    """One way through a trace: finds, and repairs copies of the objects it finds something in."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.findings: list[Finding] = []
        self._alive: set[tuple[str, str]] = set()  # (kind, namespace/name) of what is there at the moment
        self._last: dict[tuple[str, str], dict[str, Any]] = {}  # repaired, by (group/version.Kind, namespace/name)
        self._renamed: dict[tuple[str, str], dict[int, int]] = {}  # bare pods' hashes: before, after
        self._events = tuple([self._event(i, event) for i, event in enumerate(trace.events)])
        self._index = self._checked_index()
        self._lives = self._checked_lives()

    def repaired(self) -> Trace:
        return replace(self.trace, events=self._events, index=self._index, lifecycles=self._lives)

    def _tell(self, code: str, place: str, problem: str) -> None:
        self.findings.append(Finding(RULES[code], place, problem))

    def _event(self, i: int, event: TraceEvent) -> TraceEvent:
        # What an event applies and uses at once is there, and what it deletes is gone: SimKube's order.
        self._alive.update((obj["kind"], slot(obj)) for obj in event.applied)
        there = [(obj["kind"], slot(obj)) in self._alive for obj in event.deleted]
        self._alive.difference_update((obj["kind"], slot(obj)) for obj in event.deleted)
        applied = tuple(
            [self._object(obj, f"events[{i}].applied_objs[{j}]{describe(obj)}") for j, obj in enumerate(event.applied)]
        )
        deleted = []
        for j, obj in enumerate(event.deleted):
            if there[j]:
                deleted.append(obj)
            else:
                self._tell("S0002", f"events[{i}].deleted_objs[{j}]{describe(obj)}", "was not there to be deleted")
        return TraceEvent(event.ts, applied, tuple(deleted))

    def _object(self, given: dict[str, Any], place: str) -> dict[str, Any]:
        obj, gvk, told = copy.deepcopy(given), GVK.of(given), len(self.findings)
        if obj.get("status") is not None:
            self._tell("W0000", place, "has a status")
            del obj["status"]
        if str(gvk) not in self.trace.config:
            self._tell("S0004", place, f"{gvk} is not among the tracked kinds")
        if gvk == GVK("", "v1", "Secret") and (obj.get("data") or obj.get("stringData")):
            self._tell("S0003", place, "is a Secret with its contents")
            obj.pop("data", None)
            obj.pop("stringData", None)
        for path in template_paths(self.trace, obj):
            for template in find(obj, path):
                if isinstance(template, dict) and isinstance(template.get("spec"), dict):
                    self._pod_spec(template["spec"], str(given["metadata"].get("namespace") or "default"), place)
        if len(self.findings) == told:
            obj = given
        self._last[str(gvk), slot(given)] = obj
        if gvk == POD and obj is not given:
            self._note_pod(given, obj)
        return obj

    def _pod_spec(self, spec: dict[str, Any], namespace: str, place: str) -> None:
        account = next((spec[key] for key in _ACCOUNT_FIELDS if isinstance(spec.get(key), str) and spec[key]), None)
        if account is not None and ("ServiceAccount", f"{namespace}/{account}") not in self._alive:
            self._tell("E0001", place, f"ServiceAccount {namespace}/{account} is not in the trace")
            for key in _ACCOUNT_FIELDS:
                spec.pop(key, None)
        for reference in _REFERENCES:
            for holder in reference.holders:
                for entries in find(spec, holder):
                    if isinstance(entries, list):
                        self._entries(entries, reference, namespace, place)

    def _entries(self, entries: list[Any], reference: _Reference, namespace: str, place: str) -> None:
        kept = []
        for entry in entries:
            name = reference.name(entry) if isinstance(entry, dict) else None
            if not isinstance(name, str) or (reference.kind, f"{namespace}/{name}") in self._alive:
                kept.append(entry)
                continue
            self._tell(reference.code, place, f"{reference.kind} {namespace}/{name} is not in the trace")
            if reference.holders == ("/volumes",):  # its mounts still name it
                kept.append({"name": entry.get("name"), "emptyDir": {}})
        entries[:] = kept

    def _note_pod(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        try:
            old, new = pod_hash(before.get("spec") or {}), pod_hash(after.get("spec") or {})
        except (AttributeError, TypeError):  # containers that are no list of maps: nothing ran under such a spec
            return
        if old != new:
            self._renamed.setdefault((str(POD), slot(before)), {})[old] = new

    def _checked_index(self) -> dict[str, dict[str, int]]:
        index = {kind: dict(hashes) for kind, hashes in self.trace.index.items()}
        recorded: dict[tuple[str, str], dict[str, Any]] = {}
        for event in self.trace.events:
            recorded.update({(str(GVK.of(obj)), slot(obj)): obj for obj in event.applied})
        for (kind, name), obj in self._last.items():
            if name not in index.get(kind, {}):
                continue
            if index[kind][name] != spec_hash(recorded[kind, name].get("spec")):
                self._tell("S0001", f"index.{kind}.{name}", "is not the hash of the spec that was applied last")
            index[kind][name] = spec_hash(obj.get("spec"))
        return index

    def _checked_lives(self) -> dict[tuple[str, str], dict[int, tuple[PodLife, ...]]]:
        checked: dict[tuple[str, str], dict[int, tuple[PodLife, ...]]] = {}
        for owner, by_hash in self.trace.lifecycles.items():
            names = self._renamed.get(owner, {})
            mine = checked[owner] = {}
            for pod, lives in by_hash.items():
                place = f"pod_lifecycles.{owner[0]} {owner[1]}, pod hash {pod}"
                name = names.get(pod, pod)
                mine[name] = (*mine.get(name, ()), *self._sound(lives, place))
        return checked

    def _sound(self, lives: tuple[PodLife, ...], place: str) -> Iterator[PodLife]:
        for i, life in enumerate(lives):
            if life.start is not None and life.end is not None and life.end < life.start:
                self._tell("S0005", f"{place}[{i}]", f"ends at {life.end}, before its start at {life.start}")
                yield PodLife(life.start, life.start)
            else:
                yield life
