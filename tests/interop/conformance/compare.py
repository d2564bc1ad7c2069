"""Differences between two servers' answers to one sequence, less those that `accepted.yaml` gives a reason for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.interop.conformance.sequence import Case, Step

Json = Any

ACCEPTED: Final = Path(__file__).parent / "accepted.yaml"
ABSENT: Final = "<absent>"


@dataclass(frozen=True)
class Difference:
    """At `path` of the answer to a step, `real` was recorded and `ours` came."""

    case: str
    index: int
    step: str
    path: str
    real: Json
    ours: Json

    def __str__(self) -> str:
        both = f"      real {self.real!r}\n      ours {self.ours!r}"
        return f"{self.case} #{self.index} {self.step}\n    {self.path}\n{both}"


@dataclass(frozen=True)
class Accepted:
    """A divergence that has a reason: globs of the sequence's name, of the step, of the path and of both values."""

    reason: str
    case: str = "*"
    step: str = "*"
    path: str = "*"
    real: str = "*"
    ours: str = "*"
    extends: bool = False
    """Ours is the real text, and more after it."""

    def covers(self, found: Difference) -> bool:
        """Whether this is it."""
        return (
            fnmatchcase(found.case, self.case)
            and fnmatchcase(found.step, self.step)
            and fnmatchcase(found.path, self.path)
            and fnmatchcase(str(found.real), self.real)
            and fnmatchcase(str(found.ours), self.ours)
            and (not self.extends or (found.real and str(found.ours).startswith(str(found.real))))
        )


@lru_cache(maxsize=1)
def accepted() -> tuple[Accepted, ...]:
    """The reviewed file."""
    return tuple(Accepted(**entry) for entry in yaml.safe_load(ACCEPTED.read_text(encoding="utf-8")) or ())


def unexplained(case: Case, real: list[Json], ours: list[Json]) -> list[Difference]:
    """What differs and has no reason."""
    return [found for found in differences(case, real, ours) if not any(a.covers(found) for a in accepted())]


def differences(case: Case, real: list[Json], ours: list[Json]) -> Iterator[Difference]:
    """Everything that differs, the answer to each step by itself; other bodies of answers of another code go unsaid."""
    told = [step for step in case.steps if "pause" not in step]
    for index, (step, theirs, mine) in enumerate(zip(told, real, ours, strict=True)):
        text = _text(step)
        if theirs.get("code") != mine.get("code"):
            words = [_outcome(answer) for answer in (theirs, mine)]
            yield Difference(case.name, index, text, "code", *words)
            continue
        for path, one, other in _walk(theirs, mine, ""):
            yield Difference(case.name, index, text, path, one, other)


def _outcome(answer: Json) -> str:
    body = answer.get("body")
    message = body.get("message", "") if isinstance(body, dict) and body.get("kind") == "Status" else ""
    return f"{answer.get('code')} {message}".strip()


def _text(step: Step) -> str:
    if "close" in step:
        return f"close {step['close']}"
    verb = "WATCH" if "watch" in step else step["do"]
    form = step.get("type", "").removeprefix("application/").partition("-patch")[0] if "type" in step else ""
    return " ".join(filter(None, [verb, step["path"], form]))


def _walk(real: Json, ours: Json, path: str) -> Iterator[tuple[str, Json, Json]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted({*real, *ours}):
            yield from _walk(real.get(key, ABSENT), ours.get(key, ABSENT), f"{path}.{key}" if path else key)
    elif isinstance(real, list) and isinstance(ours, list) and len(real) != len(ours) and _named(real, ours):
        one, other = ({_name(item): item for item in items} for items in (real, ours))
        yield from _walk(one, other, path)
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _walk(one, other, f"{path}.{index}")
    elif type(real) is not type(ours) or real != ours:
        yield path, real, ours


def _named(*lists: list[Json]) -> bool:
    """Whether all items have names, each a name of its own: then what one list lacks is told by its name."""
    return all(len({_name(item) for item in items} - {""}) == len(items) for items in lists)


def _name(item: Json) -> str:
    if not isinstance(item, dict):
        return ""
    meta = item.get("metadata")
    found = item.get("name") or item.get("resource") or item.get("subresource")
    return str(found or (meta.get("name") if isinstance(meta, dict) else "") or "")
