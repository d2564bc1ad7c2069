"""Edits of bodies: what the built-in plugins share.

A spec that many pods share is edited once: the edit is remembered by the identity of what is edited, so that pods of
one template go on sharing their spec, validated, serialised and digested once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from steersman.api.admission.plugin import Attempt, Verdict
from steersman.api.errors import ApiError
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY, Frozen, FrozenList

REMEMBERED: Final = 128
"""Edits one plugin remembers: templates in use at one time; all are forgotten when there are more."""


class Edits:
    """Remembered edits of frozen values. It changes what an edit costs, never what it gives."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[int, Hashable], tuple[Any, Any]] = {}

    def __call__(self, value: Frozen, how: Hashable, make: Callable[[Frozen], Frozen]) -> Frozen:
        """`make(value)`, where `how` holds all else that decides the result."""
        place = (id(value), how)
        found = self._known.get(place)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[place] = (value, make(value))  # the value is kept, so its id stays its own
        edited: Frozen = found[1]
        return edited


def with_part(attempt: Attempt, part: str, value: Any) -> Verdict | None:
    """The verdict that one top-level field becomes `value`; None when it is that already."""
    body = attempt.body
    assert body is not None
    return None if body.get(part) is value else Verdict(Frozen({**body, part: value}))


def spec_of(attempt: Attempt) -> Frozen:
    """The spec of the body."""
    body = attempt.body
    assert body is not None
    return body.get("spec") or EMPTY


def sent(attempt: Attempt) -> Mapping[str, Any]:
    """The spec as the client sent it, before defaults; empty where it sent none (in a patch)."""
    body = attempt.request.body
    spec = body.get("spec") if isinstance(body, dict) else None
    return spec if isinstance(spec, dict) else EMPTY


def notes_of(attempt: Attempt) -> Mapping[str, Any]:
    """The annotations of the body."""
    body = attempt.body
    assert body is not None
    return (body.get("metadata") or EMPTY).get("annotations") or EMPTY


def joined(items: Any, *more: Any) -> FrozenList:
    """A list with some items more."""
    return FrozenList([*(items or ()), *more])


def newest(classes: list[Object]) -> Object | None:
    """Of the classes marked as default, the newest; of several made in one second the first by name."""
    classes.sort(key=lambda obj: obj.key.name)
    classes.sort(key=lambda obj: str(obj.meta.value.get("creationTimestamp") or ""), reverse=True)
    return classes[0] if classes else None


def raise_all(attempt: Attempt, problems: list[str]) -> None:
    """Raises one 403 for all that is wrong, as Go's aggregate of errors reads."""
    found = list(dict.fromkeys(problems))
    if found:
        raise refusal(attempt, found)


def refusal(attempt: Attempt, problems: list[str]) -> ApiError:
    """The 403 for these problems."""
    return attempt.forbidden(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
