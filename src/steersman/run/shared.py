"""What several threads of this face share with a kernel that was written for one.

Workers read immutable forks while the loop's thread writes its own stores, so they share objects and nothing that
changes, with one exception: the bounded cache of parsed values. Here its one operation takes a lock.
"""

from __future__ import annotations

import threading
from typing import Final

from steersman.kernel.object import PARSED, ParsedCache, Section

_LOCK: Final = threading.RLock()


class SharedParsedCache(ParsedCache):
    """The same cache, for several threads."""

    __slots__ = ()

    def admit(self, section: Section) -> None:
        """Counts a section that holds a value; one thread at a time."""
        with _LOCK:
            super().admit(section)

    def clear(self) -> None:
        """Drops every value held."""
        with _LOCK:
            super().clear()


def share_parsed_values() -> None:
    """Makes this process's cache of parsed values safe for threads. Calling it again is harmless."""
    PARSED.__class__ = SharedParsedCache
