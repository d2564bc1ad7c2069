"""The recorded answers to random applies: kept, loaded, and compared with ours."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from tests.api.patching.sequences import prepare, told
from tests.interop.conformance.normal import normal
from tests.interop.conformance.play import Local, play
from tests.interop.conformance.sequence import Case, Json
from tests.interop.conformance.vectors import FILTERS, SOURCE

FILE: Final = Path(__file__).parent / "applies.json.xz"


def save(done: Iterable[tuple[Case, Json]]) -> int:
    """Writes the vectors; the size of the file."""
    found = [[case.name, case.steps, answers] for case, answers in done]
    text = json.dumps({"source": SOURCE, "cases": found}, sort_keys=True, separators=(",", ":"))
    return FILE.write_bytes(lzma.compress(text.encode(), filters=FILTERS))


def load() -> list[tuple[Case, Json]]:
    """The sequences, and what is kept of the real server's answers."""
    document = json.loads(lzma.decompress(FILE.read_bytes()))
    return [(Case(name, steps), answers) for name, steps, answers in document["cases"]]


@cache
def server() -> Local:
    """One server for all sequences: each has a namespace of its own."""
    made = Local()
    prepare(made)
    return made


def differences(case: Case, real: Json) -> list[str]:
    """The answers of a sequence up to the first that differs, for what follows may follow from it; [] if none does."""
    ours = told(normal(play(case, server())))
    for index, (step, one, other) in enumerate(zip(case.steps, real, ours, strict=True)):
        if one != other:
            asked = f"{case.name} #{index} {step['do']} {step['path']}\n  {json.dumps(step.get('body'))}"
            return [f"{asked}\n  real {json.dumps(one)}\n  ours {json.dumps(other)}"]
    return []
