"""The shape of a store: what is there, whatever was drawn or counted on the way.

Two runs that did the same may have drawn other names and uids, and have done it at other times. Two stores have one
shape when the same objects are there, generated names taken for their beginnings, with the same contents but for
that. Of a status only the phase counts, and which conditions hold: the rest may tell what happened on the way, and
counts where it would be another if it were written anew (`unsaid`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import orjson

from steersman.check.explain import short
from steersman.check.properties.changes import Slot
from steersman.check.properties.probe import asked, rested
from steersman.check.story import changed_fields
from steersman.kernel.disturb import RFC3339
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.kernel.store import Store
from steersman.kernel.world import World

UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
COUNTED: Final = ("uid", "resourceVersion", "generation", "creationTimestamp")
"""Fields of metadata that tell one run from another that did the same."""

Shape = Mapping[tuple[Slot, str], int]
"""How often each (object, its contents as JSON) is there."""


def shape(store: Store, whole: bool = False) -> Shape:
    """The shape of a store. `whole`: with whole statuses."""
    names: dict[str, str] = {}
    for obj in store.objects():
        slot = Slot.of(obj)
        names[obj.uid] = f"[{slot}]"
        if slot.name != obj.key.name:
            names[obj.key.name] = slot.name
    pattern = re.compile("|".join([re.escape(name) for name in sorted(names, key=len, reverse=True)]))
    out: Counter[tuple[Slot, str]] = Counter()
    for obj in store.objects():
        value = _without(obj.value, whole)
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        text = pattern.sub(lambda match: names[match.group()], text)
        out[(Slot.of(obj), UID.sub("uid", RFC3339.sub("time", text)))] += 1
    return out


def _without(value: Mapping[str, Any], whole: bool) -> dict[str, Any]:
    out = dict(value)
    out["metadata"] = {name: item for name, item in out["metadata"].items() if name not in COUNTED}
    status = out.get("status") if whole else out.pop("status", None)
    if isinstance(status, dict) and not whole:
        conditions = [c for c in status.get("conditions") or () if isinstance(c, dict)]
        holds = {str(condition.get("type")): condition.get("status") for condition in conditions}
        out["status"] = {"phase": status.get("phase"), "conditions": holds}
    return out


def difference(there: Shape, here: Shape) -> str:
    """The first object in which two shapes differ, and how: `here` against `there`."""
    missing = sorted((Counter(there) - Counter(here)).elements())
    extra = sorted((Counter(here) - Counter(there)).elements())
    for slot, text in missing:
        other = next((found for each, found in extra if each == slot), None)
        if other is None:
            return f"{slot} is missing"
        path, old, new = next(iter(changed_fields(orjson.loads(text), orjson.loads(other))), ("", text, other))
        return f"{slot} {path} is {short(new)}, not {short(old)}"
    return f"{extra[0][0]} is left over" if extra else ""


def unsaid(world: World, there: Shape, here: Shape) -> str:
    """The first object of a world at rest (of shape `here`; both have whole statuses) whose status is not that of
    `there`, but would be if it were erased: then it is no history, its controller failed to say it. "" if none."""
    extra = Counter(here) - Counter(there)
    for slot, text in sorted((Counter(there) - Counter(here)).elements()):
        other = next((found for each, found in sorted(extra) if each == slot), None)
        if other is None:
            continue
        path, old, new = next(iter(changed_fields(orjson.loads(text), orjson.loads(other))), ("", None, None))
        for obj in world.store.objects() if path.startswith("status") else ():
            if Slot.of(obj) == slot and (slot, text) in _said_anew(world, obj.key):
                return f"{slot} {path} is {short(new)}, not {short(old)}, as it would be if it were written anew"
    return ""


def _said_anew(world: World, key: Key) -> Shape:
    """The shape that comes once the status of an object is erased."""
    settled = rested(asked(world, Request("patch", key, {"status": None}, "status", options={"patch": "merge"})))
    return {} if settled is None else shape(settled.store, True)
