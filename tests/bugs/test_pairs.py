"""Each bug is reported with its mechanism, and each cure passes: see the package's text."""

from __future__ import annotations

import pytest

from tests.bugs.row import Row
from tests.bugs.table import rows

ALL = rows()


def named(row: Row) -> str:
    """How pytest calls it."""
    return row.name


@pytest.mark.parametrize("row", ALL, ids=named)
def test_the_bug_is_reported(row: Row) -> None:
    row.reported()


@pytest.mark.parametrize("row", [row for row in ALL if row.faults], ids=named)
def test_on_a_good_day_it_is_not_there(row: Row) -> None:
    row.innocent()


@pytest.mark.parametrize("row", ALL, ids=named)
def test_the_cure_holds(row: Row) -> None:
    row.holds()


@pytest.mark.parametrize("row", [row for row in ALL if row.harder], ids=named)
def test_the_cure_holds_under_more(row: Row) -> None:
    row.holds(**row.harder)
