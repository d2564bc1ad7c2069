"""Steps as JSON: each comes back as it was; what would not is not written."""

import contextlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.begin import Api
from steersman.api.kinds import Kinds
from steersman.check.memo import steps
from steersman.kernel.effect import Effect, ListQuery, Request
from steersman.kernel.object import Key
from steersman.kernel.reexec import Learned, Recalled, Result
from steersman.kernel.value import Frozen, freeze

API = Api(Kinds.builtin())
KEY = Key("", "Pod", "default", "a")
PODS = API.kinds.find("v1/Pod")
QUERIES = [
    ListQuery(("", "Pod"), None),
    ListQuery(("", "Pod"), "default", "owner", "uid"),
    API.query(PODS, "default", "a=b,c!=d,e in (f,g),!h"),
    API.query(PODS, None, "", "spec.nodeName=n,status.phase!=Failed"),
    API.query(PODS, "default", {"matchLabels": {"a": "b"}}, "metadata.name=x")._replace(by="owner", value="u"),
]
CALLS = [
    Effect("get", KEY, True),
    *[Effect("list", query) for query in QUERIES],
    Effect(
        "write", Request("patch", KEY, freeze({"a": [1, None, 1.5]}), "status", manager="m", options=Frozen(rv="1"))
    ),
    Effect("write", Request("delete", KEY, None, manager="m", options=Frozen(grace=0))),
    Effect("now", None),
    Effect("stamp", None),
    Effect("after", (1, 2)),
    Effect("random", ("m", 8)),
    Effect("external", ("dns", freeze({"a": "b"}))),
]


@pytest.mark.parametrize("effect", CALLS, ids=str)
def test_calls_come_back(effect):
    text = steps.written(Recalled(effect, 3, None, None), API)
    assert text is not None
    again = steps.read(text, API)
    assert (again.effect.op, again.effect.fresh, again.version) == (effect.op, effect.fresh, 3)
    if effect.op == "list":
        assert again.effect.what[:5] == effect.what[:5]
        assert (again.effect.what.matches is None) == (effect.what.matches is None)
    else:
        assert again.effect == effect and type(again.effect.what) is type(effect.what)


def test_results_and_lessons_come_back():
    result = Result(freeze({"a": 1}), 5, None, True, "no", True, "", ("a", "*"))
    text = steps.written(Recalled(None, -1, result, None), API)
    assert steps.read(text, API).result == result
    lesson = steps.read(steps.written(Recalled(None, -1, None, Learned(ranks=True, delay=0)), API), API).learned
    assert (lesson.ranks, lesson.delay) == (True, 0)


@pytest.mark.parametrize(
    "effect",
    [
        Effect("write", Request("create", KEY, {"a": {1, 2}})),
        Effect("write", Request("create", KEY, {"a": 1 << 70})),
        Effect("write", Request("create", KEY, {"a": "\ud800"})),
        Effect("write", Request("create", KEY, {}, actor="system:admin")),
        Effect("event", "said"),
        Effect("get", "a text"),
    ],
    ids=str,
)
def test_what_would_not_come_back_is_not_written(effect):
    assert steps.written(Recalled(effect, -1, None, None), API) is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=8)))
def test_whatever_a_file_holds_is_a_step_or_unreadable(value):
    for whole in (
        value,
        ["call", value],
        ["call", "write", False, -1, value],
        ["result", value],
        ["learned", value, 1],
    ):
        try:
            text = orjson.dumps(whole)
        except TypeError:
            continue
        with contextlib.suppress(steps.Unreadable):
            steps.read(text, API)
