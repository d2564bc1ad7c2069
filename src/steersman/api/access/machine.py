"""What the parts that are filled in need of the request machine (`api.begin.Api`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from steersman.api.access.authz import Rbac
from steersman.api.admission.plugin import Attempt
from steersman.kernel.effect import Outcome, Request
from steersman.kernel.store import Store


class Machine(Protocol):
    """The request machine."""

    @property
    def rbac(self) -> Rbac:
        """Who may do what."""

    def begin(self, store: Store, request: Request) -> Outcome:
        """The outcome of another request. Raises `ApiError`."""

    def admitted(self, attempt: Attempt, then: Callable[[Attempt], Outcome]) -> Outcome:
        """What `then` makes of a write, once admission has let it pass. Raises `ApiError`."""
