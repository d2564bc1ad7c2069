"""Write src/steersman/api/data/zeros.json: what Kubernetes shows of a field that nobody has set.

    python scripts/compile_zeros.py            write it; needs Go and its module proxy
    python scripts/compile_zeros.py --check    exit 1 when the committed file is not a fresh one

Kubernetes answers with the JSON of Go structs, and Go shows fields without omitempty and every struct, even an empty
one. The Go program in scripts/protobuf reads that from the modules of Kubernetes 1.36 (Apache-2.0; go.mod there has the
versions). Fields that the API requires are left out, since they are there anyway, except in a status, of which nothing
is required; so are an object's own metadata.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from steersman.api.kinds import Kinds
from steersman.api.schema import Schema, SchemaError, definitions

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/steersman/api/data/zeros.json"


def table() -> str:
    """Definition → field → value, as JSON, a definition a line."""
    command = ["go", "run", "-mod=readonly", ".", "zeros"]
    told = json.loads(subprocess.run(command, cwd=ROOT / "scripts/protobuf", check=True, capture_output=True).stdout)
    reported: set[str] = set()
    for kind in Kinds.builtin().all():
        if "status" in kind.schema.fields:
            reach(kind.schema.fields["status"], reported)
    lines = []
    for name, fields in sorted(told.items()):
        try:
            schema = definitions().get(name)
        except SchemaError:
            continue
        own = {"metadata"} if "kind" in schema.fields else set()
        shown = {field: value for field, value in fields.items() if field not in own}
        if name not in reported:
            shown = unset(schema, shown)
        if shown:
            lines.append(f"{json.dumps(name)}: {json.dumps(shown, sort_keys=True)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def reach(schema: Schema, found: set[str]) -> None:
    """Adds the names of the definitions at and below a node."""
    if schema.name in found:
        return
    if schema.name:
        found.add(schema.name)
    for child in [*schema.fields.values(), schema.items, schema.values]:
        if child is not None:
            reach(child, found)


def unset(schema: Schema, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that the API accepts an object without, and the same of those in them."""
    out = {}
    for field, value in fields.items():
        below = schema.fields.get(field)
        if below is not None and field not in schema.required and (field == "status" or not below.required):
            out[field] = unset(below, value) if isinstance(value, dict) and field != "status" else value
    return out


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    fresh = table()
    if not parser.parse_args().check:
        TABLE.write_text(fresh)
    elif TABLE.read_text() != fresh:
        print(f"{TABLE.relative_to(ROOT)} is not what scripts/compile_zeros.py writes", file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
