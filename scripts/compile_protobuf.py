"""Write src/steersman/serve/data/protobuf.json.z and the vectors of tests/serve/test_protobuf.py.

    python scripts/compile_protobuf.py            write both; needs Go and its module proxy
    python scripts/compile_protobuf.py --check    exit 1 when a committed file is not a fresh one

The Go program in scripts/protobuf reads the field numbers, JSON names and types by reflection from the struct tags of
the Kubernetes 1.36 modules (Apache-2.0; go.mod there has the versions). The shape of the table is described in
src/steersman/serve/data/README.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "scripts/protobuf"
TABLE = ROOT / "src/steersman/serve/data/protobuf.json.z"
VECTORS = ROOT / "tests/serve/data/protobuf.json.z"
SEED = "36"


def run(*arguments: str) -> str:
    """Standard output of the Go program."""
    command = ["go", "run", "-mod=readonly", ".", *arguments]
    return subprocess.run(command, cwd=PROGRAM, check=True, capture_output=True, text=True).stdout


def modules() -> dict[str, str]:
    """The Kubernetes modules that are read, with their versions."""
    return dict(re.findall(r"^\t(k8s\.io/\S+) (v\S+)$", (PROGRAM / "go.mod").read_text(), re.MULTILINE))


def table() -> bytes:
    """The packed table; messages are named by their place in it."""
    told = json.loads(run("table"))
    names = sorted(told["messages"])
    place = {name: index for index, name in enumerate(names)}
    messages: list[list[Any]] = []
    for name in names:
        fields = []
        for number, field, form, flags, *ref in told["messages"][name]:
            fields.append([number, field, form, "".join(sorted(flags)), *[place[target] for target in ref]])
        messages.append([name, fields])
    kinds = {gvk: place[name] for gvk, name in sorted(told["kinds"].items())}
    return packed({"sources": modules(), "kinds": kinds, "messages": messages})


def vectors() -> bytes:
    """One filled object per kind: [group/version/Kind, body in base64, its JSON]."""
    lines = [json.loads(line) for line in run("vectors", "1", SEED).splitlines()]
    return packed([[line["gvk"], line["body"], line["json"]] for line in lines])


def packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile the protobuf table and its test vectors.")
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing")
    check = parser.parse_args().check
    stale = []
    for path, fresh in ((TABLE, table()), (VECTORS, vectors())):
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(fresh)
        elif zlib.decompress(path.read_bytes()) != zlib.decompress(fresh):
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        sys.exit(f"not a fresh compile: {', '.join(stale)}; run python scripts/compile_protobuf.py")


if __name__ == "__main__":
    main()
