"""A small scenario for every built-in controller: what each is checked with.

A scenario says what the controller is for, by `converges` and `always`; how deep it is looked into, and with which
faults, says who checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import steersman as sm
from tests.check.targets import cluster, nodes, services, storage, workloads

TARGETS: Final[Mapping[str, Callable[[], sm.Scenario]]] = {
    name: make for part in (workloads, services, nodes, storage, cluster) for name, make in part.TARGETS.items()
}
"""By the names of `controllers.builtin.BY_NAME`; after a colon, which side of that controller it is about."""

ASSUMED: Final[Mapping[str, frozenset[str]]] = {
    "never too many": frozenset({"rewinds", "leaders", "edits"}),
    "two names at most": frozenset({"edits"}),
    "within bounds or as somebody said": frozenset({"edits"}),
}
"""Faults that a claim about every state assumes away; what is claimed of the end holds under all of them. Two instances
of a controller, or one that has gone back in time, do not know what was made a moment ago: there is a pod too many
until they do (in Kubernetes as well). And somebody who edits may ask for more than the claim says."""


def target(name: str, faults: Iterable[str] = ()) -> sm.Scenario:
    """The scenario of a controller, with what it claims under some faults."""
    scenario = TARGETS[name]()
    broken = {claim for claim, assumed in ASSUMED.items() if not assumed.isdisjoint(faults)}
    scenario.properties = [each for each in scenario.properties if each.name not in broken]
    return scenario
