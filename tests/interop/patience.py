"""How long the tests wait for other people's programs: far longer than anything takes, since a machine may be busy."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 60
"""For what controllers do, and the `--timeout` of commands that wait for it."""
COMMAND_SECONDS = 120
"""For a whole command: more than its `--timeout`, so that it tells what it waited for."""


def until(look: Callable[[], T], told: Callable[[], object] = lambda: "it did not happen") -> T:
    """What `look` gives once it is true; `told` says why it never was."""
    end = time.monotonic() + SECONDS
    while not (found := look()):
        assert time.monotonic() < end, told()
        time.sleep(0.1)
    return found
