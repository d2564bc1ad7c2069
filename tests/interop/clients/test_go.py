"""Go: a controller-runtime manager and client-go informers (tests/interop/go), built here, against our server."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.clients.samples import a_definition

MODULE = Path(__file__).parent.parent / "go"
PARTS = [
    "typed informer with protobuf",
    "dynamic informer",
    "metadata informer",
    "manager",
    "leader election",
]
BUILD_SECONDS = 1200
"""client-go and what it needs, compiled for the first time, on a busy machine."""
SECONDS = 660
"""More than the limit of the program."""


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    go = shutil.which("go")
    assert go, "Go is not in PATH: `make test-interop` needs it"
    target = tmp_path_factory.mktemp("go") / "interop"
    command = ["nice", "-n", "19", go, "build", "-o", str(target), "."]
    environ = {"GOFLAGS": "-p=2", **os.environ}
    subprocess.run(command, cwd=MODULE, env=environ, check=True, timeout=BUILD_SECONDS)
    return target


@pytest.mark.interop
def test_a_manager_and_informers(control_plane, namespace, program):
    control_plane.client.create(a_definition("sites", "Site"))
    environ = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    done = subprocess.run([program], env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    worked = [line.partition(" (")[0] for line in done.stdout.splitlines()]
    assert worked == [f"ok {part}" for part in PARTS], done.stdout + done.stderr
    assert done.returncode == 0
