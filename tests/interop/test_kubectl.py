"""The kubectl of the tests is found in the documented order, and is the one of the API's version."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.kubectl import find_kubectl


def a_program(folder: Path, name: str = "kubectl") -> str:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_the_order(tmp_path):
    chosen = a_program(tmp_path / "chosen", "kubectl-1.32")
    in_path = a_program(tmp_path / "path")
    python = str(tmp_path / "venv" / "python")
    environ = {"PATH": str(tmp_path / "path")}
    assert find_kubectl(environ, python) == in_path
    in_venv = a_program(tmp_path / "venv")
    assert find_kubectl(environ, python) == in_venv
    assert find_kubectl({**environ, "KUBECTL": chosen}, python) == chosen


@pytest.mark.parametrize(("environ", "told"), [({}, "no kubectl"), ({"KUBECTL": "/none"}, "KUBECTL=/none")])
def test_no_kubectl_is_an_error_with_a_remedy(tmp_path, environ, told):
    with pytest.raises(FileNotFoundError, match=told):
        find_kubectl({"PATH": str(tmp_path), **environ}, str(tmp_path / "python"))


def test_the_installed_kubectl_runs():
    kubectl = find_kubectl({"PATH": ""}, sys.executable)
    command = [kubectl, "version", "--client", "--output=json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["clientVersion"]["gitVersion"] == "v1.36.4"
