"""Specs known by their text: who sends the same shares it, and what only looks the same is judged by itself."""

from __future__ import annotations

import copy
import datetime
import enum
import uuid

import pytest

from steersman.api import known
from steersman.api.errors import ApiError
from steersman.kernel.effect import Reply, Request
from steersman.kernel.object import Key, Object
from tests.serve.mutate import WIDGETS
from tests.serve.plane import Plane


class Name(enum.StrEnum):
    B = "b"


class Number(enum.IntEnum):
    TWO = 2


class Text(str):
    __slots__ = ()


NONE = "00000000-0000-0000-0000-000000000005"
ODD = [
    ({"when": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}, {"when": "2026-01-01T00:00:00+00:00"}),
    ({"name": Name.B}, {"name": "b"}),
    ({"name": Text("b")}, {"name": "b"}),
    ({"size": Number.TWO}, {"size": 2}),
    ({"size": True}, {"size": 1}),
    ({"tags": ("a",)}, {"tags": ["a"]}),
    ({"any": {"x": float("nan")}}, {"any": {"x": None}}),
    ({"any": {"x": float("inf")}}, {"any": {"x": None}}),
    ({"any": {"x": uuid.UUID(NONE)}}, {"any": {"x": NONE}}),
    ({"any": {1: 2}}, {"any": {"1": 2}}),
]


class World:
    def __init__(self) -> None:
        self.plane = Plane()
        key = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", WIDGETS["metadata"]["name"])
        self.plane.backend.write_now(Request("create", key, WIDGETS, actor="a", manager="m", now=self.plane.time))
        self.number = 0

    def made(self, spec: dict) -> Object:
        self.number += 1
        key = Key("fuzz.example.com", "Widget", "default", f"w{self.number}")
        meta = {"name": key.name, "namespace": "default"}
        body = {"apiVersion": "fuzz.example.com/v1", "kind": "Widget", "metadata": meta, "spec": {"name": "b", **spec}}
        request = Request("create", key, body, actor="a", manager="m", now=self.plane.time)
        return self.plane.backend.write_now(request).obj


def test_who_sends_the_same_shares_it():
    world = World()
    spec = {"size": 3, "any": {"a": [1, 2.5, None, True]}}
    first, second = world.made(spec), world.made({**spec})
    assert first.spec is second.spec
    assert world.made({"size": 4}).spec is not first.spec


@pytest.mark.parametrize(("odd", "plain"), ODD, ids=lambda spec: str(next(iter(spec))))
def test_what_only_reads_the_same_as_json_is_refused_whether_or_not_that_is_known(odd, plain):
    world = World()
    for _ in range(2):
        with pytest.raises(ApiError):
            world.made(odd)
        known_now = world.made(plain)
        assert world.made({**plain}).spec is known_now.spec


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(known, "MAX_SPECS", 4)
    monkeypatch.setattr(known, "_kinds", {})
    world = World()
    for size in range(20):
        world.made({"size": size % 99})
    tables = [table for _, table in known._kinds.values()]
    assert len(tables) <= 4 and all(len(table) <= 4 for table in tables)


def test_the_advice_about_a_spec_is_given_to_everybody_who_sends_it():
    plane = Plane()
    ports = [{"containerPort": 8080, "name": "a"}, {"containerPort": 8080, "name": "b"}]
    spec = {"containers": [{"name": "web", "image": "web:1", "ports": ports}]}

    def made(name: str, **options: str) -> Reply:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": copy.deepcopy(spec)}
        key = Key("", "Pod", "default", name)
        return plane.backend.write_now(Request("create", key, body, actor="a", now=plane.time, options=options))

    first, second, third = made("web-1"), made("web-2"), made("web-3", validation="Ignore")
    assert first.obj.spec is second.obj.spec is third.obj.spec
    assert len(first.warnings) == 1 and first.warnings == second.warnings == third.warnings
