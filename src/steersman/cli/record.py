"""`steersman record`: makes a trace of a cluster that Steersman ran."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from steersman.trace.recording import Trace

DONE, FAULTY = 0, 2


def record(
    store: Annotated[str, typer.Option(metavar="URL", help="Where `steersman run` keeps its journal: sqlite:PATH.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .sktrace to write.")],
    config: Annotated[
        Path | None, typer.Option("-c", "--config", metavar="FILE", help="Kinds to follow, as SimKube's tracer has it.")
    ] = None,
    start: Annotated[str | None, typer.Option(metavar="TIME", help="RFC 3339; by default the first change.")] = None,
    end: Annotated[str | None, typer.Option(metavar="TIME", help="RFC 3339; by default the last change.")] = None,
    exclude_namespace: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Leave a namespace out; by default those of the system.")
    ] = None,
) -> None:
    """Records the history of a cluster as a trace, for `steersman simulate` and SimKube.

    Exit codes: 0 written, 2 the command or its input is at fault (nothing is written then).
    """
    raise typer.Exit(_run(store, output, config, start, end, exclude_namespace))


def _run(
    store: str, output: Path, config: Path | None, start: str | None, end: str | None, excluded: list[str] | None
) -> int:
    from steersman.api.times import TimeError
    from steersman.journal import JournalError
    from steersman.sim import record as recorder
    from steersman.trace import sktrace
    from steersman.trace.filters import ExportFilters

    try:
        tracked = recorder.DEFAULT_CONFIG if config is None else recorder.load_config(config)
        filters = ExportFilters(frozenset(recorder.SYSTEM_NAMESPACES if excluded is None else excluded))
        window = {"start": _second("--start", start), "end": _second("--end", end)}
        journal = recorder.open_for_reading(store)
        try:
            trace = recorder.record(journal, tracked, filters=filters, **window)
        finally:
            journal.close()
        sktrace.write(output, trace)
    except (JournalError, recorder.ConfigError, sktrace.TraceError, TimeError) as error:
        typer.echo(f"steersman record: {error}", err=True)
        return FAULTY
    typer.echo(f"{output}: {_summary(trace)}")
    if not trace.index:
        hint = "look at --start, --end, --exclude-namespace and the kinds of --config"
        typer.echo(f"steersman record: warning: no object is in the recording; {hint}", err=True)
    return DONE


def _second(option: str, text: str | None) -> int | None:
    from steersman.api.times import MICRO, TimeError, parse_time

    if text is None:
        return None
    try:
        return parse_time(text) // MICRO
    except TimeError as error:
        raise TimeError(f"{option}: {error}") from None


def _summary(trace: Trace) -> str:
    from steersman.kernel.effect import MICRO
    from steersman.sim.report import duration

    objects = sum(len(names) for names in trace.index.values())
    lives = sum(len(lives) for by_hash in trace.lifecycles.values() for lives in by_hash.values())
    span = duration(((trace.end or 0) - (trace.start or 0)) * MICRO)
    counts = (
        f"{_count(len(trace.events), 'event')} over {span}",
        _count(objects, "object"),
        f"{_count(lives, 'life', 'lives')} of pods",
    )
    return ", ".join(counts)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
