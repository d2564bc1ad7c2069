"""How long the tests wait for other people's programs: far longer than anything takes, since a machine may be busy."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 300
"""For what controllers do, and the `--timeout` of commands that wait for it."""
LOOKS = 10
"""A second."""
COMMAND_SECONDS = 360
"""For a whole command: more than its `--timeout`, so that it tells what it waited for."""


def until(look: Callable[[], T], told: Callable[[], object] = lambda: "it did not happen") -> T:
    """What `look` gives once it is true; `told` says why it never was.

    It looks so many times, not until some moment: where everything was stopped for a while, the wait is as long.
    """
    for _ in range(SECONDS * LOOKS):
        if found := look():
            return found
        time.sleep(1 / LOOKS)
    raise AssertionError(told())
