"""What virtual nodes answer: the logs of pods that do not really run, and programs that do, in this process.

A virtual container runs no process, so `kubectl exec` is refused unless somebody gave `VirtualStreams` a program of
that name: a coroutine on the client's streams. Port-forward works the same way, with a coroutine for a port. So a test
or a demo has commands and ports that really answer, and everything between kubectl and them is what a real node has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from steersman.api.errors import bad_request, internal, quote
from steersman.kernel.object import Object
from steersman.kernel.streams import Duplex, LogQuery, Session, Site, Streams, Target, Tunnel
from steersman.nodes.logs import Line, chosen, is_running, lines, no_log, written
from steersman.serve.kubelet import KUBELET, kubelet

Program = Callable[[Streams, Sequence[str], Object], Awaitable[int]]
"""Runs a command: its streams, its words from the command's name on, the pod. Returns the exit code."""
Port = Callable[[Duplex, Object], Awaitable[None]]
"""Serves one connection to a port of a pod."""
LINES: Final = 500
"""Lines of a log that are sent at a time."""


class VirtualStreams:
    """A `NodeStreams`. `programs`: by the first word of a command; `ports`: by number; `main` is what `kubectl attach`
    joins, as if it were the first process of every container."""

    def __init__(
        self,
        programs: Mapping[str, Program] | None = None,
        ports: Mapping[int, Port] | None = None,
        main: Program | None = None,
    ) -> None:
        self.programs = dict(programs or {})
        self.ports = dict(ports or {})
        self.main = main

    async def logs(self, target: Target, query: LogQuery) -> AsyncIterator[bytes]:
        """See NodeStreams."""
        refusal = no_log(target.pod.value, target.container, query.previous)
        if refusal is not None:
            raise refusal
        return _printed(target, query)

    async def execute(self, target: Target, command: Sequence[str], tty: bool) -> Session:
        """See NodeStreams."""
        _running(target)
        program = self.programs.get(command[0])
        if program is None:
            raise bad_request(_nothing_runs(target, f"the command {quote(command[0])}"))
        return lambda streams: program(streams, command, target.pod)

    async def attach(self, target: Target, tty: bool) -> Session:
        """See NodeStreams."""
        _running(target)
        main = self.main
        if main is None:
            raise bad_request(_nothing_runs(target, "attach"))
        return lambda streams: main(streams, (), target.pod)

    async def forward(self, target: Target, port: int) -> Tunnel:
        """See NodeStreams."""
        if (target.pod.value.get("status") or {}).get("phase") != "Running":
            raise internal("error forwarding port: the pod is not running")
        serve = self.ports.get(port)
        if serve is None:
            raise bad_request(_nothing_runs(target, f"port {port}"))
        return lambda duplex: serve(duplex, target.pod)

    async def dial(self, site: Site, port: int) -> Tunnel:
        """See NodeStreams."""
        if port != KUBELET:
            name = site.node.key.name
            raise bad_request(
                f"node {name} is a virtual node, where nothing but the kubelet answers, on port {KUBELET}"
            )
        return lambda duplex: kubelet(site, duplex)


def _running(target: Target) -> None:
    """Raises ApiError 500, with the kubelet's words, unless the container runs."""
    if not is_running(target.pod.value, target.container):
        raise internal(f"unable to upgrade connection: container not found ({quote(target.container)})")


def _nothing_runs(target: Target, what: str) -> str:
    name, node = target.pod.key.name, target.pod.node
    return (
        f"pod {name} is on the virtual node {node}, where nothing really runs, and no program answers {what} there; "
        "give one to VirtualStreams (docs/testing.md)"
    )


async def _printed(target: Target, query: LogQuery) -> AsyncIterator[bytes]:
    """What a container printed, and, with `follow`, what it prints until it ends or its pod goes."""
    pod, container = target.pod.value, target.container
    log = lines(pod, container, query.previous)
    for chunk in _chunks(chosen(log, query), query.timestamps):
        yield chunk
    if not query.follow or query.previous or not is_running(pod, container):
        return
    shown = len(log)
    async for later in target.changes():
        log = lines(later.value, container)
        fresh = [line for line in log[shown:] if query.since is None or line.time >= query.since]
        shown = len(log)
        for chunk in _chunks(fresh, query.timestamps):
            yield chunk
        if not is_running(later.value, container):
            return


def _chunks(log: Sequence[Line], timestamps: bool) -> list[bytes]:
    texts = written(log, timestamps)
    return [b"".join(islice(texts, LINES)) for _ in range(0, len(log), LINES)]
