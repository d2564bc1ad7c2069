"""`steersman inspect`: a saved run in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

FAULTY = 2


def inspect(file: Annotated[Path, typer.Argument(metavar="RUN", help="What steersman check --save wrote.")]) -> None:
    """Shows a saved run: states, ways, steps, what each step saw and changed, and why.

    Needs Textual: pip install 'steersman[inspect]'. Exit code 2: the file or the terminal will not do.
    """
    from steersman.check.report.run_file import RunFileError, read

    try:
        command = read(file)
    except RunFileError as error:
        raise _refused(str(error)) from None
    try:
        from steersman.check.inspector.app import Inspector
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("textual", "rich"):
            raise
        raise _refused("needs Textual; pip install 'steersman[inspect]'") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise _refused("needs a terminal; steersman check FILE --html PAGE shows the same in a browser")
    Inspector(command, file).run()


def _refused(why: str) -> typer.Exit:
    typer.echo(f"steersman inspect: {why}", err=True)
    return typer.Exit(FAULTY)
