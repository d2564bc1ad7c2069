"""Times as Go reads them; the texts are those of Go 1.26."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.go_time import MICROS, SECONDS, canonical, fault
from steersman.api.intake import Misfit, intake
from steersman.api.kinds import Kinds
from steersman.api.times import micro_text, time_text

UNPARSED = [
    ("yesterday", SECONDS, 'cannot parse "yesterday" as "2006"'),
    ("2020-01-01 00:00:00Z", SECONDS, 'cannot parse " 00:00:00Z" as "T"'),
    ("2020-01-01T00:00:00", SECONDS, 'cannot parse "" as "Z07:00"'),
    ("2020-01-01T00:00:02Z", MICROS, 'cannot parse "Z" as ".000000"'),
    ("2020-01-01T00:00:00.5+01:00", MICROS, 'cannot parse ".5+01:00" as ".000000"'),
    ("", MICROS, 'cannot parse "" as "2006"'),
]


@pytest.mark.parametrize(("text", "layout", "told"), UNPARSED)
def test_what_cannot_be_parsed_is_told_as_go_tells_it(text, layout, told):
    assert fault(text, layout) == f'parsing time "{text}" as "{layout}": {told}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2020-13-01T00:00:00Z", "month out of range"),
        ("2020-02-30T00:00:00Z", "day out of range"),
        ("2020-01-01T24:00:00Z", "hour out of range"),
        ("2020-01-01T00:00:00Zx", 'extra text: "x"'),
    ],
)
def test_what_is_no_time_is_told(text, told):
    assert fault(text, SECONDS) == f'parsing time "{text}": {told}'


def test_times_are_kept_in_one_form():
    assert canonical("2020-01-01T00:00:00.5+01:00", SECONDS) == "2019-12-31T23:00:00Z"
    assert canonical("2020-01-01T00:00:00.123456+01:00", MICROS) == "2019-12-31T23:00:00.123456Z"
    lease = intake(Kinds.builtin().get("coordination.k8s.io", "Lease").schema.fields["spec"], True)
    assert lease({"renewTime": "2020-01-01T01:00:00.000000+01:00"}) == {"renewTime": "2020-01-01T00:00:00.000000Z"}
    with pytest.raises(Misfit):
        lease({"renewTime": "2020-01-01T01:00:00Z"})


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_what_is_written_is_in_its_form(second, micro):
    whole, exact = time_text(second), micro_text(second * 1_000_000 + micro)
    assert fault(whole, SECONDS) == fault(exact, MICROS) == ""
    assert canonical(whole, SECONDS) == whole and canonical(exact, MICROS) == exact
