"""This API server beside kube-apiserver with etcd: rates, cold start, memory; both pinned to the same two cores.

    scripts/oracle.py OUT kube-apiserver etcd
    scripts/bench_api.py OUT/bin [--rounds 3] [--seconds 3] [--pods 10000] [--only get,list,patch,watch,create,memory]

Both store durably (SQLite FULL; etcd fsyncs), speak TLS, and answer JSON to one load client (scripts/apiload, Go) on
the same cores. Rounds alternate between the two; the figures are medians, and the ratio of each round stands beside
theirs. Only one server runs at a time. Both are compiled before: this one to bytecode, as pip does when it installs a
package.
"""

from __future__ import annotations

import argparse
import compileall
import http.client
import json
import os
import resource
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.interop.conformance.real import free_port, real_server, running

ROOT: Final = Path(__file__).resolve().parent.parent
CORES: Final = "0,1"
FILLED: Final = 1000
EVENTS: Final = 2000
WATCHERS: Final = 50
START_SECONDS: Final = 120.0
RUN: Final = "import sys; from steersman.cli import main; sys.argv[0] = 'steersman'; main()"
TARGETS: Final = {"get": 2.0, "list": 5.0, "create": 1.0, "patch": 1.0, "watch": 3.0}
"""How many times kube-apiserver's rate is aimed at."""
SECTIONS: Final = (*TARGETS, "memory")


class Server(NamedTuple):
    """A server that is ready: where, with which token, its processes, and how long it took from nothing."""

    url: str
    token: str
    pids: tuple[int, ...]
    start_seconds: float


def installed(folder: Path) -> Path:
    """A copy of the package, compiled: what an installation has. To be the first of PYTHONPATH."""
    shutil.copytree(ROOT / "src/steersman", folder / "steersman", ignore=shutil.ignore_patterns("__pycache__"))
    if not compileall.compile_dir(folder, quiet=1):
        raise SystemExit(f"the package in {folder} could not be compiled")
    return folder


@contextmanager
def ours(library: Path, folder: Path) -> Iterator[Server]:
    """`steersman run` without controllers, durable in SQLite."""
    kubeconfig = folder / "kubeconfig"
    command = ["env", f"PYTHONPATH={library}", "taskset", "-c", CORES, sys.executable, "-c", RUN, "run"]
    command += ["--listen", f"127.0.0.1:{free_port()}"]
    command += ["--store", f"sqlite:{folder / 'store.db'}", "--kubeconfig", str(kubeconfig)]
    command += ["--disable-controllers", "*,kube-scheduler,kubelet"]
    began = time.monotonic()
    with running(command, folder / "steersman.log") as process:
        while not kubeconfig.exists():
            if process.poll() is not None or time.monotonic() > began + START_SECONDS:
                raise SystemExit(f"steersman did not start; see {folder / 'steersman.log'}")
            time.sleep(0.01)
        config = yaml.safe_load(kubeconfig.read_text())
        url, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
        await_ready(url, token)
        yield Server(url, token, (process.pid,), time.monotonic() - began)


@contextmanager
def theirs(binaries: Path, folder: Path) -> Iterator[Server]:
    """kube-apiserver and etcd."""
    began = time.monotonic()
    with real_server(binaries, folder, prefix=["taskset", "-c", CORES]) as real:
        yield Server(real.url, real.tokens["admin"], real.pids, time.monotonic() - began)


def ask(server: Server, method: str, path: str, body: Any = None) -> int:
    """The status of one request."""
    where = urlsplit(server.url)
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=10, context=context)
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    return connection.getresponse().status


def await_ready(url: str, token: str) -> None:
    """Waits until /readyz says ok."""
    server, end = Server(url, token, (), 0.0), time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            if ask(server, "GET", "/readyz") == 200:
                return
        except OSError:
            pass
        time.sleep(0.01)
    raise SystemExit(f"{url} was not ready within {START_SECONDS:.0f} s")


