"""The end is that of the run without faults."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About

ABOUT: Final = About(
    "same end as without faults",
    "If every run without lag and faults ends in one state, every run with them ends in it too.",
    "A crash, a stale cache or a refused write may delay what is wanted; it must not change it.",
    "A crash between two writes leaves half of them undone and the restart takes the first for both; a value is never "
    "corrected since its change was not observed; what a lost memory knew is not found out again.",
    "Derive what is to be done from what is there, not from what was remembered; check the last step, not the first.",
    "Judged where the search without faults comes to an end and has one. Generated names, uids and times do not count, "
    "and what a status tells beside its phase and which conditions hold counts where it would be as without faults if "
    "it were erased and written anew: the rest is history.",
    (2, 3, 8, 10, 11, 12, 20, 21, 24, 30, 35, 37),
)
