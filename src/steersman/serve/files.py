"""Small private files: keys, tokens, configuration. Written whole or not at all, never through a symlink."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

# Certificates and kubeconfigs are a few KiB; a kubeconfig of hundreds of clusters stays below 2 MiB.
MAX_FILE_BYTES = 4 * 1024 * 1024


class FileError(Exception):
    """A file cannot be used. The text names the file, the trouble and the remedy."""


def read_file(path: Path, private: bool = False) -> bytes:
    """The bytes of a regular file. `private`: refuse one that others may read or that is not ours.

    Raises FileNotFoundError when it is missing, FileError for all else.
    """
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileError(_explain("read", path, error)) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{path} is not a regular file; remove it or name another path")
        if private:
            check_private(path, status)
        with open(handle, "rb", closefd=False) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise FileError(_explain("read", path, error)) from None
    finally:
        os.close(handle)
    if len(data) > MAX_FILE_BYTES:
        raise FileError(f"{path} is over {MAX_FILE_BYTES} bytes; it is not a file of this kind")
    return data


def check_private(path: Path, status: os.stat_result) -> None:
    """Raises FileError for a file that others may read or that is not ours."""
    if status.st_uid not in (os.geteuid(), 0):
        raise FileError(f"{path} belongs to another user (uid {status.st_uid}); name a path of your own")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise FileError(f"{path} can be read by others (mode {mode:04o}); run: chmod 600 {path}")


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Replace `path` atomically: a reader, or a crash, sees the old file or the new one, both on disk.

    A symlink is refused, not followed and not replaced. A file that is already what it should be is left alone, so
    that a start needs no room on a full disk. Raises FileError.
    """
    if _is(path, data, mode):
        return
    temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise FileError(f"{path} is not a regular file (a symlink?); name the file itself")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(handle, "wb") as file:
                os.fchmod(handle, mode)  # the umask has no say
                file.write(data)
                file.flush()
                os.fsync(handle)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_directory(path.parent)
    except OSError as error:
        raise FileError(_explain("write", path, error)) from None


def _is(path: Path, data: bytes, mode: int) -> bool:
    """Whether a file of ours has these bytes and this mode."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) != mode or status.st_uid != os.geteuid():
            return False
        return status.st_size == len(data) and read_file(path) == data
    except (FileError, OSError):
        return False


def make_parents(path: Path) -> None:
    """Make the directories above `path` that are missing, mode 0700. Raises FileError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError(f"{path.parent} is not a directory; remove it or name another path") from None
    except OSError as error:
        raise FileError(_explain("make the directory of", path, error)) from None


def private_directory(path: Path) -> None:
    """Make `path` (and its parents) if missing; its own mode becomes 0700. Raises FileError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(handle).st_uid not in (os.geteuid(), 0):
                raise FileError(f"{path} belongs to another user; name a directory of your own")
            os.fchmod(handle, 0o700)
        finally:
            os.close(handle)
    except FileExistsError:
        raise FileError(f"{path} is not a directory; remove it or name another path") from None
    except OSError as error:
        raise FileError(_explain("use directory", path, error)) from None


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the advisory lock of `directory`, so that two processes do not both make or merge its files."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileError(_explain("lock", directory, error)) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _explain(action: str, path: Path, error: OSError) -> str:
    remedies = {
        errno.ELOOP: "it is a symlink, and those are not followed here; name the file itself",
        errno.EACCES: "check its owner and mode, and those of its directory",
        errno.EPERM: "check its owner and mode, and those of its directory",
        errno.ENOENT: "make its directory first",
        errno.ENOTDIR: "a part of the path is not a directory",
        errno.ENOSPC: "free some space; the old file is as it was",
        errno.EROFS: "name a path on a file system that can be written",
        errno.EISDIR: "name a file",
    }
    reason = os.strerror(error.errno) if error.errno else str(error)
    remedy = remedies.get(error.errno or 0)
    return f"cannot {action} {path}: {reason}" + (f"; {remedy}" if remedy else "")
