"""What a search learned about caches: the kinds that a controller reads through its cache without saying so."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.kernel.system import System


def reads(system: System) -> tuple[str, ...]:
    """It as texts; see `Verdict.reads`."""
    return tuple(
        f"{loop.name} {kind}.{group}" if group else f"{loop.name} {kind}"
        for loop, kinds in zip(system.loops, system.informers, strict=True)
        for group, kind in sorted(kinds - set(loop.informers))
    )


def assume(system: System, texts: Iterable[str]) -> None:
    """Takes in such texts."""
    for text in texts:
        name, _, kind_text = text.partition(" ")
        kind, _, group = kind_text.partition(".")
        for index, loop in enumerate(system.loops):
            if loop.name == name:
                system.informers[index].add((group, kind))