def resident(server: Server) -> int:
    """Bytes of all its processes."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in server.pids]
    return sum(pages) * resource.getpagesize()


def measure(
    server: Server, load: Callable[..., dict[str, float]], only: list[str], pods: int, round_: int
) -> dict[str, float]:
    """One round against a server that has nothing yet: what `only` names. `pods` are for the memory, measured once."""
    found = {"cold start s": server.start_seconds}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    ask(server, "POST", "/api/v1/namespaces/default/serviceaccounts", account)
    load(server, "fill", clients=8, count=FILLED, tag="fill")
    for clients in (1, 32):
        for mode in ("get", "list", "patch"):
            if mode in only:
                found[f"{mode} {clients}"] = load(server, mode, clients=clients, tag=f"r{round_}")["rate"]
    if "watch" in only:
        found[f"watch {WATCHERS}"] = load(server, "watch", clients=WATCHERS, count=EVENTS, tag=f"w{round_}")["rate"]
    for clients in (1, 32) if "create" in only else ():
        found[f"create {clients}"] = load(server, "create", clients=clients, tag=f"c{round_}x{clients}")["rate"]
    if round_ == 0 and "memory" in only:
        load(server, "fill", clients=8, count=pods, tag="more")
        found["resident MB"] = resident(server) / 1e6
    return found


def main() -> None:
    """See the module's text. Exits with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(SECTIONS), help="some of them; cold start is always measured")
    options = parser.parse_args()
    only = options.only.split(",")
    for unknown in set(only).difference(SECTIONS):
        parser.error(f"--only {unknown}: choose from {', '.join(SECTIONS)}")
    rounds: dict[str, list[dict[str, float]]] = {"steersman": [], "kubernetes": []}
    with tempfile.TemporaryDirectory() as scratch:
        library, program = installed(Path(scratch) / "library"), Path(scratch) / "apiload"
        environ = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
        subprocess.run(["go", "build", "-o", program, "."], cwd=ROOT / "scripts/apiload", env=environ, check=True)

        def load(server: Server, mode: str, **more: Any) -> dict[str, float]:
            words = [word for name, value in more.items() for word in (f"-{name}", str(value))]
            command = ["taskset", "-c", CORES, program, "-url", server.url, "-token", server.token, "-mode", mode]
            command += ["-seconds", str(options.seconds), *words]
            return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        for round_ in range(options.rounds):
            for name in rounds:
                folder = Path(scratch) / f"{name}-{round_}"
                folder.mkdir()
                with (
                    ours(library, folder)
                    if name == "steersman"
                    else theirs(options.binaries.resolve(), folder) as server
                ):
                    rounds[name].append(measure(server, load, only, options.pods, round_))
    raise SystemExit(report(rounds))


def report(rounds: dict[str, list[dict[str, float]]]) -> int:
    """Prints medians and their ratio; 1 when a target is missed."""
    missed = 0
    print(f"{'':16}{'steersman':>12}{'kubernetes':>12}{'ratio':>8}   {'target':12}ratio of each round")
    for what in rounds["steersman"][0]:
        pairs = [(one[what], two[what]) for one, two in zip(*rounds.values(), strict=True) if what in one]
        mine, other = (statistics.median(rates) for rates in zip(*pairs, strict=True))
        target = TARGETS.get(what.partition(" ")[0])
        held = target is None or mine >= target * other
        if what == "cold start s":
            held, wanted = mine <= 1.0, "<= 1 s"
        elif what == "resident MB":
            held, wanted = mine <= other / 3, "<= 1/3"
        else:
            wanted = f">= {target}x"
        missed += not held
        each = " ".join(f"{one / two:.2f}" for one, two in pairs) + ("" if held else "   MISSED")
        print(f"{what:16}{mine:12.2f}{other:12.2f}{mine / other:8.2f}   {wanted:12}{each}")
    return 1 if missed else 0


if __name__ == "__main__":
    main()
