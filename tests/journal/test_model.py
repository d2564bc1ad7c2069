"""Random appends, fencing and re-opening: both backends answer alike, and as a naive list of records would."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import steersman.journal as sj
from steersman.journal import NO_SUMS, Commit, Head, JournalError

from .sample import commit, draw, reconcile

KEYS = [("", "Pod", "a", "x"), ("", "Pod", "b", "x"), ("", "Lease", "a", "x"), ("apps", "Deployment", "a", "x")]
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(KEYS), st.sampled_from(["write", "delete"]), st.booleans()),
        st.sampled_from(["input", "reconcile"]),
    ),
    max_size=6,
)


def outcome(call):
    """What a call gives, iterators read out, or the kind of its error and its text after the file's name."""
    try:
        result = call()
    except JournalError as error:
        return type(error), error.problem.rpartition(".db: ")[2].rpartition("memory:: ")[2], error.remedy
    if isinstance(result, sj.Snapshot):
        return result.head, list(result.commits)
    return list(result) if hasattr(result, "__next__") else result


class Backends(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:{Path(self.folder.name, 'journal.db')}"
        self.memory, self.sqlite = sj.open("memory:"), sj.open(self.url)
        self.epoch = self.memory.acquire("one")
        assert self.sqlite.acquire("one") == self.epoch
        self.written = []  # every record ever appended; the model keeps all and drops when asked

    def both(self, call):
        one, two = outcome(lambda: call(self.memory)), outcome(lambda: call(self.sqlite))
        assert one == two
        return one

    def retained(self):
        commits = [record for record in self.written if isinstance(record, Commit)]
        newest = {record.key: record.revision for record in commits}
        return [
            r for r in self.written if not isinstance(r, Commit) or r.retention == "full" or r.revision == newest[r.key]
        ]

    def live(self):
        commits = {record.key: record for record in self.written if isinstance(record, Commit)}
        return [commits[key] for key in sorted(commits) if commits[key].verb != "delete"]

    def head(self):
        return Head(self.epoch, sum(isinstance(r, Commit) for r in self.written), len(self.written))

    def made(self, plan):
        live, revision, records = {record.key for record in self.live()}, self.head().revision, []
        for step in plan:
            if step == "input":
                records.append(draw(b"%d" % len(records)))
            elif step == "reconcile":
                records.append(reconcile(revision))
            else:
                key, verb, head_only = step
                if verb == "delete" and key not in live:
                    continue
                revision += 1
                verb = verb if verb == "delete" else "update" if key in live else "create"
                records.append(commit(revision, key, verb, "head-only" if head_only else "full"))
                live.symmetric_difference_update(() if verb == "update" else (key,))
        return records

    @rule(holder=st.sampled_from(["one", "two"]))
    def acquire(self, holder):
        self.epoch += 1
        assert self.both(lambda journal: journal.acquire(holder)) == self.epoch
        assert self.both(lambda journal: journal.lease()) == (self.epoch, holder)

    @rule(plan=steps)
    def append(self, plan):
        records, head = self.made(plan), self.head()
        self.written += records
        assert self.both(lambda journal: journal.append(self.epoch, head, records)) == self.head()

    @rule(plan=steps, back=st.integers(1, 2))
    def append_fenced(self, plan, back):
        records, head = self.made(plan), self.head()
        assert self.both(lambda j: j.append(self.epoch - back, head, records))[0] is sj.Fenced

    @rule(plan=steps, revision=st.integers(-1, 1), position=st.integers(-1, 1))
    def append_elsewhere(self, plan, revision, position):
        records, head = self.made(plan), self.head()
        wrong = Head(self.epoch, head.revision + revision, head.position + position)
        if wrong != head:
            assert self.both(lambda j: j.append(self.epoch, wrong, records))[0] is sj.HeadMoved

    @rule(key=st.sampled_from(KEYS), wrong=st.sampled_from(["update", "delete"]), plan=steps)
    def append_one_wrong_commit(self, key, wrong, plan):
        records, head = self.made(plan), self.head()
        live = {record.key for record in self.live()}
        for record in records:
            if isinstance(record, Commit):
                live.add(record.key) if record.verb != "delete" else live.discard(record.key)
        revision = head.revision + sum(isinstance(r, Commit) for r in records) + 1
        records.append(commit(revision, key, "create" if key in live else wrong))
        assert self.both(lambda journal: journal.append(self.epoch, head, records))[0] is sj.BadRecord

    @rule()
    def reopen(self):
        self.sqlite.close()
        self.sqlite = sj.open(self.url)

    @rule(after=st.integers(-1, 12), limit=st.one_of(st.none(), st.integers(0, 4)))
    def read(self, after, limit):
        kept = self.retained()
        commits = [r for r in kept if isinstance(r, Commit) and r.revision > after]
        assert self.both(lambda journal: journal.read(after, limit)) == commits[:limit]
        entries = self.both(lambda journal: journal.entries(after, limit))
        places = [n for n, record in enumerate(self.written, 1) if record in kept and n > after]
        assert [entry.position for entry in entries] == places[:limit]
        assert [entry.record for entry in entries] == [self.written[n - 1] for n in places[:limit]]

    @rule(key=st.sampled_from(KEYS), revision=st.integers(-1, 12))
    def look_up(self, key, revision):
        commits = [r for r in self.retained() if isinstance(r, Commit)]
        mine = [r for r in commits if r.key == key]
        assert self.both(lambda journal: journal.history(key)) == mine
        assert self.both(lambda journal: journal.latest(key)) == (mine[-1] if mine else None)
        before = [r for r in mine if r.revision <= revision]
        assert self.both(lambda journal: journal.latest(key, revision)) == (before[-1] if before else None)
        at = [r for r in commits if r.revision == revision]
        assert self.both(lambda journal: journal.at(revision)) == (at[0] if at else None)
        sums = self.both(lambda journal: journal.sums(revision))
        if revision == self.head().revision:
            assert sums == (commits[-1].sums if commits else NO_SUMS)

    @invariant()
    def heads_and_snapshots_agree(self):
        assert self.both(lambda journal: journal.head()) == self.head()
        assert self.both(lambda journal: journal.snapshot()) == (self.head(), self.live())

    def teardown(self):
        if not hasattr(self, "folder"):
            return
        try:
            report = self.both(lambda journal: journal.verify())
            assert report.ok and report.rows == len(self.retained())
        finally:
            self.sqlite.close()
            self.folder.cleanup()


Backends.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestBackends = Backends.TestCase
