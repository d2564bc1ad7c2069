"""Small systems for the tests of check: controllers made from a table, and scenarios over a few ConfigMaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import steersman as sm
from steersman.check.alike import likeness
from steersman.check.explore import Bounds, Explorer
from steersman.kernel.object import Key

ConfigMap = dict[str, Any]


def config(name: str, **data: str) -> ConfigMap:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def key(name: str) -> Key:
    """Its key."""
    return Key("", "ConfigMap", "default", name)


def controller(name: str, reconcile: Callable[[Any, Key], Any], **attributes: Any) -> type[sm.Controller]:
    """A controller of ConfigMaps from a function (client, key)."""
    body = {"kind": "v1/ConfigMap", "name": name, "reconcile": lambda self, c, key: reconcile(c, key), **attributes}
    return type(name.title(), (sm.Controller,), body)


def writers(count: int, again: bool) -> sm.Scenario:
    """Independent controllers: each writes its own object once. `again`: its own write wakes it once more."""
    w = sm.Scenario(f"{count} writers")
    for number in range(count):
        name = f"o{number}"
        w.apply(config(name))

        def write(c: Any, key: Key) -> None:
            if not c.get(key).data.done:
                c.patch(key, {"data": {"done": "yes"}})

        def woken(self: Any, event: Any, find: Any, name: str = name) -> list[Key]:
            return [event.key] if event.key.name == name and (again or event.old is None) else []

        w.run(controller(f"writer{number}", write, map_event=woken))
    w.converges(lambda s: all(item.data.done for item in s.list("v1/ConfigMap"))).confluent()
    return w


def outcome(
    scenario: sm.Scenario, *, limit: int = 4_000, switches: dict[str, bool] | None = None, **bounds: Any
) -> Any:
    """What a search says, in a form that two searches can be compared by; None when it was not finished."""
    explorer = Explorer(scenario, Bounds(max_states=limit, **bounds), **(switches or {}))
    verdict = explorer.run()
    if not verdict.complete:
        return None
    return Outcome(explorer)


class Outcome:
    """States, transitions, what is violated, and the canonical stores at rest."""

    def __init__(self, explorer: Explorer) -> None:
        graph, verdict = explorer.graph, explorer.verdict
        self.violated = sorted({(v.kind, v.name) for v in verdict.violations if v.kind != "confluence"})
        self.size = (verdict.states, verdict.transitions)
        ends = [r.states[0] for r in graph.recurrences() if r.terminal and not r.writes]
        self.ends = sorted({likeness(explorer.world_of(end)) for end in ends})
        self.labels = [[graph.actions[action].label for action, _ in graph.edges(n)] for n in range(len(graph))]
        self.targets = [[target for _, target in graph.edges(n)] for n in range(len(graph))]
        self.explorer = explorer


# -- random programs -----------------------------------------------------------------------------------------------

NAMES = ("a", "b")
VALUES = ("0", "1")
Instruction = tuple[Any, ...]


def run_program(program: tuple[Instruction, ...], c: Any, key: Key) -> float | None:
    """Interprets a table of instructions as a reconcile."""
    seen: dict[str, Any] = {}
    again = None
    for op, name, value in program:
        try:
            if op == "get":
                seen[name] = c.get(globals()["key"](name), fresh=value == "1")
            elif (op == "stop if" and seen.get(name) is not None and seen[name].data.get("v") == value) or (
                op == "stop unless" and seen.get(name) is None
            ):
                return again
            elif op == "patch":
                c.patch(globals()["key"](name), {"data": {"v": value}})
            elif op == "update" and seen.get(name) is not None:
                c.update({**seen[name], "data": {"v": value}})
            elif op == "create":
                c.create(config(name, v=value))
            elif op == "delete":
                uid = seen[name].metadata.uid if value == "1" and seen.get(name) is not None else ""
                c.delete(globals()["key"](name), uid=uid)
            elif op == "remember":
                c.memory[name] = value
            elif op == "stop if remembered" and c.memory.get(name) == value:
                return again
            elif op == "requeue":
                again = 10.0 + 5 * int(value)
            elif op == "stop while young" and seen.get(name) is not None:
                if not c.after(seen[name].metadata.creationTimestamp, 10 * (1 + int(value))):
                    return again
            elif op == "count":
                seen[name] = None if len(c.list("v1/ConfigMap", "default")) > int(value) else seen.get(name)
        except sm.ApiError:
            pass
    return again


PLAIN = ("get", "get", "stop if", "stop unless", "patch", "update", "create", "delete", "count")
REMEMBERING = (*PLAIN, "remember", "stop if remembered")
TIMED = (*PLAIN, "requeue", "stop while young")


def programs(ops: tuple[str, ...], longest: int = 5) -> Any:
    """Hypothesis: reconcile programs over two objects."""
    instruction = st.tuples(st.sampled_from(ops), st.sampled_from(NAMES), st.sampled_from(VALUES))
    return st.lists(instruction, min_size=1, max_size=longest).map(tuple)


def program_scenario(table: list[tuple[Instruction, ...]], users: int = 0, claims: bool = True) -> sm.Scenario:
    """One controller a program, over two ConfigMaps of which one is there."""
    w = sm.Scenario("programs")
    w.apply(config("a", v="0"))
    for number, program in enumerate(table):
        w.run(controller(f"p{number}", lambda c, key, program=program: run_program(program, c, key)))
    if users > 0:
        w.user("set", lambda c: c.patch(key("a"), {"data": {"v": "1"}}))
    if users > 1:
        w.user("remake", lambda c: (c.delete(key("a")), c.create(config("a", v="0"))))
    if not claims:
        return w
    w.always("never both one", lambda s: not (s[key("a")].data.v == "1" and s[key("b")].data.v == "1"))
    w.converges(lambda s: s[key("a")].data.v != "1").confluent()
    return w


def grouped(
    table: list[tuple[Instruction, ...]], other: list[tuple[Instruction, ...]], users: int = 0, joint: int = 0
) -> sm.Scenario:
    """Two groups of controllers over objects of their own, which have nothing to do with each other but, perhaps, a
    claim about both: 1 that must always hold, 2 and more that both come to rest in a certain way."""
    w = sm.Scenario("groups")
    pair = {"a": "c", "b": "d"}
    w.apply(config("a", v="0"))
    w.apply(config("c", v="0"))
    for group, programs_ in ((NAMES, table), (tuple(pair.values()), other)):
        for number, program in enumerate(programs_):
            mine = tuple([(op, pair[name] if group[0] == "c" else name, value) for op, name, value in program])

            def woken(self: Any, event: Any, find: Any, group: tuple[str, ...] = group) -> list[Key]:
                return [event.key] if event.key.name in group else []

            act = lambda c, key, program=mine: run_program(program, c, key)  # noqa: E731
            w.run(controller(f"{group[0]}{number}", act, map_event=woken))
    if users > 0:
        w.user("set", lambda c: c.patch(key("a"), {"data": {"v": "1"}}))
    if users > 1:
        w.user("set c", lambda c: c.patch(key("c"), {"data": {"v": "1"}}))
    w.always("not both", lambda s: not (s[key("c")].data.v == "1" and s[key("d")].data.v == "1"))
    if joint == 1:
        w.always("not together", lambda s: not (s[key("a")].data.v == "1" and s[key("c")].data.v == "0"))
    elif joint:
        w.converges(lambda s: s[key("a")].data.v == s[key("c")].data.v)
    return w.confluent()


def run_spawner(program: tuple[Instruction, ...], c: Any, key: Key) -> None:
    """Interprets instructions about objects with generated names."""
    for op, value in program:
        mine = [item for item in c.list("v1/ConfigMap", "default") if item.metadata.generateName]
        ready = [item for item in mine if item.data.v == "1"]
        own = next((item for item in mine if item.metadata.name == key.name), None)
        try:
            if op == "spawn" and len(mine) < value + 1:
                meta = {"generateName": "x-", "namespace": "default"}
                c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"v": "0"}})
            elif op == "raise" and own is not None and own.data.v == "0":
                c.patch(own, {"data": {"v": "1"}})
            elif op == "count" and key.name == "a" and c.get(key).data.ready != str(len(ready)):
                c.patch(key, {"data": {"ready": str(len(ready))}})
            elif op == "drop ready" and len(ready) > value:
                c.delete(ready[-1])
            elif op == "drop first" and len(mine) > value:
                c.delete(mine[0])
            elif op == "name" and key.name == "a" and mine:
                c.patch(key, {"data": {"first": mine[0].metadata.name}})
            elif op == "parse" and own is not None and own.metadata.name.endswith("b") and own.data.v != "9":
                c.patch(own, {"data": {"v": "9"}})
        except sm.ApiError:
            pass


SPAWNING = ("spawn", "spawn", "raise", "count", "drop ready", "drop first", "name", "parse")


def spawners(longest: int = 3) -> Any:
    """Hypothesis: programs about objects with generated names."""
    instruction = st.tuples(st.sampled_from(SPAWNING), st.integers(0, 2))
    return st.lists(instruction, min_size=1, max_size=longest).map(tuple)


def spawning(table: list[tuple[Instruction, ...]]) -> sm.Scenario:
    """One controller a program, over one ConfigMap and what they make of it."""
    w = sm.Scenario("spawning")
    w.apply(config("a", v="0"))
    for number, program in enumerate(table):
        w.run(controller(f"s{number}", lambda c, key, program=program: run_spawner(program, c, key)))
    w.always("never two ready", lambda s: sum(item.data.v == "1" for item in s.list("v1/ConfigMap")) < 2)
    w.converges(lambda s: s.count("v1/ConfigMap") < 4)
    return w
