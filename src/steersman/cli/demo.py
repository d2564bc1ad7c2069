"""`steersman demo`: the main job, end to end: check finds, simulate replays, run serves kubectl."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

CHECKS: Final = (
    ("over_creation.py", "test_naive_over_creates", "test_careful_holds"),
    ("live_volumes.py", "test_by_name_deletes_live_volumes", "test_by_uid_holds"),
    ("false_ready.py", "test_existence_reports_ready_falsely", "test_success_holds"),
)
"""File, the test of the faulty variant, the test of the mended one."""
START_SECONDS: Final = 20.0
"""How long the server may take to answer for the first time."""
KUBECTL_SECONDS: Final = 60.0
VIRTUAL_NODES: Final = 3


class DemoFailed(Exception):
    """A step of the demo did not do what it says; the text tells which."""


def demo(
    examples: Annotated[Path, typer.Option(help="The examples folder of the repository.")] = Path("examples"),
) -> None:
    """Shows the three faces on real input: finds three known bugs, replays a trace, runs a control plane.

    Exit codes: 0 all went as described, 1 something did not, 2 the examples or kubectl are missing.
    """
    if not (examples / "web.yaml").is_file():
        typer.echo(f"steersman demo: no {examples}/web.yaml; run it in the repository, or give --examples", err=True)
        raise typer.Exit(2)
    from steersman.cli.kubectl import find_kubectl

    try:
        kubectl = find_kubectl()
    except FileNotFoundError as error:
        typer.echo(f"steersman demo: {error}", err=True)
        raise typer.Exit(2) from None
    from steersman.api.controller import ControllerError
    from steersman.check.scenario import ScenarioError

    start = time.monotonic()
    try:
        show_check(examples / "check")
        show_simulate(examples)
        show_run(examples / "web.yaml", kubectl)
    except (DemoFailed, ScenarioError, ControllerError) as error:
        typer.echo(f"steersman demo: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"\nAll three faces did what they should, in {time.monotonic() - start:.0f} s.")


def title(text: str) -> None:
    """A heading."""
    typer.echo(f"\n== {text}\n")


def say(text: str) -> None:
    """A line, at once: what follows may take a while."""
    typer.echo(text)
    sys.stdout.flush()


def show_check(folder: Path) -> None:
    """Three known bugs: found, minimised, explained; and their cures, which hold COMPLETE."""
    title("1. check: three bugs of real controllers, found and explained")
    from steersman.check import Session, sessions
    from steersman.check import check as check_one
    from steersman.check.load import load, run

    for file, faulty, mended in CHECKS:
        for name in (faulty, mended):
            session = Session()
            sessions.append(session)
            try:
                for target in load(f"{folder / file}::{name}"):
                    run(target, check_one)
            finally:
                sessions.remove(session)
            if not session.verdicts:
                raise DemoFailed(f"{file}::{name} checked nothing")
            verdict = session.verdicts[0]
            say(f"$ steersman check {folder / file}::{name}")
            if name == faulty:
                if verdict.holds:
                    raise DemoFailed(f"{file}::{name} should have been found to be wrong")
                verdict.violations = verdict.violations[:1]
            elif not verdict.holds or not verdict.complete:
                raise DemoFailed(f"{file}::{name} should hold COMPLETE")
            say(f"{verdict}\n")


def show_simulate(examples: Path) -> None:
    """A recorded trace, replayed in virtual time; the DeathStarBench too where the real inputs are found."""
    title("2. simulate: recorded clusters, replayed in virtual time")
    real = Path(os.environ.get("STEERSMAN_DATA", "../shared/data")) / "dsb-scaling.sktrace"
    for path, nodes in ((examples / "rollout.sktrace", "3"), (real, "20")):
        if not path.is_file():
            if path is not real:
                raise DemoFailed(f"{path} is missing")
            say("(dsb-scaling.sktrace: no real inputs here; set STEERSMAN_DATA)")
            continue
        call([sys.executable, "-m", "steersman", "simulate", str(path), "--nodes", nodes], "steersman")
        say("")


def show_run(manifest: Path, kubectl: str) -> None:
    """A server, and kubectl against it: three replicas, ready, scaled, deleted with all they own."""
    title("3. run: a control plane for kubectl")
    with tempfile.TemporaryDirectory(prefix="steersman-demo-") as folder, server(Path(folder)) as kubeconfig:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

        def k(*words: str) -> str:
            return call([kubectl, *words], "kubectl", environment)

        k("apply", "--server-side", "-f", str(manifest))
        k("rollout", "status", "deployment/web", "--timeout=60s")
        k("get", "deployments,replicasets,pods,nodes", "-o", "wide")
        scaled = Path(folder) / "web-5.yaml"
        scaled.write_text(manifest.read_text().replace("replicas: 3", "replicas: 5"))
        k("apply", "--server-side", "-f", str(scaled))
        k("rollout", "status", "deployment/web", "--timeout=60s")
        k("get", "pods")
        k("delete", "-f", str(manifest))
        wait_until_gone(kubectl, environment)
        say("$ kubectl get replicasets,pods\nNo resources found: its dependents went with it.")


def wait_until_gone(kubectl: str, environment: dict[str, str]) -> None:
    """Waits until the Deployment's dependents are collected."""
    end = time.monotonic() + KUBECTL_SECONDS
    command = [kubectl, "get", "replicasets,pods", "-o", "name"]
    while time.monotonic() < end:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=KUBECTL_SECONDS)
        if done.returncode == 0 and not done.stdout.strip():
            return
        time.sleep(0.2)
    raise DemoFailed("the Deployment's ReplicaSet and pods are still there")


@contextmanager
def server(folder: Path) -> Iterator[Path]:
    """`steersman run` in a folder, until the end of the block; gives its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    log = folder / "server.log"
    words = ["run", "--listen", "127.0.0.1:0", "--kubeconfig", str(kubeconfig)]
    words += ["--store", f"sqlite:{folder / 'steersman.db'}", "--virtual-nodes", str(VIRTUAL_NODES)]
    say(f"$ steersman run --virtual-nodes {VIRTUAL_NODES} …")
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "steersman", *words], stdout=output, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + START_SECONDS
            while not kubeconfig.is_file() or b"Ctrl-C" not in log.read_bytes():
                if process.poll() is not None or time.monotonic() > end:
                    raise DemoFailed(f"the server did not start:\n{log.read_text()}")
                time.sleep(0.05)
            say(log.read_text().rstrip())
            yield kubeconfig
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def call(command: list[str], shown: str, environment: dict[str, str] | None = None) -> str:
    """Runs a command and shows it with what it prints; raises `DemoFailed` when it fails."""
    words = command[3:] if shown == "steersman" else command[1:]
    say(f"$ {shown} {' '.join(words)}")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=KUBECTL_SECONDS)
    say(done.stdout.rstrip())
    if done.returncode:
        raise DemoFailed(f"{shown} {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
