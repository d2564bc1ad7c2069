"""J1: a journal's commits give the store back, digest by digest. J2: its reconciles, executed again, write the same.

Both on journals that a running control plane wrote: users, controllers on several threads, a component, kinds with and
without history, failed appends, restarts. Each law is also shown to fail on a journal that breaks it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steersman.journal as sj
from steersman.api.controller import Loop
from steersman.api.errors import AlreadyExists, ApiError
from steersman.journal import JournalFull
from steersman.run.load import check_history, load_store, sums_of
from steersman.run.loops import Loops
from steersman.run.replay import History, execute_again
from tests.run.plane import API, Disk, Mirror, create, delete, heads_over, patch, until

LEASE = "coordination.k8s.io/v1/Lease"


class Busy(Mirror):
    """The same, on several threads."""

    name = "busy"
    suffix = "busy"
    workers = 4


class Other(Mirror):
    """Other code under the same name."""

    name = "mirror"

    def reconcile(self, c, key):
        return super().reconcile(c, key._replace(name=key.name))


class Forgetful(Mirror):
    """Has the name and, for these tests, the code digest of Mirror, but writes something else."""

    name = "mirror"

    def reconcile(self, c, key):
        if c.get(key) is not None:
            c.patch(key, {"metadata": {"labels": {"other": "write"}}})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["mirror", "plain", "data", "label", "delete", "lease", "secret", "full"]), st.integers(0, 3)
    ),
    min_size=1,
    max_size=14,
)


def request_of(step, number, name):
    slot = f"c{name}"
    if step == "lease":
        return create(LEASE, slot) if number % 2 else patch(LEASE, slot, {"spec": {"holderIdentity": str(number)}})
    if step == "secret":
        return create("v1/Secret", slot, stringData={"n": str(number)})
    if step == "data":
        return patch("v1/ConfigMap", slot, {"data": {"n": str(number)}})
    if step == "label":
        return patch("v1/ConfigMap", slot, {"metadata": {"labels": {"mirror": "late"}}})
    if step == "delete":
        return delete("v1/ConfigMap", slot)
    labels = {"mirror": "yes"} if step == "mirror" else {}
    return create("v1/ConfigMap", slot, metadata={"labels": labels}, data={"n": str(number)})


async def live(journal, steps, controllers=(Mirror, Busy)):
    """A control plane under those steps, until it is at rest."""
    disk = Disk(journal)
    async with heads_over(disk) as heads:
        with suppress(AlreadyExists):  # after a restart
            await heads.write(create("v1/Namespace", "default"))
        loops = Loops(heads, [Loop(controller, API) for controller in controllers])
        loops.start()
        for number, (step, name) in enumerate(steps):
            if step == "full":
                disk.failures.append(JournalFull("full", "free space"))
                continue
            try:
                await heads.write(request_of(step, number, name))
            except ApiError:
                continue
        quiet = 0

        def at_rest():
            nonlocal quiet
            quiet = 0 if heads.busy or any(len(runner.queue) for runner in loops.controllers) else quiet + 1
            return quiet > 10

        await until(at_rest)
        await asyncio.to_thread(loops.stop, 5.0)
        heads.check()
    return disk


def verdicts(journal, controllers=(Mirror, Busy)):
    history = History(journal)
    loops = {loop.name: loop for loop in (Loop(controller, API) for controller in controllers)}
    return [execute_again(record, loops[record.controller], API, history) for record in history.reconciles]


@settings(max_examples=12, deadline=None)
@given(STEPS)
def test_the_laws_hold_for_any_history(steps):
    journal = sj.open("memory:")
    asyncio.run(live(journal, steps))
    assert check_history(journal) == []
    assert sums_of(load_store(journal)) == journal.sums(journal.head().revision)
    assert journal.verify().ok
    for verdict in verdicts(journal):
        assert not verdict.differences and not verdict.skipped, verdict


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """A journal in a file, of two lives of one control plane."""
    url = f"sqlite:{tmp_path_factory.mktemp('laws') / 'store.db'}"
    first = [(step, name) for name in range(4) for step in ("mirror", "data", "lease", "lease", "secret")]
    second = [(step, name) for name in range(4) for step in ("data", "label", "full", "data", "delete", "mirror")]
    for steps in (first, second):
        journal = sj.open(url)
        asyncio.run(live(journal, steps))
        journal.close()
    journal = sj.open(url)
    yield journal
    journal.close()


def test_j1_across_a_restart(lived):
    assert check_history(lived) == []
    assert lived.head().epoch == 2


def test_j2_across_a_restart(lived):
    found = verdicts(lived)
    assert all(not v.differences and not v.skipped for v in found)
    wrote = [v.record for v in found if v.record.writes]
    assert {record.controller for record in wrote} == {"mirror", "busy"}
    assert any(w.revision == 0 for record in wrote for w in record.writes), "refused writes are part of the law"
    assert any(record.randoms and record.times for record in wrote)


def test_every_write_is_a_reconciles_or_an_input(lived):
    entries = [entry.record for entry in lived.entries()]
    commits = [r for r in entries if isinstance(r, sj.Commit)]
    of_reconciles = {w.revision for r in entries if isinstance(r, sj.Reconcile) for w in r.writes}
    inputs = [r for r in entries if isinstance(r, sj.Input) and r.source == "user"]
    subjects = {r.subject for r in inputs}
    for commit in commits:
        if commit.actor == "ann":
            verb = "patch" if commit.verb == "update" else commit.verb
            assert f"ann {verb} {commit.key}" in subjects
        else:
            assert commit.revision in of_reconciles
    assert all(r.at > 0 for r in inputs)


def test_head_only_kinds_keep_one_version(lived):
    leases = [c for c in lived.read() if c.key.kind == "Lease"]
    assert leases and len({c.key for c in leases}) == len(leases)


def test_j1_fails_where_a_commit_is_not_what_was_written(lived):
    forged = sj.open("memory:")
    epoch, head = forged.acquire("forger"), forged.head()
    for number, commit in enumerate(c for c in lived.read() if c.key.kind in ("Namespace", "ConfigMap")):
        obj = commit.object.replace(b'"n":"', b'"n":"forged-', 1) if number == 3 else commit.object
        obj = obj.replace(b'"resourceVersion":"%d"' % commit.revision, b'"resourceVersion":"%d"' % (number + 1))
        verb = commit.verb if forged.latest(commit.key) is not None else "create"
        head = forged.append(epoch, head, [replace(commit, revision=number + 1, object=obj, verb=verb)])
        if number == 3:
            break
    assert check_history(forged)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: replace(r, reads=tuple(x._replace(target="get Pod a/b") for x in r.reads)), "asked for"),
        (lambda r: replace(r, randoms=()), "had not made"),
        (lambda r: replace(r, randoms=(b"abcd",)), "other bytes"),
        (lambda r: replace(r, times=(r.times[0] + 5_000_000,)), "other bytes"),
        (lambda r: replace(r, writes=r.writes[:1]), "had not made"),
        (lambda r: replace(r, reads=(r.reads[0], r.reads[1]._replace(revision=r.writes[0].revision))), "any more"),
        (lambda r: replace(r, end="requeue"), "ended"),
    ],
)
def test_j2_fails_where_a_record_is_not_what_happened(lived, change, told):
    history = History(lived)
    record = next(r for r in history.reconciles if r.controller == "mirror" and r.randoms)
    changed = change(record)
    history.reconciles.append(changed)
    history._stores.update(history._rebuild({0, *history._revisions()}))
    verdict = execute_again(changed, Loop(Mirror, API), API, history)
    assert verdict.differences and told in " ".join(verdict.differences), verdict


def test_j2_fails_for_code_that_writes_something_else(lived):
    history, loop = History(lived), Loop(Forgetful, API)
    loop.code = Loop(Mirror, API).code
    record = next(r for r in history.reconciles if r.controller == "mirror" and r.randoms)
    assert execute_again(record, loop, API, history).differences


def test_j2_says_so_where_the_code_is_not_there_any_more(lived):
    history = History(lived)
    record = next(r for r in history.reconciles if r.controller == "mirror")
    assert "not the one it ran with" in execute_again(record, Loop(Other, API), API, history).skipped
