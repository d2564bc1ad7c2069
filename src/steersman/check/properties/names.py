"""The properties out of the box by name, and what `--explain` says of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.check.properties import (
    confluence,
    convergence,
    deletions,
    determinism,
    fight,
    finalizer,
    idempotent,
    livelock,
    missing_watch,
    orphan,
    owners,
    raises,
    same_end,
)
from steersman.check.properties.about import About

EVERY: Final[tuple[About, ...]] = (
    convergence.ABOUT,
    confluence.ABOUT,
    livelock.ABOUT,
    fight.ABOUT,
    owners.ABOUT,
    idempotent.ABOUT,
    missing_watch.ABOUT,
    orphan.ABOUT,
    finalizer.ABOUT,
    deletions.ABOUT,
    same_end.ABOUT,
    raises.ABOUT,
    determinism.ABOUT,
)
BY_NAME: Final = {about.name: about for about in EVERY}


class UnknownProperty(ValueError):
    """There is no property of that name; the text names those there are."""


def named(text: str) -> About:
    """The property that a person means: case does not count, nor whether words are joined. Raises `UnknownProperty`."""
    plain = " ".join(text.lower().replace("-", " ").replace("_", " ").split())
    for about in EVERY:
        names = (about.name, about.name.removeprefix("no "), *about.findings)
        if plain in [name.replace("-", " ") for name in names]:
            return about
    raise UnknownProperty(f"no property {text!r}; there are: {', '.join(BY_NAME)}")


def explained(texts: Iterable[str]) -> str:
    """What `steersman check --explain` prints: the properties of these names, or a line of each."""
    chosen = [named(text) for text in texts]
    if chosen:
        return "\n\n".join([about.text() for about in chosen])
    width = max(len(name) for name in BY_NAME)
    lines = [f"  {about.name:<{width}}  {about.says.partition('. ')[0].rstrip('.')}" for about in EVERY]
    return "\n".join(["Judged in every check, whether or not the scenario claims anything:", *lines])
