"""A directory that goes with the object that made it, in the process that made it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path


class Scratch:
    """Removed by `cleanup`, with the object, or as the process ends. Not by a child after a fork: it has a copy of
    everything, ends too, and the directory is its parent's (`tempfile.TemporaryDirectory` would be removed)."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="steersman-"))
        self._end = weakref.finalize(self, _remove, self.path, os.getpid())

    def cleanup(self) -> None:
        """Removes it; harmless when it is gone."""
        self._end()


def _remove(path: Path, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
