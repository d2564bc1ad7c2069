"""Confluence: the order in which things happen makes no difference in the end."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About

ABOUT: Final = About(
    "confluence",
    "Every fair run ends in the same state.",
    "If who comes first decides what a cluster looks like, a restart or a slow network changes it.",
    "A decision rests on a read that another write has overtaken; a blind write wins or loses a race.",
    "Write with the resourceVersion that was read (a Conflict is then tried again), or decide from what does not "
    "depend on order.",
    "Claimed with w.confluent(), every difference counts but uids and generated names. By default it is judged only "
    "where whole reconciles, one after the other, end in one state in any order: then a second end comes from calls "
    "that interleave. Where even whole reconciles end differently (a first come, first served; a person who may act "
    "early or late) the order is taken to be meant. By default times do not count either, and of a status only the "
    "phase and which conditions hold.",
    (61, 71, 89),
)
