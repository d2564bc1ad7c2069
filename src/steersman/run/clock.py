"""The wall clock behind the Clock port."""

from __future__ import annotations

import threading
import time


class WallClock:
    """Microseconds since the Unix epoch. While this process lives it never goes back: set back from outside, it
    stands still until the time is reached again. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self) -> int:
        """Microseconds since the epoch."""
        with self._lock:
            self._last = max(self._last, time.time_ns() // 1_000)
            return self._last
