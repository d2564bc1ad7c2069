"""Nothing is deleted more often than in the run without faults."""

from __future__ import annotations

from typing import Final

from steersman.check.graph import Graph
from steersman.check.properties.about import About
from steersman.check.properties.removals import Removals
from steersman.check.verdict import plural
from steersman.kernel.action import Action

ABOUT: Final = About(
    "no extra deletion",
    "On no path is an object deleted more often than on any path without lag and faults.",
    "A delete cannot be undone: a volume or a Secret that a stale read condemned is gone, even if a new one of that "
    "name comes and the end looks right.",
    "A decision to delete rests on a stale cache: an old deletionTimestamp, an old spec, a live object taken for one "
    "of its deleted namesake's.",
    "Delete with the uid and the resourceVersion that were read as preconditions, or read fresh before a delete.",
    "Judged where something may go wrong (lag, crashes, conflicts) and the search without it comes to an end; objects "
    "with generated names count together. What was made more often may be deleted more often.",
    (1, 6, 9, 13, 15, 27, 31, 33, 39, 40, 43, 85),
)


def wrong(graph: Graph, removed: Removals, calm: Graph, calmly: Removals) -> tuple[str, list[Action]]:
    """What is deleted more often than in the search without faults (`calm`), and on which path; "" when nothing is."""
    for slot in removed.slots():
        allowed = calmly.most(calm, slot).count
        if slot.generated:  # one is as good as another: what was made in vain may go before the next is made
            allowed = max(allowed or 0, 0)
        most = removed.most(graph, slot)
        if most.count is not None and (allowed is None or most.count > allowed):
            text = f"{slot} is deleted; without lag and faults it never is"
            if allowed is not None:
                more = plural(most.count - allowed, "time")
                text = f"{slot} is deleted {more} more often than in any run without lag and faults"
            return text, most.path()
    return "", []
