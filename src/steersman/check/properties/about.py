"""What a property out of the box is, for people: the text of `steersman check --explain NAME`."""

from __future__ import annotations

import textwrap
from typing import Final, NamedTuple

WIDTH: Final = 100
"""Columns of the text."""


class About(NamedTuple):
    """One property that is judged whether or not a scenario claims anything."""

    name: str
    says: str
    """What holds, in one sentence."""
    why: str
    """Why it matters."""
    causes: str
    """What usually breaks it."""
    fix: str
    """What usually mends it."""
    silent: str
    """Where it is not judged, since a correct controller could break it there."""
    rows: tuple[int, ...] = ()
    """Bugs of its kind: rows of the corpus (docs/corpus.md)."""
    findings: tuple[str, ...] = ()
    """The kinds of `kernel.reexec.Finding` that report it."""

    def text(self) -> str:
        """All of it."""
        parts = [self.name, "", _filled("  ", self.says), ""]
        labelled = (
            ("why", self.why),
            ("cause", self.causes),
            ("fix", self.fix),
            ("silent", self.silent),
            ("corpus", ", ".join([f"row {row}" for row in self.rows])),
            ("off", f"w.without({self.name!r}), or --without {self.name!r}"),
        )
        parts += [_filled(f"  {label + ':':<8}", text) for label, text in labelled if text]
        return "\n".join(parts)


def _filled(label: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=label, subsequent_indent=" " * len(label))
