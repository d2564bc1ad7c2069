"""Cyclic garbage goes at chosen moments, with automatic collections off."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from steersman.run import garbage


class Knot:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def automatic():
    yield
    gc.unfreeze()
    gc.enable()


def test_young_garbage_goes_within_a_moment(automatic, monkeypatch):
    monkeypatch.setattr(garbage, "YOUNG_SECONDS", 0.01)

    async def scene():
        garbage.switch_off()
        garbage.freeze()
        knots = [weakref.ref(Knot()) for _ in range(garbage.YOUNG_OBJECTS + 10)]
        assert not gc.isenabled() and all(knot() is not None for knot in knots)
        task = asyncio.create_task(garbage.collect_quietly(lambda: 1))
        await asyncio.sleep(0.2)
        task.cancel()
        assert all(knot() is None for knot in knots)

    asyncio.run(scene())


def test_everything_is_looked_at_when_nobody_writes(automatic, monkeypatch):
    monkeypatch.setattr(garbage, "YOUNG_SECONDS", 0.005)
    monkeypatch.setattr(garbage, "IDLE_SECONDS", 3)
    monkeypatch.setattr(garbage, "FULL_EVERY", 5)

    async def scene(revision):
        garbage.switch_off()
        knot = Knot()
        gc.collect()  # it is old now
        seen = weakref.ref(knot)
        del knot
        task = asyncio.create_task(garbage.collect_quietly(revision))
        await asyncio.sleep(0.2)
        task.cancel()
        return seen() is None

    assert asyncio.run(scene(lambda: 1))
    assert not asyncio.run(scene(iter(range(10_000)).__next__))
