"""What the kubelet of a virtual node answers on its port: which pods it has, what they use, that it is well.

Paths and shapes: kubernetes pkg/kubelet/server/server.go and k8s.io/kubelet pkg/apis/stats/v1alpha1, release 1.36.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import httptools
import orjson

from steersman.api.times import time_text
from steersman.kernel.streams import Duplex, Site
from steersman.nodes.usage import running

KUBELET: Final = 10250
MAX_HEAD: Final = 64 << 10
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class _Asked:
    """The head of a request."""

    def __init__(self) -> None:
        self.target = b""
        self.done = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_message_complete(self) -> None:
        self.done = True


async def kubelet(site: Site, duplex: Duplex) -> None:
    """Answers one request and closes."""
    asked, size = _Asked(), 0
    parser = httptools.HttpRequestParser(asked)
    while not asked.done and size < MAX_HEAD:
        data = await duplex.read()
        if not data:
            return
        size += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            break
        except httptools.HttpParserError:
            await duplex.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return
    path = asked.target.decode("ascii", "replace").partition("?")[0].rstrip("/") or "/"
    method = parser.get_method().decode("ascii", "replace")
    answer = ANSWERS.get(path)
    if answer is None:
        status, kind, body = "404 Not Found", TEXT, b"404 page not found\n"
    elif method not in ("GET", "HEAD"):
        status, kind, body = "405 Method Not Allowed", TEXT, b"405: Method Not Allowed"
    else:
        status, (kind, body) = "200 OK", answer(site)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    await duplex.write(head.encode() + (b"" if method == "HEAD" else body))


def _healthy(site: Site) -> tuple[str, bytes]:
    return TEXT, b"ok"


def _pods(site: Site) -> tuple[str, bytes]:
    items = [pod.value for pod in site.pods()]
    return JSON, orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}, default=dict)


def _summary(site: Site) -> tuple[str, bytes]:
    now = time_text(int(time.time()))
    pods, sums = [], [0, 0]
    for pod, names, use in running(site.pods()):
        sums = [sums[0] + use.cpu * len(names), sums[1] + use.memory * len(names)]
        meta = pod.metadata
        pods.append(
            {
                "podRef": {"name": pod.key.name, "namespace": pod.key.namespace, "uid": pod.uid},
                "startTime": meta.get("creationTimestamp"),
                "containers": [
                    {"name": name, "startTime": meta.get("creationTimestamp"), **_used(now, use.cpu, use.memory)}
                    for name in names
                ],
                **_used(now, use.cpu * len(names), use.memory * len(names)),
            }
        )
    node = {"nodeName": site.node.key.name, "startTime": site.node.metadata.get("creationTimestamp")}
    return JSON, orjson.dumps({"node": {**node, **_used(now, *sums)}, "pods": pods})


def _used(now: str, cpu: int, memory: int) -> Mapping[str, Any]:
    return {
        "cpu": {"time": now, "usageNanoCores": cpu},
        "memory": {"time": now, "usageBytes": memory, "workingSetBytes": memory},
    }


ANSWERS: Final[Mapping[str, Callable[[Site], tuple[str, bytes]]]] = {
    "/healthz": _healthy,
    "/pods": _pods,
    "/runningpods": _pods,
    "/stats/summary": _summary,
}
