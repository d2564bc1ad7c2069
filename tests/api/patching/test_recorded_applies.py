"""Random sequences of applies, as a real kube-apiserver and its structured-merge-diff answered them: none differs."""

import pytest

from tests.api.patching import recorded
from tests.api.patching.sequences import SORTS


@pytest.mark.parametrize("kind", SORTS)
def test_applies_are_answered_as_recorded(kind):
    cases = [(case, answers) for case, answers in recorded.load() if case.name.startswith(f"sma/{kind}-")]
    assert len(cases) >= 40
    found = [line for case, answers in cases for line in recorded.differences(case, answers)]
    assert not found, "\n".join(found)
