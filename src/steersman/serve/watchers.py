"""How many watches there are, in all and by user: they hold connections for an hour, of which others need some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from steersman.api import errors

MAX_WATCHES: Final = 7_000
"""Watches of one workspace at a time: the server has 8,192 connections, and whoever wants to put an end to the watches
must be able to connect."""
MAX_WATCHES_OF_USER: Final = 4_000
"""Watches of one user at a time. kube-controller-manager has some 60, and a kubelet one for each secret of its pods."""
RETRY_SECONDS: Final = 5
"""What whoever has too many is told to wait."""


class Watchers:
    """Counts the watches that are open."""

    def __init__(self, most: int = MAX_WATCHES, most_of_user: int = MAX_WATCHES_OF_USER) -> None:
        self.most = most
        self.most_of_user = most_of_user
        self.count = 0
        self.by_user: dict[str, int] = {}

    def check(self, user: str) -> None:
        """Raises `ApiError` 429 where the user, or the server, has all the watches there may be."""
        if self.by_user.get(user, 0) >= self.most_of_user:
            problem = f"you have {self.most_of_user} watches already; end some"
        elif self.count >= self.most:
            problem = f"the server has its {self.most} watches"
        else:
            return
        raise errors.too_many_requests(problem, RETRY_SECONDS)

    @contextmanager
    def counted(self, user: str) -> Iterator[None]:
        """Counts a watch, from its first chunk to its end."""
        self.count += 1
        self.by_user[user] = self.by_user.get(user, 0) + 1
        try:
            yield
        finally:
            self.count -= 1
            self.by_user[user] -= 1
            if not self.by_user[user]:
                del self.by_user[user]
