"""Components: parts of a control plane too big to be a reconcile per object.

The scheduler and the kubelets of 5,000 virtual nodes keep state derived from the objects they watch. That state comes
from delivered events and from the component's own effects only, so it can always be rebuilt from a view (law:
incremental = rebuilt). Check uses a component or its plain twin, a controller tested to behave the same.
"""

from __future__ import annotations

from typing import Any, Protocol

from .effect import Event, Refused, Request
from .store import Store


class Component(Protocol):
    """One component. The state belongs to the component; the world only carries it from call to call. In a world that
    keeps old worlds (check), a call gives a new state and leaves the given one as it is; else it may change it.

    A component that is to be searched also has `identity(state, now)`: what its future depends on beside the store, as
    a value whose text is the same for equal states. Without it the fingerprint refuses the component by name.
    """

    name: str

    def start(self, store: Store) -> Any:
        """The state that follows from a store."""

    def on_event(self, state: Any, event: Event) -> Any:
        """The state after one event."""

    def advance(self, state: Any, now: int) -> tuple[Any, list[Request]]:
        """Does what is due at `now` (microseconds): the next state, and the requests to make, in order. They are made
        at once; their events, and refusals, reach the component before anything else happens."""

    def on_refused(self, state: Any, request: Request, refusal: Refused) -> Any:
        """The state after one of its requests was refused."""

    def next_deadline(self, state: Any) -> int | None:
        """When there is something to do (microseconds); None: not before the next event."""
