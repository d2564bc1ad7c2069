"""`steersman trace`: looks at recordings, checks and repairs them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steersman.trace.recording import Trace
    from steersman.trace.stats import Stats
    from steersman.trace.validate import Rule

DONE, FOUND, FAULTY = 0, 1, 2

trace = typer.Typer(
    help="Looks at recordings (.sktrace), checks and repairs them.", no_args_is_help=True, add_completion=False
)

_File = Annotated[Path, typer.Argument(metavar="TRACE", help="A .sktrace file.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@trace.command()
def show(file: _File) -> None:
    """Lists what is applied (+) and deleted (-), and when, in seconds from the start.

    Exit codes: 0 done, 2 the file cannot be read.
    """
    for line in _timeline(_read(file)):
        _say(line)


@trace.command()
def stats(file: _File, json: _Json = False) -> None:
    """Counts events, objects by kind and namespace, and the lives of pods.

    Exit codes: 0 done, 2 the file cannot be read.
    """
    from steersman.trace.stats import stats as count

    found = count(_read(file))
    if json:
        _say_json(found.document())
        return
    for line in _figures(found):
        _say(line)


@trace.command()
def validate(
    file: _File,
    fix: Annotated[bool, typer.Option("--fix", help="Write a repaired trace to --output.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="With --fix.")] = None,
    json: _Json = False,
) -> None:
    """Checks a trace by SimKube's rules (W0000, E0001 to E0005) and ours (S0001 and up).

    Exit codes: 0 no errors (there may be warnings), 1 errors, 2 the command or the file is at fault. With --fix the
    code is that of the repaired trace.
    """
    from steersman.trace.validate import fixed
    from steersman.trace.validate import validate as check

    if fix != (output is not None):
        raise _fault("--fix and --output FILE belong together: give both (FILE may be TRACE itself)")
    recording = _read(file)
    before = check(recording)
    after = before
    if output is not None:
        repaired = fixed(recording)
        _write(output, repaired)
        after = check(repaired)
    if json:
        _say_json(
            [{"code": f.rule.code, "severity": f.rule.severity, "at": f.place, "problem": f.problem} for f in after]
        )
    else:
        for finding in after:
            _say(str(finding))
        errors = sum(finding.rule.severity == "error" for finding in after)
        done = f"{output}: {len(before) - len(after)} repaired; " if output is not None else ""
        _say(f"{done}{errors} errors, {len(after) - errors} warnings")
    raise typer.Exit(FOUND if any(finding.rule.severity == "error" for finding in after) else DONE)


@trace.command()
def explain(code: Annotated[str, typer.Argument(metavar="CODE", help="As validate prints it: E0001.")]) -> None:
    """Says what a rule of `validate` means and what --fix does about it."""
    from steersman.trace.validate import RULES

    rule = RULES.get(code.upper())
    if rule is None:
        raise _fault(f"there is no rule {code!r}; there are {', '.join(RULES)}")
    for line in _explanation(rule):
        _say(line)


def _timeline(recording: Trace) -> Iterator[str]:
    from steersman.trace.gvk import GVK
    from steersman.trace.recording import slot

    start = recording.start or 0
    for event in recording.events:
        at = f"{event.ts - start:>8} s"
        if not (event.applied or event.deleted):
            yield f"{at}  (nothing)"
        for mark, objects in (("+", event.applied), ("-", event.deleted)):
            for obj in objects:
                yield f"{at}  {mark} {GVK.of(obj)} {slot(obj)}"


def _figures(found: Stats) -> Iterator[str]:
    from steersman.api.times import time_text

    if found.start is None or found.end is None:
        yield "no events"
    else:
        yield f"{time_text(found.start)} to {time_text(found.end)}: {found.seconds} s, {found.events} events"
    for kind, each in found.kinds.items():
        yield f"{kind}: {each.objects} objects, applied {each.applied} times, deleted {each.deleted} times"
    for namespace, count in found.namespaces.items():
        yield (
            f"namespace {namespace}: applied {count} times"
            if namespace
            else f"without namespace: applied {count} times"
        )
    lives = ", ".join(f"{count} {state}" for state, count in found.pods.items())
    yield f"lives of pods: {lives}, of {found.owners} owners; the longest that ended took {found.longest} s"


def _explanation(rule: Rule) -> Iterator[str]:
    yield f"{rule.code} {rule.name} ({rule.severity}; {'ours' if rule.ours else 'of SimKube'})"
    yield rule.about
    yield f"--fix {rule.fix}." if rule.fix else "--fix leaves it: a person has to decide."


def _read(file: Path) -> Trace:
    from steersman.trace import sktrace

    try:
        return sktrace.read(file)
    except sktrace.TraceError as error:
        raise _fault(str(error)) from None


def _write(file: Path, recording: Trace) -> None:
    from steersman.trace import sktrace

    try:
        sktrace.write(file, recording)
    except sktrace.TraceError as error:
        raise _fault(str(error)) from None


def _say_json(document: object) -> None:
    import orjson

    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))


def _say(line: str) -> None:
    # Names come from whoever made the file: nothing in them may steer the terminal.
    typer.echo("".join([char if char.isprintable() else "?" for char in line]))


def _fault(text: str) -> typer.Exit:
    typer.echo(f"steersman trace: {text}", err=True)
    return typer.Exit(FAULTY)
