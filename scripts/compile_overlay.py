"""Write src/steersman/serve/data/openapi.json.xz: what the OpenAPI documents say beyond what the compiled kinds know.

    python scripts/compile_overlay.py BINARIES            write it; BINARIES is OUT/bin of scripts/oracle.py
    python scripts/compile_overlay.py BINARIES --check    exit 1 when the committed file is not a fresh one

A kube-apiserver 1.36 (Apache-2.0) is started, and its /openapi/v3 documents are compared with ours: descriptions,
defaults, enums and the few marks that differ are what the file holds. Its shape is described in
src/steersman/serve/data/README.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import ssl
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from steersman.api.schema import definitions  # noqa: E402
from steersman.serve.documents.openapi_schema import Components  # noqa: E402
from steersman.serve.documents.overlay import NESTED, laid_over  # noqa: E402
from tests.interop.conformance.real import Real, real_server  # noqa: E402

OUTPUT = ROOT / "src/steersman/serve/data/openapi.json.xz"
OURS = ("x-kubernetes-group-version-kind",)
"""Marks that follow from what is served, and so are worked out."""

Json = dict[str, Any]


def get(real: Real, path: str) -> Json:
    """One document of the real server."""
    request = urllib.request.Request(real.url + path, headers={"authorization": f"Bearer {real.tokens['admin']}"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
        found: Json = json.load(answer)
    return found


def schemas(real: Real) -> Json:
    """Every schema of the real server's documents, by name; where they differ, the one with more in it."""
    found: Json = {}
    for entry in get(real, "/openapi/v3")["paths"].values():
        document = get(real, entry["serverRelativeURL"])
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            if len(json.dumps(schema)) > len(json.dumps(found.get(name, 0))):
                found[name] = schema
    return found


def overlay(ours: Any, theirs: Any) -> Json:
    """What to lay over our node to get theirs."""
    if "$ref" in ours and "allOf" in theirs:
        ours = {"allOf": [ours]}
    out: Json = {}
    for key in sorted({*ours, *theirs} - {*OURS}):
        if key not in theirs:
            out[key] = None
        elif key == "properties":
            below = {name: overlay(ours[key][name], node) for name, node in sorted(theirs[key].items())}
            out |= {key: {name: node for name, node in below.items() if node}}
        elif key in NESTED and key in ours:
            if below := overlay(ours[key], theirs[key]):
                out[key] = below
        elif ours.get(key) != theirs[key]:
            out[key] = theirs[key]
    return out


def payload(real: Real) -> bytes:
    """The text of the file: sorted keys, no spaces, so that equal inputs give equal bytes."""
    known = set(definitions().names())
    found = {}
    for name, theirs in sorted(schemas(real).items()):
        if name not in known:
            continue
        components = Components()
        components.add(name, definitions().get(name))
        ours = components.schemas[name]
        found[name] = overlay(ours, theirs)
        wanted = {key: value for key, value in theirs.items() if key not in OURS}
        assert laid_over(ours, found[name]) == wanted, name
    return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with the committed file, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, real_server(options.binaries, Path(folder)) as real:
        fresh = payload(real)
    if options.check:
        same = OUTPUT.is_file() and lzma.decompress(OUTPUT.read_bytes()) == fresh
        print("up to date" if same else f"{OUTPUT} is stale: run scripts/compile_overlay.py")
        return 0 if same else 1
    OUTPUT.write_bytes(lzma.compress(fresh, preset=9 | lzma.PRESET_EXTREME))
    print(f"{OUTPUT}: {len(fresh)} bytes, {OUTPUT.stat().st_size} packed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
