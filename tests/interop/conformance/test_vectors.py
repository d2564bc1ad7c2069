"""The recorded answers of a real kube-apiserver, replayed against the server in this process.

`open.yaml` says how many answers of a family still differ without an accepted reason. It may only shrink: fewer than it
says is good news, and `scripts/conformance.py diff --write` writes it down.
"""

from __future__ import annotations

import pytest
import yaml

from tests.interop.conformance import compare, vectors
from tests.interop.conformance.cases import all_cases
from tests.interop.conformance.normal import normal
from tests.interop.conformance.play import Local, play

FAMILIES = sorted(path.name.partition(".")[0] for path in vectors.FOLDER.glob("*.json.xz"))
OPEN = yaml.safe_load((vectors.FOLDER.parent / "open.yaml").read_text(encoding="utf-8")) or {}


@pytest.mark.parametrize("family", FAMILIES)
def test_answers(family):
    found = []
    for case, real in vectors.load(vectors.FOLDER / f"{family}.json.xz"):
        server = Local()
        try:
            found += compare.unexplained(case, real, normal(play(case, server)))
        finally:
            server.close()
    answers = {(difference.case, difference.index) for difference in found}
    assert len(answers) <= OPEN.get(family, 0), "\n".join(map(str, found))


def test_the_vectors_are_of_these_sequences():
    recorded = {case.name: list(case.steps) for path in vectors.FOLDER.glob("*.xz") for case, _ in vectors.load(path)}
    assert recorded == {case.name: list(case.steps) for case in all_cases()}


def test_accepted_divergences_have_reasons():
    for entry in compare.accepted():
        assert len(entry.reason) > 20, f"{entry} lacks a reason"
        assert entry.path != "*" or entry.case != "*", f"{entry} accepts everything"
