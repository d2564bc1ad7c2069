"""Memory: what this process holds, and how much of it a search may take.

Facts: proc(5) for `/proc/self/statm` (its second number is resident pages), the Linux kernel's cgroup-v2 document for
`memory.max`, getrusage(2) for the unit of `ru_maxrss`.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Final

MEGA: Final = 1 << 20
DEFAULT_SHARE: Final = 0.75
"""Of the machine's memory: beyond it other programs start to suffer."""
GROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def resident() -> int:
    """Bytes of this process in memory; where the system does not tell, the most there ever were."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def machine() -> int:
    """Bytes that this machine, or the container it shows us, has."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(total, int(GROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no such group, or "max"
        return total


def limit(megabytes: int | None) -> int:
    """Bytes at which a search ends; by default a share of the machine's."""
    return int(machine() * DEFAULT_SHARE) if megabytes is None else megabytes * MEGA
