"""Hypothesis strategies of values that fit a built-in schema."""

from typing import Any

from hypothesis import strategies as st

from steersman.api.schema import MICRO_TIME, Schema

DEEPEST = 9  # a pod template's container's probe's header lies this deep below the spec of a CronJob
TEXTS = [
    "",
    "a",
    "web",
    "nginx:1.27",
    "Always",
    "RollingUpdate",
    "ClientIP",
    "LoadBalancer",
    "25%",
    "A_B",
    "../x",
]
NUMBERS = [-1, 0, 1, 2, 80, 70000]
AMOUNTS = ["0", "100m", "1", "1500m", "1Gi", "0.0001", "-1"]


def _scalar(schema: Schema) -> st.SearchStrategy[Any]:
    kind = schema.type
    if kind == "string" and schema.format == "date-time":
        return st.just("2026-01-31T12:00:00.000000Z" if schema.name == MICRO_TIME else "2026-01-31T12:00:00Z")
    simple: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(TEXTS),
        "boolean": st.booleans(),
        "integer": st.sampled_from(NUMBERS),
        "number": st.sampled_from([0.0, 1.5]),
        "quantity": st.sampled_from(AMOUNTS),
        "int-or-string": st.sampled_from([*NUMBERS, *TEXTS]),
    }
    return simple.get(kind, st.just({}))


@st.composite
def value(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """A plain value of that schema: required fields, and a few others at each level."""
    if schema.type == "list":
        assert schema.items is not None
        size = draw(st.integers(0, 2)) if depth < DEEPEST else 0
        return [draw(value(schema.items, depth + 1)) for _ in range(size)]
    if schema.type == "map" or (schema.type == "object" and not schema.fields):
        if schema.values is None or depth >= DEEPEST:
            return {}
        names = draw(st.lists(st.sampled_from(["cpu", "memory", "a.io/b", "x"]), max_size=2, unique=True))
        return {name: draw(value(schema.values, depth + 1)) for name in names}
    if schema.type != "object":
        return draw(_scalar(schema))
    names = set(schema.required)
    if depth < DEEPEST:
        names |= set(draw(st.lists(st.sampled_from(sorted(schema.fields)), max_size=4)))
    return {name: draw(value(schema.fields[name], depth + 1)) for name in sorted(names)}
