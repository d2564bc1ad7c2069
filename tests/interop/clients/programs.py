"""The programs that are run: the venv's kubectl, and those `make test-interop` fetched or the environment names."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from steersman.cli.kubectl import find_kubectl

SECONDS = 120
"""More than the `--timeout` of any command, so that what it waits for is told."""


def kubectls() -> Iterator[str]:
    """Paths: the venv's, then those in $KUBECTLS (paths with colons between) and in $CLIENTS, a folder."""
    yield find_kubectl()
    yield from filter(None, os.environ.get("KUBECTLS", "").split(":"))
    if folder := os.environ.get("CLIENTS"):
        yield from (str(path) for path in sorted(Path(folder).glob("kubectl-*")) if path.suffix != ".part")


class Program:
    """A program with a kubeconfig and a home of its own."""

    def __init__(self, path: str, plane, home: Path) -> None:
        self.path = path
        self.environ = {**os.environ, "KUBECONFIG": str(plane.kubeconfig), "HOME": str(home)}

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
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr
