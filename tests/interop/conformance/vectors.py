"""Recorded answers: one compressed file a family, with the steps that led to them, so that a replay needs nothing else.

The answers are facts recorded by `scripts/conformance.py record` from kube-apiserver 1.36.0 with etcd 3.6.8, built from
their Go modules by `scripts/oracle.py`; they stand here in normal form (`normal.py`).
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.interop.conformance.sequence import Case

Json = Any

FOLDER: Final = Path(__file__).parent / "vectors"
SOURCE: Final = "kube-apiserver v1.36.0, etcd 3.6.8"
FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


def save(folder: Path, recorded: Iterable[tuple[Case, list[Json]]]) -> None:
    """One file for each family. Bodies keep the order of their fields, in which a server tells what is wrong."""
    families: dict[str, list[Json]] = {}
    for case, answers in recorded:
        families.setdefault(case.family, []).append({"name": case.name, "steps": case.steps, "answers": answers})
    folder.mkdir(parents=True, exist_ok=True)
    for family, found in families.items():
        text = json.dumps({"source": SOURCE, "cases": found}, separators=(",", ":"))
        (folder / f"{family}.json.xz").write_bytes(lzma.compress(text.encode(), filters=FILTERS))


def load(path: Path) -> list[tuple[Case, list[Json]]]:
    """The sequences of a family, and what the real server answered."""
    document = json.loads(lzma.decompress(path.read_bytes()))
    return [(Case(found["name"], found["steps"]), found["answers"]) for found in document["cases"]]
