"""Write src/steersman/api/data/structs.json: what Go's JSON does with the fields of Kubernetes' structs.

    python scripts/compile_structs.py            write it; needs Go and its module proxy
    python scripts/compile_structs.py --check    exit 1 when the committed file is not a fresh one

By definition: `omit`, the fields that are left out when they are "", 0 or false (omitempty, and no pointer); `keep`,
the lists and maps that are not left out when they are empty, though nothing requires them; `types`, the Go types of
fields that cannot be told from their schema (v1.PodPhase is a string). The Go program in scripts/protobuf reads that
from the modules of Kubernetes 1.36 (Apache-2.0; go.mod there has the versions).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from steersman.api.go_json import go_type
from steersman.api.schema import SchemaError, definitions

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/steersman/api/data/structs.json"


def table() -> str:
    """Definition → {omit, types}, as JSON, a definition a line."""
    command = ["go", "run", "-mod=readonly", ".", "structs"]
    told = json.loads(subprocess.run(command, cwd=ROOT / "scripts/protobuf", check=True, capture_output=True).stdout)
    lines = []
    for name, found in sorted(told.items()):
        try:
            schema = definitions().get(name)
        except SchemaError:
            continue
        line: dict[str, Any] = {}
        if omit := [field for field in found["omit"] if field in schema.fields]:
            line["omit"] = omit
        if keep := [field for field in found["keep"] if field in schema.fields and field not in schema.required]:
            line["keep"] = keep
        types = {
            field: text
            for field, text in found["types"].items()
            if field in schema.fields and text != go_type(schema.fields[field])
        }
        if types:
            line["types"] = types
        if line:
            lines.append(f"{json.dumps(name)}: {json.dumps(line, sort_keys=True)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    fresh = table()
    if not parser.parse_args().check:
        TABLE.write_text(fresh)
    elif TABLE.read_text() != fresh:
        print(f"{TABLE.relative_to(ROOT)} is not what scripts/compile_structs.py writes", file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
