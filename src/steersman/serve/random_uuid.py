"""Random UUIDs, of objects and of requests: the one thing every create and every request draws.

The kernel is asked for many at a time. To ask it lets another thread have the interpreter, and getting that back costs
whoever serves requests ten times the draw.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Final

BLOCK: Final = 256
"""UUIDs drawn at a time: 4 KB of random bytes."""
VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""The digit that says who laid the UUID out (RFC 9562 §4.1), by the random one in its place."""
_digits: deque[str] = deque()
os.register_at_fork(after_in_child=_digits.clear)  # two processes must not draw the same


def random_uuid() -> str:
    """A UUID of version 4. Any thread."""
    while True:
        try:
            text = _digits.popleft()
        except IndexError:
            drawn = os.urandom(16 * BLOCK).hex()
            _digits.extend([drawn[start : start + 32] for start in range(0, len(drawn), 32)])
        else:
            return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{VARIANT[text[16]]}{text[17:20]}-{text[20:]}"
