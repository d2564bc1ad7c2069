"""The programs that are run: the venv's kubectl, and those `make test-interop` fetched or the environment names."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from steersman.cli.kubectl import find_kubectl
from tests.interop.patience import COMMAND_SECONDS


def kubectls() -> Iterator[str]:
    """Paths: the venv's, then those in $KUBECTLS (paths with colons between) and those that were fetched."""
    yield find_kubectl()
    yield from filter(None, os.environ.get("KUBECTLS", "").split(":"))
    yield from fetched("kubectl")


def fetched(name: str) -> Iterator[str]:
    """Paths of the programs NAME-VERSION in the folder $CLIENTS."""
    if folder := os.environ.get("CLIENTS"):
        yield from (str(path) for path in sorted(Path(folder).glob(f"{name}-*")) if path.suffix != ".part")


def title(path: str) -> str:
    """How pytest names the tests of a program."""
    return Path(path).name


class Program:
    """A program with a kubeconfig and a home of its own."""

    def __init__(self, path: str, plane, home: Path, **environ: str) -> None:
        self.path = path
        self.environ = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "HOME": str(home), **environ}

    def __call__(self, *words: str, code: int = 0, stdin: str | None = None, **environ: str) -> str:
        """What it printed; a line of words may be given as one. Asserts the exit code."""
        if len(words) == 1:
            words = tuple(words[0].split())
        done = subprocess.run(
            [self.path, *words],
            env={**self.environ, **environ},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    @property
    def minor(self) -> int:
        """Of a kubectl: 35 is 1.35."""
        return int(json.loads(self("version --client -o json"))["clientVersion"]["minor"].rstrip("+"))

    def start(self, *words: str, **how) -> subprocess.Popen:
        """The program, going on."""
        return subprocess.Popen([self.path, *words], env=self.environ, **how)
