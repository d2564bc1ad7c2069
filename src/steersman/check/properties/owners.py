"""One owner a field: no two controllers declare that they write the same field."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About
from steersman.ownership.analysis import Analysis

ABOUT: Final = About(
    "one owner a field",
    "No two controllers declare that they write the same field (`writes`).",
    "Whoever writes last wins, and if both insist they fight for ever. A field that has one owner cannot be fought "
    "over, whatever the order of events.",
    "A second controller is written for the same kind, or one claims a whole section (`status`) of which another owns "
    "a field.",
    "Declare the narrowest paths, and let one of the two leave the field out or take its value from the other's.",
    "Judged before any run, on what is declared only. What two controllers were seen to write of one object is told in "
    "the last line of a verdict, and by --static.",
    (94, 98, 99),
)


def wrong(found: Analysis) -> str:
    """The clashes of those who declare; "" when there are none."""
    return "; ".join([str(clash) for clash in found.declared])
