"""Requests that somebody else must be asked about: webhooks.

Answers take time, and the head moves meanwhile. So a request that needs one is given up, and begun again when the
answer is there, on the head of that moment: what it asks for a second time is answered from its trail, as long as the
question is still the same; a question that the moved head has changed is asked anew, as kube-apiserver asks its
webhooks again after a conflict. Thus begin and commit always stand in one turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from steersman.api import errors
from steersman.kernel.effect import Request

Trail = Sequence[tuple[Any, Any]]
"""Questions and answers of a request so far, in order: names and uids drawn, and what webhooks said."""
ASKED: Final = frozenset({"webhook", "convert"})
"""Kinds of Call that a `Asking` answers."""
MAX_BEGINS: Final = 64
"""How often one request is begun: for each of many webhooks, and for an object that changes all the time."""


class Asked(Exception):
    """A request came to a question nobody has answered yet."""

    def __init__(self, kind: str, question: Any, trail: Trail) -> None:
        super().__init__(kind)
        self.kind = kind
        self.question = question
        self.trail = trail

    def with_answer(self, answer: Any) -> Trail:
        """The trail to begin again with."""
        return [*self.trail, (self.question, answer)]


class Asking(Protocol):
    """Answers questions (`kernel.ports.Caller`, for a face that need not wait)."""

    async def call(self, kind: str, question: Any) -> Any:
        """The answer, as JSON. It does not raise: a failure is an answer."""


def too_often(request: Request) -> errors.ApiError:
    """The refusal of a request that was begun too often."""
    told = "the object has been modified; please apply your changes to the latest version and try again"
    return errors.conflict(request.key.kind.lower(), request.key.name, told, request.key.group)


def unanswered(text: str, timed_out: bool = False) -> dict[str, Any]:
    """The answer that there is none."""
    return {"unanswered": text, "timedOut": timed_out}
