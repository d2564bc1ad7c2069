"""From a journal to the store it stands for, and the proof that it is the same one (law J1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.api.stored import Loader, StoredError
from steersman.journal import Commit, Journal, Sums
from steersman.journal.record import Retention
from steersman.kernel.effect import GK, Event
from steersman.kernel.object import Object
from steersman.kernel.store import Store, StoreConfig

HEAD_ONLY: Final = frozenset(
    {("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease"), ("", "Secret")}
)
"""Kinds of which only the newest version is kept: heartbeats and events by their number, secrets because a history
of them must not lie about unencrypted."""


class StartError(Exception):
    """A control plane cannot start. The text says what is wrong, where, and what to do."""


def config() -> StoreConfig:
    """What both heads keep beside their objects."""
    return StoreConfig(concrete=True, compact=True, head_only=HEAD_ONLY.__contains__)


def retention(gk: GK) -> Retention:
    """The journal's class of a kind: "full" or "head-only"."""
    return "head-only" if gk in HEAD_ONLY else "full"


def sums_of(store: Store) -> Sums:
    """The two running digest sums as the journal holds them."""
    full, head_only = store.digest
    return full.to_bytes(16, "big"), head_only.to_bytes(16, "big")


def load_store(journal: Journal) -> Store:
    """The store at the journal's head. Raises `StartError` when it is not the one that was written."""
    store = Store(config())
    loader = Loader()
    snapshot = journal.snapshot()
    for commit in snapshot.commits:
        store.put(_object(loader, commit, journal.url))
    revision = snapshot.head.revision
    store.rev = revision
    written = journal.sums(revision)
    for name, wanted, found in zip(("full", "head-only"), written, sums_of(store), strict=True):
        if wanted is not None and wanted != found:
            raise StartError(
                f"store {journal.url}: its objects of {name} history at revision {revision} have digest "
                f"{found.hex()}, but {wanted.hex()} was written; the file is damaged or was written by an incompatible "
                "version of Steersman: start that version, or restore the file from a backup"
            )
    return store


def replay(commits: Iterable[Commit], store: Store, where: str) -> Iterator[tuple[Commit, Event]]:
    """Carries commits out on `store`, one by one, and gives each with the event it was. Raises `StartError`."""
    loader = Loader()
    for commit in commits:
        old = store.get(commit.key)
        new: Object | None = None
        if commit.verb == "delete":
            store.remove(commit.key, commit.revision)
        else:
            new = _object(loader, commit, where)
            store.put(new)
        store.rev = commit.revision
        yield commit, Event(commit.revision, commit.key, old, new)


def check_history(journal: Journal) -> list[str]:
    """Law J1 on a whole journal: its commits, replayed, give the sums that were written, at every revision for kinds
    of full history and at the head for the others. What differs; empty when nothing does. Raises `StartError`."""
    store = Store(config())
    differences: list[str] = []
    for commit, _ in replay(journal.read(), store, journal.url):
        if sums_of(store)[0] != commit.sums[0]:
            differences.append(
                f"revision {commit.revision}, {commit.verb} of {commit.key}: another digest than written"
            )
    full, head_only = journal.sums(store.rev)
    if head_only is not None and sums_of(store) != (full, head_only):
        differences.append(f"the head, revision {store.rev}: another digest than written")
    return differences


def _object(loader: Loader, commit: Commit, where: str) -> Object:
    try:
        obj = loader.load(commit.object)
    except StoredError as error:
        raise StartError(f"store {where}: {commit.key} at revision {commit.revision}: {error}") from None
    if obj.key != commit.key or obj.rv != commit.revision:
        raise StartError(f"store {where}: {commit.key} at revision {commit.revision} holds {obj!r}")
    return obj
