"""When two stores at rest are alike: they differ only in uids and generated names.

Which uid an object gets depends on what still mentions the one before it, in a cache that is behind for example, so two
runs that end with the same objects may end with other uids. Nobody asked for a uid: confluence does not count them.
"""

from __future__ import annotations

import re
from typing import Final

from steersman.kernel.identity import digest
from steersman.kernel.object import Key
from steersman.kernel.world import World

UID_LENGTH: Final = 36


def likeness(world: World) -> int:
    """128 bits that are the same for worlds at rest that are alike.

    Every object is known by its text, in which a uid or generated name stands for whom it belongs to, known in the
    same way: colours are refined until no more of them can be told apart. What this cannot tell apart though it is
    different (cycles of references among objects with equal texts) is taken for alike.
    """
    canon = world.system.canon
    texts: dict[Key, str] = {}
    whose: dict[str, Key | None] = {name: None for name in world.drawn if len(name) == UID_LENGTH and "-" in name}
    for obj in world.store.objects():
        texts[obj.key] = canon.text(obj)
        whose[obj.uid] = obj.key
        prefix = obj.meta.value.get("generateName")
        if prefix and obj.key.name.startswith(prefix):
            whose[obj.key.name] = obj.key
    pattern = re.compile("|".join([re.escape(name) for name in sorted(whose, key=lambda name: (-len(name), name))]))
    colours = dict.fromkeys(texts, 0)
    told = 0
    while len(set(colours.values())) > told:
        told = len(set(colours.values()))
        colours = {key: _colour(key, text, pattern, whose, colours) for key, text in texts.items()}
    return digest(world.contents - world.store.sum_canonical, *sorted(colours.values()))


def _colour(
    key: Key, text: str, pattern: re.Pattern[str], whose: dict[str, Key | None], colours: dict[Key, int]
) -> int:
    def called(match: re.Match[str]) -> str:
        owner = whose[match[0]]
        if owner is None:
            return "<gone>"
        return "<self>" if owner == key else f"<{colours[owner]:x}>"

    return digest(pattern.sub(called, text))
