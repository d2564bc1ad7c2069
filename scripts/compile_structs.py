"""Write src/steersman/api/data/structs.json: what Go's JSON does with the fields of Kubernetes' structs.

    python scripts/compile_structs.py            write it; needs Go and its module proxy
    python scripts/compile_structs.py --check    exit 1 when the committed file is not a fresh one

By definition: `omit`, the fields that are left out when they are "", 0 or false (omitempty, and no pointer); `keep`,
the lists and maps that are not left out when they are empty, though nothing requires them; `types`, the Go types of
fields that cannot be told from their schema (v1.PodPhase is a string). The Go program in scripts/protobuf reads that
from the modules of Kubernetes 1.36 (Apache-2.0; go.mod there has the versions).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from go_table import ROOT, compiled, write_or_check

from steersman.api.go_json import go_type
from steersman.api.schema import Schema

TABLE: Path = ROOT / "src/steersman/api/data/structs.json"


def entry(_name: str, schema: Schema, found: dict[str, Any]) -> dict[str, Any]:
    """{omit, keep, types} of one definition, as far as they say anything."""
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
    return line


if __name__ == "__main__":
    write_or_check(__doc__, TABLE, compiled("structs", entry))
