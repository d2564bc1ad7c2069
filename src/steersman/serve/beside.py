"""Two coroutines of one session: one reads what the client sends, one works."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def beside(reading: Coroutine[Any, Any, None], work: Coroutine[Any, Any, None]) -> None:
    """Runs both until the work is done, or until reading ends because the client has gone: then the work is cancelled.
    Neither outlives the call. Raises what either raises."""
    tasks = [asyncio.ensure_future(each) for each in (reading, work)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
