"""Random sequences of applies, as a real kube-apiserver and its structured-merge-diff answered them.

`OPEN` counts the sequences that still differ, by kind; it may only shrink. What is open: scalars that Go leaves out
when they are zero (`paused: false`, an empty text) are kept here.
"""

import pytest

from tests.api.patching import recorded
from tests.api.patching.sequences import SORTS

OPEN = {"account": 1, "deployment": 29, "pod": 11}


@pytest.mark.parametrize("kind", SORTS)
def test_applies_are_answered_as_recorded(kind):
    cases = [(case, answers) for case, answers in recorded.load() if case.name.startswith(f"sma/{kind}-")]
    assert len(cases) >= 40
    found = [line for case, answers in cases for line in recorded.differences(case, answers)]
    assert len(found) <= OPEN.get(kind, 0), "\n".join(found)
