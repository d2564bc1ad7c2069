"""How long the pods of a replay run: the recorded lives of a trace, dealt out to the pods that the simulation makes.

A pod takes its life from its nearest owner that has any; a pod without an owner is its own. The lives of an owner are
dealt in launch order, by the hash of the pod's spec; after the last one it begins again. SimKube 2.7 does the same
for custom kinds (acrlabs/simkube 4ff5124, sk-driver/src/mutation.rs), but counts a hash over the whole simulation,
where here each owner has its own count; and for built-in kinds it takes the lives of whichever hash its map gives
first, where here an owner without this very hash deals all its lives, in the order of their start. (Defaults and
admission differ from cluster to cluster, so a hash may well be unknown.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from steersman.trace.podlife import PodLife
from steersman.trace.recording import Trace
from steersman.trace.spechash import pod_hash

Owner = tuple[str, str]
"""(`group/version.Kind`, `namespace/name`), as a trace names owners."""


class Deck(NamedTuple):
    """Lives to deal in turn. `hash` is None for those of an owner whatever the pod's spec."""

    owner: Owner
    hash: int | None
    lives: tuple[PodLife, ...]


class Lives:
    """The recorded lives of a trace. False if there are none."""

    def __init__(self, trace: Trace) -> None:
        self._by_owner = trace.lifecycles
        self._merged: dict[Owner, tuple[PodLife, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_owner)

    def deck(self, owners: Iterable[Owner], spec: Mapping[str, Any]) -> Deck | None:
        """Where a pod's life comes from; None if it has no end. `owners`: nearest first."""
        for owner in owners:
            by_hash = self._by_owner.get(owner)
            if by_hash:
                found = pod_hash(spec)
                if found in by_hash:
                    return Deck(owner, found, by_hash[found])
                return Deck(owner, None, self._all(owner))
        return None

    def _all(self, owner: Owner) -> tuple[PodLife, ...]:
        lives = self._merged.get(owner)
        if lives is None:
            every = [life for by_hash in self._by_owner[owner].values() for life in by_hash]
            every.sort(key=lambda life: (life.start is None, life.start or 0, life.end is None, life.end or 0))
            lives = self._merged[owner] = tuple(every)
        return lives
