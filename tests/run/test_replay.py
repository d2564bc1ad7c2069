"""Law J2 where the built-in controllers do not lead: reconciles that the server ended."""

import asyncio

from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.controller import Controller, Loop
from steersman.api.kinds import Kinds
from steersman.run.exchange import Exchange
from steersman.run.head import Heads
from steersman.run.replay import History, execute_again
from steersman.serve.credentials.tls import Authority
from steersman.serve.hooks import Hooks
from tests.run.plane import API, heads_over, key, memory, namespace
from tests.run.test_webhook import Hook, Plane, patch


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


class Beside(Controller):
    """Makes b beside a, whose labels say how many objects depend on it."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        owner = c.get(key)
        count = len(c.dependents(owner.metadata.uid))
        meta = {"name": "b", "namespace": key.namespace, "labels": {"dependents": str(count)}}
        c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def test_a_write_that_passed_a_webhook_is_made_again_from_its_recorded_answer(tmp_path):
    authority = Authority.open(tmp_path / "ca")
    hook = Hook(authority, lambda review: patch({"op": "add", "path": "/data", "value": {"seen": "yes"}}))
    api = Api(Kinds.builtin(), admission=standard(controllers=()))

    async def scene():
        disk = memory()
        heads = Heads(api, disk)
        heads.questions.asking = Hooks()
        heads.start()
        try:
            await namespace(heads)
            plane = Plane(heads, authority)
            await plane.config("a")
            await plane.install(hook)
            loop, subject = Loop(Beside, api), key("v1/ConfigMap", "a")
            exchange = Exchange(heads, loop.name, {}, None)
            result = await asyncio.to_thread(loop.execute, subject, None, exchange)
            assert result.error is None, result.error
            heads.note(exchange.record(loop.name, loop.code, subject, "done"))
        finally:
            await heads.close()
        return loop, History(disk.journal)

    loop, history = asyncio.run(asyncio.wait_for(scene(), 30))
    hook.close()
    (asked,) = hook.reviews
    made = next(c for c in history.commits.values() if c.key.name == "b")
    assert b'"seen":"yes"' in made.object and asked["request"]["object"]["metadata"]["labels"] == {"dependents": "0"}
    verdict = execute_again(history.reconciles[0], loop, api, history)  # nobody is there to be asked any more
    assert (verdict.differences, verdict.skipped) == ((), "")
    *_, answer = history.drawn[made.revision]
    answer[0]["response"]["patch"] = patch({"op": "add", "path": "/data", "value": {"seen": "no"}})["patch"]
    verdict = execute_again(history.reconciles[0], loop, api, history)
    assert "no history is kept" in verdict.skipped  # it differs, and an Event may have been among its dependents
