"""Writes docs/corpus.md: the known bugs, what the checker says of each buggy controller and of its cure.

    python scripts/corpus.py

Every pair is checked anew. `tests/bugs/test_table.py` fails when the page and the table of pairs disagree.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from steersman.check import Verdict  # noqa: E402
from tests.bugs.row import Row, links  # noqa: E402
from tests.bugs.table import NUMBERS, OMITTED, rows  # noqa: E402

PAGE: Final = ROOT / "docs/corpus.md"
HEAD: Final = """# Known bugs, found again

Public bugs of real controllers, written down as pairs of small controllers: one with the bug, one without. Each is a
test below `tests/bugs`. The buggy one is reported, and the fault that is its cause stands in its schedule; without the
fault it passes. The one without the bug passes within the same bounds. No pair tells the checker what to look for: what
is violated is a property that is on by default, or what a user of that system would say. *Out of the box* is what is
reported of the buggy one when nothing at all is claimed.

This page is written by `scripts/corpus.py`. *Buggy* and *fixed* give the states visited, the seconds that took, and
whether that was everything within the bounds (COMPLETE) or not (BOUNDED); *steps* is the length of the counterexample.
"""
TABLE: Final = """
| row | source | mechanism | within | found | steps | out of the box | buggy | fixed |
|---|---|---|---|---|---|---|---|---|"""
OMISSIONS: Final = """
## Not attempted

| row | source | why |
|---|---|---|"""


def page() -> str:
    """The whole page; checks every pair."""
    out, seconds, done = [TABLE], 0.0, rows()
    for row in done:
        line, spent = _line(row)
        out.append(line)
        seconds += spent
    out += [OMISSIONS, *[f"| {row.number} | {links(row.source)} | {row.reason} |" for row in OMITTED]]
    numbers = len({row.number for row in done})
    summary = f"{numbers} of {len(NUMBERS)} rows, as {len(done)} pairs, in {seconds:.0f} s."
    return "\n".join([HEAD, summary, *out]) + "\n"


def _line(row: Row) -> tuple[str, float]:
    """A row as it came out, and the seconds it took."""
    buggy, fixed = row.reported(), row.holds()
    steps = [str(len(violation.actions) + len(violation.cycle)) for violation in row.violations(buggy)]
    bounds = ", ".join([name if value is True else f"{name} {value}" for name, value in row.bounds.items()]) or "-"
    cells = (
        str(row.number),
        links(row.source),
        row.mechanism,
        bounds,
        "; ".join([violation.title for violation in row.violations(buggy)]),
        ", ".join(steps),
        ", ".join(sorted({violation.name for violation in row.unclaimed().violations})) or "-",
        _searched(buggy),
        _searched(fixed),
    )
    return f"| {' | '.join(cells)} |", buggy.seconds + fixed.seconds


def _searched(verdict: Verdict) -> str:
    return f"{verdict.states:,} in {verdict.seconds:.2f} s, {verdict.word}"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
