"""The read-set memo on disk: what controllers did in earlier checks, by their code and everything they read.

A folder holds one file for each controller's code: a line that says what it is, then a line a step: its name (a digest
of start and outcomes), a checksum and the step as JSON (`steps`). Only steps that two executions agreed on are kept;
what a finding came from never is, so it is found again. A file that is damaged, or that somebody else may have
written, is not used, and `Memo.line` says so.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import orjson
from xxhash import xxh3_64_hexdigest

from steersman.api.kinds import Kinds
from steersman.api.selectable import selectable
from steersman.check.memo import steps
from steersman.check.memo.code import Unknowable, code_of
from steersman.check.mistake import ScenarioError
from steersman.kernel.identity import digest
from steersman.kernel.object import SORTED
from steersman.kernel.reexec import Learned, Node, Outcome, Recalled, Reexec

HEAD: Final = b"steersman-memo 1"
"""The first line; the number changes with the form of the others."""
LINE: Final = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{16}) (.+)", re.DOTALL)
MAX_FILE: Final = 64 << 20
"""Bytes kept of one controller: some hundred thousand steps. It is read whole before a search."""
MAX_FOLDER: Final = 512 << 20
"""Bytes of all files; the ones used least recently go."""
SUFFIX: Final = ".memo"


class _File:
    """The steps of one controller."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[bytes, bytes] = {}
        self.size = 0
        self.new = 0

    def add(self, name: bytes, text: bytes) -> bool:
        """Takes in a step, if there is room."""
        size = len(name) + len(text) + 20
        if name in self.known or self.size + size > MAX_FILE:
            return False
        self.known[name] = text
        self.size += size
        return True


class Memo:
    """The memo of one check (`kernel.recall.Recall`). Raises `ScenarioError` for a folder that cannot be used."""

    def __init__(self, folder: Path, factories: dict[str, Callable[[], Any]], kinds: Kinds) -> None:
        self.folder = folder
        self.recalled = 0
        self.notes: list[str] = []
        self._files: dict[str, _File | None] = {}
        self._open()
        declared = [_declared(kind) for kind in kinds.all() if kind.custom]
        for name, factory in factories.items():
            self._files[name] = self._file(name, factory, declared)

    def _open(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = self.folder.stat()
        except OSError as error:
            raise ScenarioError(f"memo {self.folder}: {error.strerror}; name a folder that can be written to") from None
        if about.st_uid != os.geteuid() or about.st_mode & stat.S_IWOTH:
            raise ScenarioError(
                f"memo {self.folder}: others may write there, and what stands there is believed; name a folder of your "
                "own, or take their right away: chmod o-w"
            )

    def _file(self, name: str, factory: Callable[[], Any], declared: list[str]) -> _File | None:
        made = factory()
        try:
            code = code_of(factory, type(made), made, name, declared)
        except Unknowable as error:
            self.notes.append(f"{name} is executed every time: it depends on {error}")
            return None
        file = _File(self.folder / f"{re.sub(r'[^a-z0-9-]', '-', name.lower())[:60]}-{code}{SUFFIX}")
        try:
            self._read(file)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.notes.append(f"{file.path.name} is not used: {why}")
            file.known.clear()
            file.size = 0
        return file

    @staticmethod
    def _read(file: _File) -> None:
        """Raises `OSError` and `ValueError`."""
        with open(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as source:
            about = os.fstat(source.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & stat.S_IWOTH:
                raise ValueError("others may write to it")
            if about.st_size > MAX_FILE + len(HEAD) + 1:
                raise ValueError(f"larger than {MAX_FILE:,} bytes")
            head, *lines = source.read(MAX_FILE + len(HEAD) + 1).split(b"\n")
        if head != HEAD or (lines and lines.pop()):
            raise ValueError("it is damaged")
        for number, line in enumerate(lines, 2):
            found = LINE.fullmatch(line)
            if found is None or _sum(found[1], found[3]) != found[2]:
                raise ValueError(f"line {number} is damaged")
            file.add(found[1], found[3])

    # -- what the kernel asks --------------------------------------------------------------------------------------

    def find(self, reexec: Reexec, node: Node, journal: Sequence[Outcome]) -> Recalled | None:
        """See `Recall`."""
        loop: Any = reexec.loops[node.loop]
        file = self._of(loop)
        if file is None or not file.known:
            return None
        name = _name(reexec, node, journal)
        text = file.known.get(name)
        if text is None:
            return None
        try:
            step = steps.read(text, loop.api)
        except steps.Unreadable as error:
            self.notes.append(f"{file.path.name}: a step is not used: {error}")
            del file.known[name]
            return None
        self.recalled += 1
        return step

    def keep(self, reexec: Reexec, node: Node, journal: Sequence[Outcome], learned: Learned | None) -> None:
        """See `Recall`."""
        loop: Any = reexec.loops[node.loop]
        file = self._of(loop)
        if file is None:
            return
        step = Recalled(None, -1, None, learned) if learned else Recalled(node.effect, node.version, node.result, None)
        text = steps.written(step, loop.api)
        if text is not None and file.add(_name(reexec, node, journal), text):
            file.new += 1

    def _of(self, loop: Any) -> _File | None:
        """The file of a controller; a second leader has that of the first."""
        file = self._files.get(loop.name)
        return file if file is not None or loop.name in self._files else self._files.get(getattr(loop, "actor", ""))

    # -- at the end ------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Writes what is new, and lets go of the oldest files of a folder that is too large."""
        for file in self._files.values():
            if file is None:
                continue
            try:
                if file.new:
                    _write(file)
                elif file.known:
                    os.utime(file.path)
            except OSError as error:
                self.notes.append(f"{file.path.name} was not written: {error.strerror}")
        with suppress(OSError):
            self._tidy()

    def _tidy(self) -> None:
        found = [(path.stat(), path) for path in self.folder.glob(f"*{SUFFIX}")]
        held = sum(about.st_size for about, _ in found)
        for about, path in sorted(found, key=lambda one: (one[0].st_mtime_ns, one[1])):
            if held <= MAX_FOLDER:
                return
            path.unlink(missing_ok=True)
            held -= about.st_size

    @property
    def line(self) -> str:
        """What it did, for a verdict."""
        new = sum(file.new for file in self._files.values() if file is not None)
        return "; ".join([f"{self.recalled:,} steps recalled, {new:,} kept", *dict.fromkeys(self.notes)])


def _write(file: _File) -> None:
    handle, made = tempfile.mkstemp(dir=file.path.parent, prefix=".memo-")
    try:
        with open(handle, "wb") as out:
            out.write(HEAD + b"\n")
            for name, text in file.known.items():
                out.write(b"%b %b %b\n" % (name, _sum(name, text), text))
        Path(made).replace(file.path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def _sum(name: bytes, text: bytes) -> bytes:
    return xxh3_64_hexdigest(name + text).encode()


def _name(reexec: Reexec, node: Node, journal: Sequence[Outcome]) -> bytes:
    """The name of a step: how executions are compared, the start, and the outcomes."""
    canon = reexec.canon
    how = (reexec.times, bool(canon.table), canon.ranks, reexec.vary is nullcontext)
    memory = b"" if node.memory is None else orjson.dumps(node.memory, option=SORTED)
    return f"{digest(how, *node.key, memory, *[outcome.concrete for outcome in journal]):032x}".encode()


def _declared(kind: Any) -> str:
    """What a client makes of a custom kind."""
    names = (kind.group, kind.version, kind.kind, kind.plural, kind.singular, kind.short_names, kind.namespaced)
    return f"{names} {kind.served} {kind.subresources} {sorted(selectable(kind))}"
