"""What follows from footprints: two owners of one field, circles of reads and writes, or that there are none.

Where no field has two writers, and nobody's reads depend on his own writes by way of others, values settle one after
the other: first the fields that depend on nobody's, then those that depend on these. That is why such a system
converges, as long as what the text states is true.
"""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from steersman.ownership.fields import EXISTENCE, Field
from steersman.ownership.footprint import Footprint

MAX_FIELDS: Final = 3
"""Fields that one line names."""
MAX_LISTED: Final = 24
"""Fields of a footprint that are listed."""
SHARED: Final = (("metadata", "finalizers"), ("metadata", "ownerReferences"))
"""Lists to which several owners add items of their own."""
WIDTH: Final = 116
"""Columns of the report."""
LEARNED: Final = " (of what is learned: what it did in the states that were looked at)"
ASSUMPTIONS: Final = (
    "each controller reads and writes only what is listed here",
    "each does the same after the same reads, and writes nothing where what it wants is there ('non-determinism' and "
    "'idempotent at rest' check that)",
    "whoever reads a field is woken when it changes ('missing watch' checks that), and requests succeed in the end",
    "people and external systems stop changing things at some time",
)


def _named(fields: Sequence[Field], most: int) -> str:
    """Some fields of each kind: `Pod:exists, status.phase, ReplicaSet.apps:spec.replicas and 3 more`."""
    parts, last = [], None
    for field in fields[:most]:
        text = str(field)
        parts.append(text.partition(":")[2] if field.gk == last and field.path else text)
        last = field.gk
    return ", ".join(parts) + (f" and {len(fields) - most} more" if len(fields) > most else "")


class Clash(NamedTuple):
    """One field that two controllers write."""

    field: Field
    owners: tuple[str, str]
    object: str = ""
    """Whose field, where that is known."""

    def __str__(self) -> str:
        what = f"{self.object} ({self.field})" if self.object else str(self.field)
        return f"two owners of {what}: {self.owners[0]} and {self.owners[1]} write it"


class Link(NamedTuple):
    """One step of a circle: `writer` writes fields that `reader` reads."""

    writer: str
    fields: tuple[Field, ...]
    reader: str

    def __str__(self) -> str:
        return f"{self.writer} writes {_named(self.fields, MAX_FIELDS)}, which {self.reader} reads"


class Analysis(NamedTuple):
    """What was found out from footprints."""

    footprints: tuple[Footprint, ...]
    clashes: tuple[Clash, ...]
    circles: tuple[tuple[Link, ...], ...]
    own: tuple[tuple[str, tuple[Field, ...]], ...]
    """(controller, fields that it both reads and writes)."""
    strays: tuple[tuple[str, Field], ...] = ()
    """(controller, a field that it was seen to write without declaring it)."""

    @property
    def declared(self) -> tuple[Clash, ...]:
        """Clashes of two that declare what they write."""
        says = {footprint.name for footprint in self.footprints if footprint.declared}
        return tuple([clash for clash in self.clashes if set(clash.owners) <= says])

    @property
    def line(self) -> str:
        """All of it in a line."""
        parts = [str(clash) for clash in self.clashes[:1]]
        if len(self.clashes) > 1:
            parts[0] += f" (and {len(self.clashes) - 1} more)"
        if self.circles:
            names = " → ".join([*[link.writer for link in self.circles[0]], self.circles[0][0].writer])
            more = f" (and {len(self.circles) - 1} more)" if len(self.circles) > 1 else ""
            parts.append(f"a circle of reads and writes: {names}{more}")
        if self.strays:
            parts.append(f"{self.strays[0][0]} writes {self.strays[0][1]}, but does not declare it")
        if not parts:
            parts.append("no circle of reads and writes, no field with two owners")
        return "; ".join(parts)

    def text(self) -> str:
        """The report."""
        lines = []
        for footprint in self.footprints:
            lines.append(f"{footprint.name} ({'declared' if footprint.declared else 'learned'})")
            lines.append(f"  reads {_named(footprint.reads, MAX_LISTED) or 'nothing'}")
            lines.append(f"  writes {_named(footprint.writes, MAX_LISTED) or 'nothing'}")
        lines += [f"REFUSED: {clash}" for clash in self.clashes]
        lines += [f"{name} writes {field}, but does not declare it" for name, field in self.strays]
        lines += [f"circle: {'; '.join([str(link) for link in circle])}" for circle in self.circles]
        return "\n".join([_wrapped(line) for line in [*lines, *self._conclusion()]])

    def _conclusion(self) -> list[str]:
        if self.clashes:
            return ["One field, one owner: let one of them leave it out, or take it from the other."]
        if self.circles:
            return ["Convergence does not follow from who reads and writes what: it has to be checked."]
        known = "" if all(footprint.declared for footprint in self.footprints) else LEARNED
        lines = ["No field has two owners, and there is no circle. So every fair run converges, as long as"]
        lines += [f"- {ASSUMPTIONS[0]}{known};", *[f"- {text};" for text in ASSUMPTIONS[1:]]]
        for name, fields in self.own:
            own = _named(fields, MAX_FIELDS)
            lines.append(f"- {name} only compares {own} with what it wants, for it writes that itself;")
        lines[-1] = lines[-1][:-1] + "."
        return lines


