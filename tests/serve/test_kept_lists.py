"""Lists that are kept as bytes say what lists that are not would say."""

import random

import orjson
import pytest

from steersman.serve import lists
from steersman.serve.lists import Kept, Lists
from tests.serve.harness import in_loop
from tests.serve.plane import Plane, configmap

PATH = "/api/v1/namespaces/default/configmaps"
EVERYWHERE = "/api/v1/configmaps"
QUERIES = ["", "?labelSelector=a%3Db", "?labelSelector=a%21%3Db", "?fieldSelector=metadata.name%3Dc1", "?limit=2"]


@in_loop
async def test_they_are_the_lists_of_a_server_that_keeps_none(monkeypatch):
    kept = Plane()
    seed = random.Random(5)
    hits = []
    real = Lists.get
    monkeypatch.setattr(Lists, "get", lambda self, asked, mark: hits.append(real(self, asked, mark)) or hits[-1])
    for step in range(120):
        name = f"c{seed.randrange(6)}"
        what = seed.randrange(5)
        if what == 0:
            await kept.post(PATH, configmap(name, k=str(step)), code=0)
        elif what == 1:
            await kept.delete(f"{PATH}/{name}", code=0)
        elif what == 2:
            await kept.post("/api/v1/namespaces", {"metadata": {"name": f"n{step}"}})
        path = seed.choice([PATH, EVERYWHERE]) + seed.choice(QUERIES)
        one, two = await kept.get(path), await kept.get(path)
        kept.app.lists = Lists()
        three = await kept.get(path)
        assert one.body == two.body == three.body
        assert orjson.loads(two.body)["metadata"]["resourceVersion"] == str(kept.backend.store.rev)
    assert sum(hit is not None for hit in hits) > 40


@in_loop
async def test_one_that_is_kept_does_not_answer_for_what_it_cannot_know():
    plane = Plane()
    await plane.post(PATH, configmap("a", k="v"))
    first = await plane.get(PATH)
    assert (await plane.get(PATH + "?resourceVersion=999999&resourceVersionMatch=NotOlderThan", code=0)).code == 504
    rev = orjson.loads(first.body)["metadata"]["resourceVersion"]
    await plane.post(PATH, configmap("b", k="v"))
    past = await plane.get(f"{PATH}?resourceVersion={rev}&resourceVersionMatch=Exact")
    assert [item["metadata"]["name"] for item in past.json["items"]] == [
        item["metadata"]["name"] for item in first.json["items"]
    ]
    assert (await plane.get(PATH, authorization="Bearer wrong", code=0)).code == 401


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(lists, "MAX_BYTES", 100)
    monkeypatch.setattr(lists, "MAX_LIST", 60)
    held = Lists()
    mark = (None, 1)
    held.keep("large", mark, Kept(b"x" * 61))
    assert held.get("large", mark) is None
    held.keep("a", mark, Kept(b"a" * 50))
    held.keep("b", mark, Kept(b"b" * 50))
    assert held.get("a", mark) and held.get("b", mark)
    held.keep("c", mark, Kept(b"c" * 50))
    assert held.get("a", mark) is None and held.get("c", mark) == Kept(b"c" * 50)
    assert held.get("c", (None, 2)) is None and held.get("c", mark) is None
    held.keep("b", mark, Kept(b"B" * 10))
    assert held._held == 10 == sum(len(kept.items) for _, kept in held._kept.values())
    with pytest.raises(KeyError):
        held._drop("nobody")
