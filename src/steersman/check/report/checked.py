"""What a command checked, for the reports that are made of all of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steersman.check.verdict import Verdict


class Checked(NamedTuple):
    """One verdict and where it comes from."""

    file: str
    """As it was given on the command line."""
    name: str
    """The function in it."""
    line: int
    """Where that begins, from 1."""
    verdict: Verdict
    sources: Mapping[str, tuple[str, int]] = {}
    """Controller → (file, line) of its reconcile."""

    @property
    def target(self) -> str:
        """`FILE::NAME`, as the command takes it."""
        return f"{self.file}::{self.name}"


def line_of(function: Callable[..., Any]) -> int:
    """The line a function begins at; 1 where its source cannot be found."""
    try:
        return inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return 1


def sources_of(controllers: Mapping[str, type[Any]]) -> dict[str, tuple[str, int]]:
    """Where the controllers' `reconcile` stands, below the folder the command runs in where it is there."""
    out: dict[str, tuple[str, int]] = {}
    for name, cls in controllers.items():
        try:
            method = inspect.unwrap(getattr(cls, "reconcile"))  # noqa: B009 - any class
            file, (_, line) = inspect.getsourcefile(method), inspect.getsourcelines(method)
        except (AttributeError, OSError, TypeError):
            continue
        if file:
            path, here = Path(file).resolve(), Path.cwd()
            out[name] = (str(path.relative_to(here)) if path.is_relative_to(here) else path.as_uri(), line)
    return out


def written(path: Path, text: str) -> None:
    """Writes a report, and the folder it is in. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say what could not be written
        raise
