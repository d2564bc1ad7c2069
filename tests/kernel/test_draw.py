"""Drawing names and uids: the smallest that nothing mentions, and seeded ones."""

import pytest

import steersman as sm
from steersman.check.explore import Explorer
from steersman.kernel.draw import draw_seeded, draw_smallest
from steersman.kernel.identity import suffix_text, uid_text
from steersman.kernel.object import Key
from tests.check.models import config, controller, key


@pytest.fixture
def world():
    w = sm.Scenario("draw")
    w.apply(config("o"))
    w.run(controller("c", lambda c, at: None))
    made = w.world(Explorer(w).system)
    for item in list(made.pending):
        made.take(item)
    return made


NAME = ("name", Key("", "Pod", "default", ""), "web-")


def put(world, name, **labels):
    from steersman.kernel.effect import Request

    body = config(name)
    body["metadata"]["labels"] = labels
    world.request(Request("create", key(name), body, manager="test"), "test")


def test_names_count_up_while_they_are_in_use(world):
    assert [draw_smallest(world, NAME) for _ in range(2)] == ["bbbbb", "bbbbb"], "nothing mentions the first"
    put(world, "web-bbbbb")
    assert draw_smallest(world, NAME) == "bbbbc"
    assert draw_smallest(world, ("name", NAME[1], "other-")) == "bbbbb"


@pytest.mark.parametrize("where", ["label", "longer name", "pending", "memory", "timer"])
def test_a_mention_anywhere_keeps_a_name(world, where):
    draw_smallest(world, NAME)
    if where == "label":
        put(world, "x", pod="web-bbbbb")
    elif where == "longer name":
        put(world, "data-web-bbbbb")
    elif where == "pending":
        world.enqueue(0, key("data-web-bbbbb"))
    elif where == "timer":
        world._wake_at((0, key("web-bbbbb")), world.now + 1)
    else:
        world.memory = {0: sm.freeze({"seen": ["web-bbbbb"]})}
    for item in [item for item in world.pending if "web" not in item[1].name]:
        world.take(item)
    assert draw_smallest(world, NAME) == "bbbbc"


def test_a_long_base_is_cut_as_the_name_is(world):
    base = "x" * 70
    question = ("name", NAME[1], base)
    assert draw_smallest(world, question) == "bbbbb"
    put(world, "x" * 58 + "bbbbb")
    assert draw_smallest(world, question) == "bbbbc"


def test_uids_are_of_their_slot(world):
    slot = Key("", "Pod", "default", "web")
    first = draw_smallest(world, ("uid", slot))
    assert first == uid_text(str(slot), 0)
    put(world, "x", owner=first)
    assert draw_smallest(world, ("uid", slot)) == uid_text(str(slot), 1)


def test_seeded_draws_follow_from_the_seed_and_the_order(world):
    def texts(seed):
        draw = draw_seeded(seed)
        return [draw(world, NAME), draw(world, ("uid", NAME[1])), draw(world, NAME)]

    assert texts(1) == texts(1) != texts(2)
    assert texts(1)[0] != texts(1)[2] and suffix_text(0) not in texts(1)
