"""Where a control plane keeps what it keeps: the journal, a lock against a second instance, certificates, tokens."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final

import steersman.journal as sj
from steersman.journal import Journal
from steersman.run.load import StartError
from steersman.run.scratch import Scratch
from steersman.serve.files import FileError, check_private, private_directory

_SUFFIXES: Final = (".db", ".db-wal", ".db-shm")
"""Of the files of a workspace's journal."""
CACHE_KIB: Final = 1 << 10
"""Of a workspace's journal in memory: there may be a thousand."""


class Place:
    """The files of the store at `url`. A context manager: it holds the lock inside.

    `sqlite:PATH` has `PATH.lock` and the directories `PATH.pki` and `PATH.workspaces` beside it; `memory:` has a
    directory that goes with it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock: int | None = None
        self._temporary: Scratch | None = None
        scheme, _, path = url.partition(":")
        # By its real name, so that a symlink to a store in use does not look like another store.
        self._path = Path(os.path.realpath(Path(path).expanduser())) if scheme == "sqlite" and path.strip() else None
        self.journal: Journal | None = None
        self._workspaces: dict[tuple[str, str], Journal] = {}

    @property
    def lasting(self) -> bool:
        """Whether anything is left when the process ends."""
        return self._path is not None

    @property
    def pki(self) -> Path:
        """The directory of certificates and tokens."""
        if self._path is not None:
            return self._path.with_name(self._path.name + ".pki")
        assert self._temporary is not None
        return self._temporary.path

    @property
    def tokens(self) -> Path:
        """The token store."""
        return self.pki / "tokens.json"

    def workspace(self, name: str, uid: str) -> Journal:
        """The journal of one workspace, opened: that of one incarnation, so that a new one finds nothing of an old.
        Raises `JournalError` and `FileError`."""
        if self._path is None:
            journal = sj.open("memory:")
        else:
            private_directory(self._folder)
            journal = sj.open(f"sqlite:{self._file(name, uid)}", cache_kib=CACHE_KIB)
        self._workspaces[(name, uid)] = journal
        return journal

    def lost(self, name: str, uid: str) -> Path | None:
        """The file that a workspace's journal should be in, if it is not there or has nothing in it."""
        if self._path is None:
            return None
        file = self._file(name, uid)
        try:
            return None if file.stat().st_size else file
        except FileNotFoundError:
            return file

    def left(self) -> list[tuple[str, str]]:
        """(name, uid) of every workspace of which there are files, sorted."""
        if self._path is None or not self._folder.is_dir():
            return []
        found = {name.split(".db")[0] for name in os.listdir(self._folder) if name.endswith(_SUFFIXES)}
        return sorted((name, uid) for name, _, uid in (each.rpartition(".") for each in found) if name)

    def shut(self, name: str, uid: str) -> None:
        """Closes a workspace's journal, if it is open."""
        journal = self._workspaces.pop((name, uid), None)
        if journal is not None:
            journal.close()

    def forget(self, name: str, uid: str) -> None:
        """Closes a workspace's journal and removes it. Raises `FileError`."""
        self.shut(name, uid)
        if self._path is None:
            return
        for suffix in _SUFFIXES:
            file = f"{self._folder}/{name}.{uid}{suffix}"
            try:
                os.unlink(file)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise FileError(f"{file} cannot be removed: {error.strerror}; remove it by hand") from None

    @property
    def _folder(self) -> Path:
        assert self._path is not None
        return self._path.with_name(self._path.name + ".workspaces")

    def _file(self, name: str, uid: str) -> Path:
        return self._folder / f"{name}.{uid}.db"

    def __enter__(self) -> Place:
        try:
            if self._path is None:
                self._temporary = Scratch()
            else:
                self._lock = _lock(self._path.with_name(self._path.name + ".lock"), self.url)
                with contextlib.suppress(FileNotFoundError):  # Secrets are in it
                    check_private(self._path, self._path.stat())
            self.journal = sj.open(self.url)
            private_directory(self.pki)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the journals and gives the lock back."""
        for journal in self._workspaces.values():
            journal.close()
        self._workspaces.clear()
        if self.journal is not None:
            self.journal.close()
            self.journal = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _lock(path: Path, url: str) -> int:
    """Takes the lock file, which names its holder. The kernel gives it back however the process ends."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FileError(
            f"store {url}: cannot open {path}: {error.strerror}; "
            "name a file in an existing directory that this user may write to"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = ""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            holder = os.pread(handle, 32, 0).decode().strip()
        os.close(handle)
        by = f" by process {holder}" if holder.isdigit() else ""
        raise StartError(f"store {url} is in use{by}; stop that one, or name another store with --store") from None
    with contextlib.suppress(OSError):  # who holds it is only told to people; a full disk is no reason to refuse
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle
