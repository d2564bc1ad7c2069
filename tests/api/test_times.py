"""RFC 3339 without a clock: against datetime, and refused with a remedy."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.times import MICRO, TimeError, micro_text, parse_time, time_text

SECONDS = st.integers(-62_135_596_800, 253_402_300_799)  # years 1 to 9999
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(SECONDS)
def test_text_is_that_of_datetime(second):
    assert time_text(second) == (EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


@given(SECONDS)
def test_text_and_back(second):
    assert parse_time(time_text(second)) == second * MICRO


@given(SECONDS, st.integers(0, MICRO - 1))
def test_micro_text_and_back(second, fraction):
    micro = second * MICRO + fraction
    assert parse_time(micro_text(micro)) == micro
    assert micro_text(micro).endswith(f".{fraction:06d}Z")


@given(st.datetimes(timezones=st.sampled_from([timezone(timedelta(minutes=m)) for m in (-720, -90, 0, 330, 840)])))
def test_offsets(moment):
    if moment.year > 1:
        expected = (moment - EPOCH) // timedelta(microseconds=1)
        assert parse_time(moment.isoformat(timespec="microseconds")) == expected


@pytest.mark.parametrize(
    "text",
    ["", "today", "2026-01-31", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-32T00:00:00Z",
     "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
     "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z ",
     "2026-01-01T00:00:00Z\n", "x2026-01-01T00:00:00Z", "２０２６-01-01T00:00:00Z"],
)  # fmt: skip
def test_what_is_no_time_is_refused(text):
    with pytest.raises(TimeError, match="is not a time"):
        parse_time(text)


def test_nanoseconds_are_cut_and_leap_seconds_pass():
    assert parse_time("1970-01-01T00:00:00.123456789Z") == 123_456
    assert parse_time("1970-01-01T00:00:60Z") == 60 * MICRO
    assert parse_time("1970-01-01t00:00:01z") == MICRO
