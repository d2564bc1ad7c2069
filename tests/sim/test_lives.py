from steersman.sim.lives import Lives
from steersman.trace.podlife import PodLife
from steersman.trace.spechash import pod_hash
from tests.sim.traces import pod_spec, trace

OWNER = ("batch/v1.CronJob", "shop/tick")
OTHER = ("batch/v1.Job", "shop/tick-1")
A, B, C = PodLife(10, 20), PodLife(5, 50), PodLife(30, None)


def lives(**by_hash):
    return Lives(trace(lifecycles={OWNER: {int(name[1:]): found for name, found in by_hash.items()}}))


def test_no_lives_no_deck():
    none = Lives(trace())
    assert not none and none.deck([OWNER], pod_spec()) is None


def test_the_hash_of_the_spec_chooses():
    exact = Lives(trace(lifecycles={OWNER: {7: (A,), pod_hash(pod_spec()): (B, C)}}))
    deck = exact.deck([OWNER], pod_spec())
    assert deck.lives == (B, C) and deck.hash == pod_hash(pod_spec())


def test_an_unknown_hash_takes_all_lives_in_the_order_of_their_start():
    deck = lives(h9=(A, C), h1=(B, PodLife())).deck([OWNER], pod_spec())
    assert deck.lives == (B, A, C, PodLife()) and deck.hash is None


def test_the_nearest_owner_with_lives_wins():
    both = Lives(trace(lifecycles={OWNER: {1: (A,)}, OTHER: {1: (B,)}}))
    assert both.deck([OTHER, OWNER], pod_spec()).lives == (B,)
    assert both.deck([("v1.X", "a/b"), OWNER], pod_spec()).owner == OWNER
    assert both.deck([("v1.X", "a/b")], pod_spec()) is None
