"""Drawing names and uids in a checked world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .identity import SUFFIX_ALPHABET, SUFFIX_LENGTH, digest, suffix_text, uid_text
from .object import Object

NAME_MAX: Final = 63
"""Longest generated name: a longer base is cut (as `api.names.generate_name` does)."""

if TYPE_CHECKING:
    from .world import World


def draw_smallest(world: World, question: Any) -> str:
    """The smallest name suffix or uid that nothing in the world mentions.

    What is mentioned nowhere cannot be told from what never was, so drawing it again is unobservable, and worlds that
    differ only in how often things were made and deleted are the same world.
    """
    kind, key = question[0], question[1]
    number = 0
    while True:
        if kind == "uid":
            answer = wanted = uid_text(str(key), number)
        else:
            answer = suffix_text(number)
            wanted = f"{question[2][: NAME_MAX - SUFFIX_LENGTH]}{answer}"
        if wanted not in world.drawn:
            world.drawn = {**world.drawn, wanted: None}
            return answer
        if not _mentioned(world, wanted):
            return answer
        number += 1


def _mentioned(world: World, text: str) -> bool:
    raw = text.encode()
    stores = [world.store, *[before for view in world.views.values() for _, before in view.waiting]]
    for store in stores:
        for obj in store.objects():
            if _mentions(obj, text, raw):
                return True
    for item, flight in world.flights.items():
        if text in item[1].name:
            return True
        for key, seen in flight.versions.items():
            if text in key.name or any(_mentions(obj, text, raw) for obj in seen):
                return True
    if any(text in key.name for _, key in (*world.pending, *world.wakes)):
        return True
    return any(text in str(memory) for memory in world.memory.values())


def _mentions(obj: Object, text: str, raw: bytes) -> bool:
    if text in obj.key.name:
        return True
    sections = (obj.meta, obj.spec, obj.rest, obj.status)
    return any(section is not None and raw in section.raw for section in sections)


def draw_seeded(seed: int) -> Callable[[World, Any], str]:
    """Names and uids that look random and follow from the seed and the order of drawing (simulate)."""
    drawn = 0

    def draw(world: World, question: Any) -> str:
        nonlocal drawn
        drawn += 1
        if question[0] == "uid":
            return uid_text(f"{seed}/{question[1]}", drawn)
        return suffix_text(digest("suffix", seed, question[2], drawn) % len(SUFFIX_ALPHABET) ** SUFFIX_LENGTH)

    return draw


def model_call(kind: str, question: Any) -> Any:
    """Answers Calls where there is nobody to ask: a text stands for what would be signed, the same for the same
    question. Raises `LookupError` for other kinds."""
    if kind != "sign":
        raise LookupError(f"nobody answers a {kind} call here")
    what, payload = question
    return f"{what}-{digest('signature', what, payload):032x}"
