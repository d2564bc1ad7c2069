import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.sim.metrics import Usage, percentile


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_least_value_that_enough_do_not_exceed(values, percent):
    values.sort()
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


def test_a_percentile_of_nothing_is_refused():
    with pytest.raises(ValueError):
        percentile([], 50)


def test_the_mean_is_weighted_by_time_and_the_peak_is_what_lasted():
    usage = Usage()
    usage.offered, usage.taken = 10, 2
    usage.pass_time(30)
    usage.settle()
    usage.taken = 9  # gone again before time passes
    usage.taken = 5
    usage.pass_time(10)
    usage.settle()
    assert usage.mean == (2 * 30 + 5 * 10) / 400
    assert usage.top == 0.5


def test_without_room_there_is_no_share():
    usage = Usage()
    usage.pass_time(5)
    usage.settle()
    assert usage.mean == 0.0 and usage.top == 0.0
