"""For tests of what talks to Kubernetes: a real control plane in the test's own process. See docs/testing.md.

Works with any test runner; pytest has the fixture `control_plane` as well, from the plugin named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.api.controller import Controller
    from steersman.kernel.ports import NodeStreams
    from steersman.run.embed import Embedded
    from steersman.run.exchange import Driver
    from steersman.serve.virtual import VirtualStreams

pytest_plugins = ("steersman.testing.plugin",)
"""Read by pytest alone, which finds this package by its entry point."""

__all__ = ["VirtualStreams", "control_plane", "replay"]


def control_plane(
    *,
    virtual_nodes: int = 1,
    store: str = "memory:",
    controllers: Sequence[type[Controller] | str] = ("*",),
    streams: NodeStreams | None = None,
    instant: bool = False,
    drivers: Mapping[str, Driver] | None = None,
    definitions: Sequence[Mapping[str, Any]] = (),
) -> Embedded:
    """A real control plane in a thread of this process, for `with`: API server, controllers, scheduler, virtual nodes.

        with sm.testing.control_plane() as cp:
            subprocess.run(["kubectl", "get", "nodes"], env={**os.environ, "KUBECONFIG": str(cp.kubeconfig)})
            cp.client.create({"apiVersion": "v1", "kind": "ConfigMap", ...})
            other = cp.workspace()          # a second one in the same process, made in milliseconds

    `cp` is a `run.embed.Plane`: `url`, `kubeconfig`, `token`, `ca`, `client`, `workspace()`. `controllers`: classes,
    and names as kube-controller-manager's `--controllers` has them: "*" for all that are built in, "NAME" for one,
    "-NAME" for what somebody else runs (a controller, `kube-scheduler`, `kubelet`). `streams`: what answers `kubectl
    exec`, `attach`, `port-forward` and `logs`, such as coroutines of the test's own (`VirtualStreams`).
    `drivers`: who answers `c.external(system, request)`, by system: functions of the request. `definitions`: the
    CustomResourceDefinitions of the kinds that classes among `controllers` are about; apply them as well.
    `instant`: pods on virtual nodes start and end at once, not after seconds. Raises `StartError` and its like when it
    cannot start.
    """
    from steersman.run.embed import Embedded

    return Embedded(
        virtual_nodes=virtual_nodes,
        store=store,
        controllers=controllers,
        streams=streams,
        instant=instant,
        drivers=drivers,
        definitions=definitions,
    )


def replay(target: str | Path, schedule: str) -> None:
    """Takes the steps of a schedule in the scenario it was found in, those that are still possible, then lets the run
    come to rest; what is violated on the way raises `AssertionError`. What `steersman check --export-test` writes.

    `target`: `FILE::NAME`; `schedule`: the text of a schedule. Raises `ScenarioError` and `ScheduleError`.
    """
    from steersman.check import Session, check, saved, sessions
    from steersman.check.load import load, run

    session = Session()
    session.replay, session.lenient = saved.parse(schedule, Path("the schedule")), True
    sessions.append(session)
    try:
        for one in load(str(target)):
            run(one, check)
    finally:
        sessions.remove(session)
    for verdict in session.verdicts:
        verdict.assert_holds()


def __getattr__(name: str) -> Any:
    """`VirtualStreams`, loaded when it is first used: every run of pytest imports this package."""
    if name == "VirtualStreams":
        from steersman.serve.virtual import VirtualStreams

        return VirtualStreams
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
