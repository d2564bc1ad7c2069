"""Where in an object its pod templates are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.trace.gvk import GVK, TEMPLATE_PATHS
from steersman.trace.recording import Trace

_INDEX: Final = re.compile(r"[0-9]{1,9}")


def template_paths(trace: Trace, obj: Mapping[str, Any]) -> tuple[str, ...]:
    """JSON pointers to the pod templates of `obj`, as the trace's configuration or the built-in kinds have them."""
    gvk = GVK.of(obj)
    tracked = trace.config.get(str(gvk))
    return TEMPLATE_PATHS.get(gvk, ()) if tracked is None else tracked.template_paths(gvk)


def find(value: Any, pointer: str) -> Iterator[Any]:
    """What a JSON pointer (RFC 6901; `*` for every element of an array) finds in `value`."""
    return _at(value, pointer.split("/")[1:])


def _at(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step = steps[0].replace("~1", "/").replace("~0", "~")
    if step == "*" and isinstance(value, list):
        for item in value:
            yield from _at(item, steps[1:])
    elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
        yield from _at(value[int(step)], steps[1:])
    elif isinstance(value, dict) and step in value:
        yield from _at(value[step], steps[1:])
