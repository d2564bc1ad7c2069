"""Tables of what Go makes of Kubernetes' structs, as scripts/protobuf tells it: a definition a line."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steersman.api.schema import Schema, SchemaError, definitions

ROOT = Path(__file__).resolve().parent.parent


def compiled(which: str, entry: Callable[[str, Schema, Any], dict[str, Any]]) -> str:
    """The table `which` as JSON; `entry` makes a definition's line of its name, its schema and what Go tells of it.
    Definitions that are not served, and empty lines, are left out."""
    command = ["go", "run", "-mod=readonly", ".", which]
    told = json.loads(subprocess.run(command, cwd=ROOT / "scripts/protobuf", check=True, capture_output=True).stdout)
    lines = []
    for name, found in sorted(told.items()):
        try:
            line = entry(name, definitions().get(name), found)
        except SchemaError:
            continue
        if line:
            lines.append(f"{json.dumps(name)}: {json.dumps(line, sort_keys=True)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_or_check(about: str, target: Path, fresh: str) -> None:
    """Writes the table; with --check, exits 1 when the committed one is another. `about`: the text of the script."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        target.write_text(fresh)
    elif target.read_text() != fresh:
        print(f"{target.relative_to(ROOT)} is stale: run {Path(sys.argv[0]).name}", file=sys.stderr)
        raise SystemExit(1)
