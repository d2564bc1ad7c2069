"""Write src/steersman/api/data/zeros.json: what Kubernetes shows of a field that nobody has set.

    python scripts/compile_zeros.py            write it; needs Go and its module proxy
    python scripts/compile_zeros.py --check    exit 1 when the committed file is not a fresh one

Kubernetes answers with the JSON of Go structs, and Go shows fields without omitempty and every struct, even an empty
one. The Go program in scripts/protobuf reads that from the modules of Kubernetes 1.36 (Apache-2.0; go.mod there has the
versions). Fields that the API requires are left out, since they are there anyway, except in a status, of which nothing
is required; so are an object's own metadata.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from go_table import ROOT, compiled, write_or_check

from steersman.api.kinds import Kinds
from steersman.api.schema import Schema

TABLE: Path = ROOT / "src/steersman/api/data/zeros.json"


def table() -> str:
    """Definition → field → value."""
    reported: set[str] = set()
    for kind in Kinds.builtin().all():
        if "status" in kind.schema.fields:
            reach(kind.schema.fields["status"], reported)

    def entry(name: str, schema: Schema, fields: dict[str, Any]) -> dict[str, Any]:
        own = {"metadata"} if "kind" in schema.fields else set()
        shown = {field: value for field, value in fields.items() if field not in own}
        return shown if name in reported else unset(schema, shown)

    return compiled("zeros", entry)


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


if __name__ == "__main__":
    write_or_check(__doc__, TABLE, table())
