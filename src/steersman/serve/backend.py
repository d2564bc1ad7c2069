"""What the HTTP face serves: the port between `serve` and whoever owns the store (`run`, tests)."""

from __future__ import annotations

from typing import Protocol

from steersman.api.begin import Api
from steersman.kernel.effect import GK, Event, Reply, Request
from steersman.kernel.store import Store
from steersman.serve.credentials.signer import Signer


class Backend(Protocol):
    """One control plane. All methods are called from one event loop."""

    @property
    def api(self) -> Api:
        """The request machine and its kinds."""

    @property
    def store(self) -> Store:
        """The durable head: what may be shown. It does not change between two awaits."""

    @property
    def signer(self) -> Signer | None:
        """Whose signatures clients' tokens have; None when there are no such tokens."""

    def now(self) -> int:
        """The clock, in microseconds."""

    async def write(self, request: Request, large: bool = False) -> Reply:
        """Carries out any request that may write; answers after the commit is durable. `large`: its body is, so that it
        had better be looked at beside the loop. Raises `ApiError`."""

    def since(self, gk: GK, rev: int) -> list[Event]:
        """Durable events of a kind after a revision, up to `store.rev`. Raises `kernel.changelog.Gone`."""

    async def changed(self, gk: GK, rev: int) -> None:
        """Returns when there may be durable events of a kind after `rev`: at once if there are any already.

        May be cancelled, and return for nothing; see `serve.wakeups.Wakeups`. Raises `Gone` when the control plane has
        ended, so that watches do too.
        """
