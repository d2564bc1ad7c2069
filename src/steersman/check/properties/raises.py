"""No reconcile that raises: errors that a controller does not handle are its bugs."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About

ABOUT: Final = About(
    "no reconcile that raises",
    "No reconcile ends with an exception other than a refused request (sm.ApiError).",
    "It is tried again with back-off, and fails in the same way: the object is stuck, and so may be the whole queue.",
    "A field that is not there yet, a list that is empty for a moment, an object that was deleted between two reads.",
    "Handle what may be missing (a field read as an attribute is ABSENT, and falsy), and return: the next event brings "
    "the key back.",
    "A refused request that is left to the queue is no bug: Conflict, NotFound, AlreadyExists are part of life.",
    (17,),
    ("raised",),
)
