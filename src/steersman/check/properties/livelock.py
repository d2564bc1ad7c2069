"""No livelock: nobody writes for ever."""

from __future__ import annotations

from typing import Final

from steersman.check.properties.about import About

ABOUT: Final = About(
    "no livelock",
    "No fair run changes things for ever. The steps that repeat are shown, with their cause: a write that is not "
    "idempotent, a circle of writes, or a value that is new each time and the call that gave it.",
    "A hot loop loads the API server and every watcher, fills the history, and hides the change that matters.",
    "A list is built in another order each time, a default is compared with what was sent, an object is deleted and "
    "made again while it still terminates; a status gets c.timestamp() or c.random() on each pass, and that write "
    "wakes its writer.",
    "Compare what is wanted with what is there, and write only a difference; write a time only when the thing it is "
    "about changes; wait until what was deleted is gone.",
    "A loop in which time has to pass for each round (a heartbeat, a poll) is no livelock unless the scenario claims "
    "convergence or confluence.",
    (68, 87, 97),
)
