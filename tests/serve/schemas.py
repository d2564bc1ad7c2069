"""schemathesis, unmodified, on the server's own OpenAPI documents: `python -m tests.serve.schemas FOLDER` (make fuzz).

FOLDER gets a venv with it. The server is a whole control plane with its controllers and a virtual node. Each group's
document is given in pieces, since schemathesis takes minutes to read a large one; the pieces share the time. What is
behind `/proxy` is somebody else's, and left to the storm (`tests.serve.storm`).
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steersman import testing
from tests.source import ROOT

SCHEMATHESIS = "schemathesis==4.32.5"
PATHS = 12
"""Of a piece."""
REFERENCE = "#/components/schemas/"
HANG_SECONDS = 60
"""No answer takes so long, on the slowest machine."""
LEAST_SECONDS = 5
"""For a piece: below it schemathesis says nothing about most operations."""
HOOKS = "tests.serve.judged_by_schemathesis"


def main() -> int:
    """Runs schemathesis on piece after piece; 1 when it found a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="a group and version, such as apps/v1")
    given = parser.parse_args()
    program = install(given.folder.resolve())
    with testing.control_plane() as plane, tempfile.TemporaryDirectory() as folder:
        documents = read(plane, given.only)
        pieces = [(name, piece) for name, document in documents.items() for piece in cut(document)]
        share = max(LEAST_SECONDS, given.seconds / max(1, len(pieces)))
        failed = 0
        for number, (name, piece) in enumerate(pieces):
            path = Path(folder) / f"{number}.json"
            path.write_text(json.dumps(piece))
            command = [program, "run", str(path), *options(plane, Path(folder), given.seed, share)]
            environ = {**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
            failed += done.returncode != 0
            cases = [line.strip() for line in done.stdout.splitlines() if " generated, " in line]
            print(f"{name} piece {number}: {', '.join(cases) or 'no cases'}", flush=True)
            if done.returncode:
                print(f"FAULT of seed {given.seed} in {name}: {(done.stdout + done.stderr)[-6000:]}", flush=True)
        answering = fetch(plane, "/readyz") == b"ok"
    print(f"{len(pieces)} pieces of {len(documents)} documents, {failed} with faults, ready afterwards: {answering}")
    return 1 if failed or not answering else 0


def install(folder: Path) -> str:
    """The path of the program, in a venv of its own: it pins what our own tests pin otherwise."""
    program = folder / "bin" / "st"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", SCHEMATHESIS], check=True)
    return str(program)


def options(plane: Any, folder: Path, seed: int, seconds: float) -> list[str]:
    """What every piece is run with."""
    authority = folder / "ca.crt"
    authority.write_bytes(plane.ca)
    return [
        *("--url", plane.url, "--header", f"Authorization:Bearer {plane.token}", "--tls-verify", str(authority)),
        *("--phases", "coverage,fuzzing", "--checks", "no_fault_of_the_server", "--warnings", "off"),
        *("--max-time", str(int(seconds)), "--request-timeout", str(HANG_SECONDS), "--seed", str(seed), "--no-shrink"),
        *("--exclude-path-regex", "/proxy", "--suppress-health-check", "all"),
    ]  # fmt: skip


def fetch(plane: Any, path: str) -> bytes:
    """The body of a GET by the administrator."""
    context = ssl.create_default_context(cadata=plane.ca.decode())
    request = urllib.request.Request(plane.url + path, headers={"Authorization": f"Bearer {plane.token}"})
    with urllib.request.urlopen(request, context=context) as answer:
        return answer.read()


def read(plane: Any, only: str) -> dict[str, Any]:
    """Every document of the server by its group and version."""
    found = json.loads(fetch(plane, "/openapi/v3"))["paths"]
    urls = {name: each["serverRelativeURL"] for name, each in found.items() if name.endswith(only)}
    return {name: json.loads(fetch(plane, url)) for name, url in urls.items()}


def cut(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document in pieces of a few paths, each with the schemas it refers to."""
    paths, schemas = sorted(document["paths"].items()), document.get("components", {}).get("schemas", {})
    for start in range(0, len(paths), PATHS):
        some = dict(paths[start : start + PATHS])
        needed: dict[str, Any] = {}
        wanted = list(references(some))
        while wanted:
            name = wanted.pop()
            if name not in needed:
                needed[name] = schemas[name]
                wanted += references(schemas[name])
        yield {**document, "paths": some, "components": {"schemas": needed}}


def references(value: Any) -> Iterator[str]:
    """The names of the schemas that a part of a document refers to."""
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            yield target.removeprefix(REFERENCE)
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


if __name__ == "__main__":
    sys.exit(main())
