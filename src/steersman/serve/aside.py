"""Work on large bodies and large objects, beside the event loop.

A pod of 60,000 containers fits into one request and takes seconds to decode, check, own and write out. All of that is
computing on values that nobody changes, so it is done in a thread, where it has to share the interpreter every half
millisecond, and other clients are answered meanwhile. What is small stays where it is: a thread costs more than it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from steersman.kernel.object import Object

LARGE: Final = 64 << 10
"""Bytes of a body or of a part of an object from which on it is large: below, the slowest takes some 50 ms."""
THREADS: Final = 2
"""More would take more of the interpreter from those who wait for small answers."""
ASIDE: Final = ThreadPoolExecutor(THREADS, "large")

P = ParamSpec("P")
T = TypeVar("T")


def is_large(obj: Object | None) -> bool:
    """Whether handling an object takes long."""
    if obj is None:
        return False
    parts = (obj.spec, obj.meta, obj.rest, obj.status)
    return max([part.kept for part in parts if part is not None]) > LARGE


async def aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function gives that only looks at its arguments; it runs in one of these threads."""
    return await asyncio.get_running_loop().run_in_executor(ASIDE, lambda: function(*args, **kwargs))