def _wrapped(line: str) -> str:
    """A line of the report, which goes on further in where it is long."""
    text = line.lstrip()
    indent = " " * (2 + len(line) - len(text))
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def analyse(footprints: Sequence[Footprint], strays: tuple[tuple[str, Field], ...] = ()) -> Analysis:
    """Looks for fields with two owners and for circles."""
    ordered = tuple(footprints)
    own = []
    for footprint in ordered:
        fields = [field for field in footprint.reading(footprint.writes) if field.path != EXISTENCE]
        if fields:
            own.append((footprint.name, tuple(fields)))
    return Analysis(ordered, tuple(_clashes(ordered)), tuple(_circles(ordered)), tuple(own), strays)


def _clashes(footprints: Sequence[Footprint]) -> list[Clash]:
    """A clash for each pair and field. Of what was learned only the fields of one and the same object count."""
    out: list[Clash] = []
    for number, first in enumerate(footprints):
        for second in footprints[number + 1 :]:
            for field in first.writes:
                if field.path == EXISTENCE or field.path[:2] in SHARED:
                    continue
                other = next((each for each in second.writes if each.overlaps(field)), None)
                if other is None:
                    continue
                pair = (first.name, second.name)
                narrow = max(field, other, key=lambda each: len(each.path))
                if first.declared and second.declared:
                    out.append(Clash(narrow, pair))
                    continue
                mine = {key for each, key in first.objects if each == field}
                theirs = {key for each, key in second.objects if each == other}
                both = sorted(mine & theirs) if not (first.declared or second.declared) else sorted(mine | theirs)
                if both:
                    out.append(Clash(narrow, pair, str(both[0])))
    return out


def _circles(footprints: Sequence[Footprint]) -> list[tuple[Link, ...]]:
    """For every controller that depends on its own writes by way of others a shortest such circle, each once."""
    links: dict[str, list[Link]] = {}
    for writer in footprints:
        links[writer.name] = []
        for reader in footprints:
            if reader is not writer:
                fields = reader.reading(writer.writes)
                if fields:
                    links[writer.name].append(Link(writer.name, tuple(fields), reader.name))
    out: list[tuple[Link, ...]] = []
    known: set[frozenset[str]] = set()
    for start in links:
        circle = _back_to(start, links)
        members = frozenset([link.writer for link in circle])
        if circle and members not in known:
            known.add(members)
            out.append(circle)
    return out


def _back_to(start: str, links: dict[str, list[Link]]) -> tuple[Link, ...]:
    """A shortest circle through a controller; () when there is none."""
    came: dict[str, Link] = {}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for link in links[here]:
            if link.reader == start:
                way = [link]
                while way[0].writer != start:
                    way.insert(0, came[way[0].writer])
                return tuple(way)
            if link.reader not in came:
                came[link.reader] = link
                queue.append(link.reader)
    return ()
