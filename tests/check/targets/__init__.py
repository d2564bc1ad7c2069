"""A small scenario for every built-in controller: what each is checked with.

A scenario says what the controller is for, by `converges` and `always`; how deep it is looked into, and with which
faults, says who checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import steersman as sm
from tests.check.targets import cluster, nodes, services, storage, workloads

TARGETS: Final[Mapping[str, Callable[[], sm.Scenario]]] = {
    name: make for part in (workloads, services, nodes, storage, cluster) for name, make in part.TARGETS.items()
}
"""By the names of `controllers.builtin.BY_NAME`."""
