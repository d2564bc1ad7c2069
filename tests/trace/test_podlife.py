"""How long a pod ran."""

import pytest
from hypothesis import given, settings

from steersman.trace.podlife import PodLife
from tests.trace.strategies import lives


def state(start=None, end=None):
    if end:
        return {"state": {"terminated": {"startedAt": start, "finishedAt": end}}}
    return {"state": {"running": {"startedAt": start}} if start else {"waiting": {}}}


def pod(*main, init=(), containers=None):
    spec = {"containers": [{}] * (containers or len(main))}
    return {"spec": spec, "status": {"containerStatuses": list(main), "initContainerStatuses": list(init)}}


T = "2026-01-01T00:00:{:02}Z".format
T0 = 1767225600


@pytest.mark.parametrize(
    ("seen", "life"),
    [
        ({}, PodLife()),
        (pod(state()), PodLife()),
        (pod(state(T(5)), state(T(3))), PodLife(T0 + 3)),
        (pod(state(T(5)), init=[state(T(1), T(2))]), PodLife(T0 + 1)),
        (pod(state(T(5), T(9)), state(T(6))), PodLife(T0 + 5)),
        (pod(state(T(5), T(9)), state(T(6), T(8))), PodLife(T0 + 5, T0 + 9)),
        (pod(state(T(5), T(9)), containers=2), PodLife(T0 + 5)),
        (pod(state("yesterday")), PodLife()),
    ],
)
def test_of_pod(seen, life):
    assert PodLife.of(seen) == life


def test_follows_only_forward():
    empty, running, other, done = PodLife(), PodLife(5), PodLife(6), PodLife(5, 9)
    assert running.follows(empty) and done.follows(empty) and done.follows(running)
    assert not empty.follows(empty) and not other.follows(running) and not running.follows(done)
    assert not PodLife(6, 9).follows(running) and not PodLife(5, 10).follows(done)


@pytest.mark.parametrize(
    ("life", "kept"),
    [
        (PodLife(), None),
        (PodLife(5), PodLife(10)),
        (PodLife(15), PodLife(15)),
        (PodLife(20), None),
        (PodLife(5, 9), None),
        (PodLife(5, 12), PodLife(10, 12)),
        (PodLife(12, 30), PodLife(12, 30)),
        (PodLife(5, 30), PodLife(10, 30)),
        (PodLife(20, 30), None),
    ],
)
def test_clip_to_10_20(life, kept):
    assert life.clip(10, 20) == kept


@settings(max_examples=50)
@given(lives)
def test_encode_and_decode(life):
    assert PodLife.decode(life.encode()) == life


@pytest.mark.parametrize(
    "value",
    [None, "Running", {}, {"Running": True}, {"Running": 1, "Finished": [1, 2]}, {"Finished": [1]}, {"Finished": 1}],
)
def test_decode_refuses(value):
    with pytest.raises(ValueError, match="expected"):
        PodLife.decode(value)


def test_seconds():
    assert PodLife(5).seconds is None and PodLife(5, 9).seconds == 4 and PodLife(5, 4).seconds == 0
