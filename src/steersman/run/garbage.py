"""Python's cyclic garbage, collected when it hurts least.

Automatic collections walk every object of the store at times nobody chose (measured: 540 ms at 30,000 pods). So they
are off; what a store was loaded with is frozen out of all collections; young objects are looked at once a second, which
costs in proportion to them; everything is looked at when nobody has written for a while.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Final

YOUNG_SECONDS: Final = 1.0
YOUNG_OBJECTS: Final = 2_000
"""Fewer new containers since the last look are not worth one."""
IDLE_SECONDS: Final = 10
"""Seconds without a write after which a full collection disturbs nobody."""
FULL_EVERY: Final = 600
"""Seconds between two full collections at least."""


def switch_off() -> None:
    """No automatic collections from now on; call it before loading."""
    gc.disable()


def freeze() -> None:
    """Everything there is now is taken to live as long as the process."""
    gc.collect()
    gc.freeze()


async def collect_quietly(revision: Callable[[], int]) -> None:
    """Collects at chosen moments until it is cancelled. `revision` tells whether there were writes."""
    seen, idle, since_full = revision(), 0, 0
    while True:
        await asyncio.sleep(YOUNG_SECONDS)
        now = revision()
        idle = idle + 1 if now == seen else 0
        seen = now
        since_full += 1
        if idle >= IDLE_SECONDS and since_full >= FULL_EVERY:
            gc.collect()
            since_full = 0
        elif gc.get_count()[0] >= YOUNG_OBJECTS:
            gc.collect(1 if idle else 0)
