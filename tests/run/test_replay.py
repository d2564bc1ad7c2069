"""Law J2 where the built-in controllers do not lead: reconciles that the server ended."""

import asyncio

from steersman.api.controller import Controller, Loop
from steersman.run.exchange import Exchange
from steersman.run.replay import History, execute_again
from tests.run.plane import API, heads_over, key, memory, namespace


class Tireless(Controller):
    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        while True:
            c.get(key)


def test_an_endless_reconcile_ends_at_the_same_call_again():
    async def scene():
        disk = memory()
        async with heads_over(disk) as heads:
            await namespace(heads)
            loop, subject = Loop(Tireless, API), key("v1/ConfigMap", "a")
            exchange = Exchange(heads, loop.name, {}, None)
            assert "10,000 calls" in loop.execute(subject, None, exchange).error
            heads.note(exchange.record(loop.name, loop.code, subject, "raised"))
        history = History(disk.journal)
        verdict = execute_again(history.reconciles[0], loop, API, history)
        assert (verdict.differences, verdict.skipped) == ((), "")

    asyncio.run(scene())
