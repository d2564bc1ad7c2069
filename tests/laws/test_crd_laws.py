"""J1 and J2 across kinds that come and go: a journal's commits alone give back the store and the kinds it declares."""

from __future__ import annotations

import asyncio
import copy

from hypothesis import given, settings
from hypothesis import strategies as st

import steersman.journal as sj
from steersman.api.controller import Loop
from steersman.api.errors import ApiError
from steersman.controllers.definition import DefinitionController
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from steersman.run.load import check_history, load_store, sums_of
from steersman.run.loops import Loops
from tests.laws.test_journal_laws import verdicts
from tests.run.plane import API, Disk, create, heads_over, until
from tests.serve.test_crd import FULL, definition, version, widget

CRD = Key("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")
STEPS = st.lists(st.sampled_from(["define", "widen", "drop", "make", "beta", "change", "delete"]), max_size=12)


def request_of(step: str, number: int) -> Request:
    slot = Key("example.com", "Widget", "default", f"w{number % 3}")
    options: dict[str, object] = {}
    if step == "define":
        return Request("create", CRD, definition(version("v1", True, **FULL)), "", "someone", "test")
    if step == "widen":
        spec = definition(version("v1", False, **FULL), version("v1beta1", True))["spec"]
        return Request("patch", CRD, {"spec": copy.deepcopy(spec)}, "", "someone", "test")
    if step in ("drop", "delete"):
        return Request("delete", CRD if step == "drop" else slot, None, "", "someone", "test")
    if step == "change":
        return Request("patch", slot, {"spec": {"colour": str(number)}}, "", "someone", "test", options=options)
    body = widget(slot.name, "v1" if step == "make" else "v1beta1", colour="red")
    return Request("create", slot, body, "", "someone", "test")


async def live(journal, steps):
    """A control plane under those steps, until it is at rest; the plurals of the kinds it has then."""
    async with heads_over(Disk(journal)) as heads:
        await heads.write(create("v1/Namespace", "default"))
        loops = Loops(heads, [Loop(DefinitionController, API)])
        loops.start()
        for number, step in enumerate(steps):
            try:
                await heads.write(request_of(step, number))
            except ApiError as error:
                assert error.code in (400, 403, 404, 409, 422), error
        quiet = 0

        def at_rest():
            nonlocal quiet
            quiet = 0 if heads.busy or any(len(runner.queue) for runner in loops.controllers) else quiet + 1
            return quiet > 10

        await until(at_rest)
        await asyncio.to_thread(loops.stop, 5.0)
        heads.check()
        return described(heads.store)


def described(store):
    """The custom kinds of a store, with all that tells them apart."""
    return [
        (kind.group, kind.version, kind.plural, kind.verbs, sorted(kind.origin.siblings), kind.origin.openapi)
        for kind in API.at(store).all()
        if kind.custom
    ]


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_kinds_come_back_with_the_store(steps):
    journal = sj.open("memory:")
    kinds = asyncio.run(live(journal, steps))
    assert check_history(journal) == []
    loaded = load_store(journal)
    assert sums_of(loaded) == journal.sums(journal.head().revision)
    assert described(loaded) == kinds
    for verdict in verdicts(journal, (DefinitionController,)):
        assert not verdict.differences and not verdict.skipped, verdict


def test_forks_declare_what_is_in_them():
    journal = sj.open("memory:")
    assert len(asyncio.run(live(journal, ["define", "make"]))) == 1
    store = load_store(journal)
    fork = store.fork()
    fork.remove(CRD, fork.rev + 1)
    assert described(fork) == [] and len(described(store)) == 1
    assert API.at(store) is API.at(load_store(journal))
