"""Stores that tell what was read of them: what a write looks at beside its own slot, and what a property looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from steersman.kernel.effect import GK, Effect, ListQuery
from steersman.kernel.object import Key, Object
from steersman.kernel.store import EVERY, Store


class Watched(Store):
    """A store that is only read, and tells each question as an effect that would ask it."""

    __slots__ = ("_heard", "_plain")
    _heard: Callable[[Effect], None]
    _plain: Store

    @staticmethod
    def of(store: Store, heard: Callable[[Effect], None]) -> Watched:
        """The same contents; nothing is copied."""
        out = Watched.__new__(Watched)
        for name in Store.__slots__:
            setattr(out, name, getattr(store, name))
        out._heard = heard
        out._plain = store
        return out

    def _all(self, gk: GK, namespace: str | None = None) -> None:
        self._heard(Effect("list", ListQuery(gk, namespace)))

    def get(self, key: Key) -> Object | None:
        self._heard(Effect("get", key))
        return self._plain.get(key)

    def count(self, gk: GK) -> int:
        self._all(gk)
        return self._plain.count(gk)

    def lacks(self, gks: frozenset[GK]) -> bool:
        for gk in sorted(gks):
            self._all(gk)
        return self._plain.lacks(gks)

    def kinds(self) -> list[GK]:
        self._all(EVERY)
        return self._plain.kinds()

    def mark(self, gk: GK) -> tuple[object, int]:
        self._all(gk)
        return self._plain.mark(gk)

    def namespaces(self, gk: GK) -> list[str]:
        self._all(gk)
        return self._plain.namespaces(gk)

    def list(self, gk: GK, namespace: str | None = None, after: tuple[str, str] | None = None) -> Iterator[Object]:
        self._all(gk, namespace)
        return self._plain.list(gk, namespace, after)

    def derived(self, gk: GK, make: Callable[[Iterator[Object]], Any]) -> Any:
        self._all(gk)
        return self._plain.derived(gk, make)

    def count_after(self, gk: GK, namespace: str | None, after: tuple[str, str]) -> int:
        self._all(gk, namespace)
        return self._plain.count_after(gk, namespace, after)

    def find(self, index: str, value: str, gk: GK | None = None) -> Iterator[Object]:
        self._heard(Effect("list", ListQuery(gk or EVERY, None, index, value)))
        return self._plain.find(index, value, gk)

    def query(self, query: ListQuery, after: tuple[str, str] | None = None) -> Iterator[Object]:
        self._heard(Effect("list", query))
        return self._plain.query(query, after)

    def objects(self) -> Iterator[Object]:
        self._all(EVERY)
        return self._plain.objects()
