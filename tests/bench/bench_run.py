"""Acknowledged writes per second of the durable face on SQLite, with 1, 10 and 100 writers at a time.

`python tests/bench/bench_run.py [SECONDS]` measures twice: at the two heads (request machine, group commit, fsync), and
over HTTPS against `steersman run` in its own process. Writers create a pod of 2 KB, patch its labels, patch its status
and delete it. Prints writes a second, the mean and the 99th percentile of a write's time, and writes per group.
No gate: the disk decides; its own fsync is measured first, on the file system of the temporary directory.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import statistics
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

import orjson
import yaml

import steersman.journal as sj
from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.run import garbage
from steersman.run.daemon import SWITCH_SECONDS
from steersman.run.head import Heads

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.bench_store import template
from tests.run.client import Served

WRITERS = (1, 10, 100)
PODS = "/api/v1/namespaces/default/pods"


def fsync_ms(folder: Path) -> float:
    """The median time of a small append and its fsync."""
    times = []
    with open(folder / "probe", "wb") as file:
        for _ in range(50):
            start = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def show(title: str, writers: int, times: list[float], seconds: float, groups: float) -> None:
    ordered = sorted(times)
    p99 = ordered[int(len(ordered) * 0.99)] * 1000
    per_group = f", {groups:.1f} writes a group" if groups else ""
    mean = statistics.mean(ordered) * 1000
    rate = len(ordered) / seconds
    print(f"{title} {writers:>4} writers: {rate:>6.0f} writes/s, mean {mean:.2f} ms, p99 {p99:.2f} ms{per_group}")


def steps(name: str) -> list[tuple[str, str, Any]]:
    """(verb, subresource, body) of one pod's life."""
    pod = template(1)
    body = {"metadata": {"name": name, "labels": dict(pod["metadata"]["labels"])}, "spec": pod["spec"]}
    return [
        ("create", "", body),
        ("patch", "", {"metadata": {"labels": {"step": "two"}}}),
        ("patch", "status", {"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}),
        ("delete", "", None),
    ]


async def at_the_heads(folder: Path, writers: int, seconds: float) -> None:
    journal = sj.open(f"sqlite:{folder / f'heads-{writers}.db'}")
    heads = Heads(Api(Kinds.builtin()), journal)
    heads.start()
    await heads.write(
        Request("create", Key("", "Namespace", "", "default"), {"metadata": {"name": "default"}}, actor="a")
    )
    groups = 0
    append = heads._append

    def counted(group: Any) -> Any:
        nonlocal groups
        groups += 1
        return append(group)

    heads._append = counted  # type: ignore[method-assign]
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def write(writer: int) -> None:
        number = 0
        while True:
            number += 1
            name = f"p-{writer}-{number}"
            for verb, subresource, body in steps(name):
                start = time.perf_counter()
                if start > end:
                    return
                await heads.write(Request(verb, Key("", "Pod", "default", name), body, subresource, actor="bench"))
                times.append(time.perf_counter() - start)

    await asyncio.gather(*[write(number) for number in range(writers)])
    show("heads", writers, times, seconds, len(times) / groups)
    await heads.close()
    journal.close()


async def over_https(served: Served, writers: int, seconds: float) -> None:
    config = yaml.safe_load(served.kubeconfig.read_text(encoding="utf-8"))
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    port = int(cluster["server"].rpartition(":")[2])
    token = config["users"][0]["user"]["token"]
    times: list[float] = []
    begin = time.perf_counter()

    async def write(writer: int) -> None:
        reader, out = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        number = 0
        while True:
            number += 1
            name = f"p-{writers}-{writer}-{number}"
            for verb, subresource, body in steps(name):
                start = time.perf_counter()
                if start > begin + seconds:
                    out.close()
                    return
                out.write(message(verb, name, subresource, body, token))
                head = await reader.readuntil(b"\r\n\r\n")
                assert head[9:12] in (b"200", b"201"), head
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                times.append(time.perf_counter() - start)

    await asyncio.gather(*[write(number) for number in range(writers)])
    show("https", writers, times, seconds, 0)


def message(verb: str, name: str, subresource: str, body: Any, token: str) -> bytes:
    method = {"create": "POST", "patch": "PATCH", "delete": "DELETE"}[verb]
    path = PODS if verb == "create" else f"{PODS}/{name}{'/' + subresource if subresource else ''}"
    kind = "application/merge-patch+json" if verb == "patch" else "application/json"
    data = b"" if body is None else orjson.dumps(body)
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
    return f"{head}content-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def main() -> None:
    seconds = float(sys.argv[1]) if sys.argv[1:] else 5.0
    with tempfile.TemporaryDirectory(dir=os.environ.get("STEERSMAN_BENCH_DIR")) as name:
        folder = Path(name)
        print(f"a 4 KB append with fsync takes {fsync_ms(folder):.2f} ms here")
        garbage.switch_off()
        garbage.freeze()
        sys.setswitchinterval(SWITCH_SECONDS)
        for writers in WRITERS:
            asyncio.run(at_the_heads(folder, writers, seconds))
        with Served(folder) as served:
            for writers in WRITERS:
                asyncio.run(over_https(served, writers, seconds))


if __name__ == "__main__":
    main()
