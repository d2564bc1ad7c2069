"""The protocol, on both backends."""

from __future__ import annotations

import pytest

import steersman.journal as sj
from steersman.journal import NO_SUMS, BadRecord, Fenced, Head, HeadMoved, JournalError, Lease

from .sample import LEASE, POD, commit, draw, fill, reconcile, sums

OTHER = ("apps", "Deployment", "default", "web")


@pytest.fixture(params=["memory", "sqlite"])
def journal(request, tmp_path):
    journal = sj.open("memory:" if request.param == "memory" else f"sqlite:{tmp_path}/journal.db")
    yield journal
    journal.close()


def test_a_new_journal_is_empty(journal):
    assert journal.head() == Head(0, 0, 0)
    assert journal.lease() == Lease(0, "")
    assert list(journal.entries()) == []
    assert journal.at(1) is None and journal.latest(POD) is None
    assert journal.snapshot().head == Head(0, 0, 0) and list(journal.snapshot().commits) == []
    assert journal.sums(0) == NO_SUMS
    assert journal.verify().ok


def test_the_three_kinds_of_record_keep_their_order(journal):
    records = [draw(), commit(1, verb="create"), commit(2), reconcile(2), draw(b"")]
    assert fill(journal, records) == Head(1, 2, 5) == journal.head()
    entries = list(journal.entries())
    assert [entry.record for entry in entries] == records
    assert [entry[:3] for entry in entries] == [(1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 1, 2), (5, 1, 2)]
    assert list(journal.entries(3, 1)) == entries[3:4]
    assert list(journal.read()) == records[1:3]
    assert list(journal.read(1)) == records[2:3]
    assert list(journal.read(0, 1)) == records[1:2]
    assert list(journal.read(0, 0)) == list(journal.read(2)) == list(journal.read(1 << 70)) == []


def test_history_and_state_by_key(journal):
    first, other = commit(1, verb="create"), commit(2, OTHER, "create")
    fill(journal, [first, other, commit(3), commit(4, verb="delete")])
    assert [c.revision for c in journal.history(POD)] == [1, 3, 4]
    assert journal.latest(POD).verb == "delete"
    assert journal.latest(POD, 3).revision == 3 and journal.latest(POD, 2) == first
    assert journal.latest(OTHER, 1) is None
    assert journal.at(2) == other
    assert list(journal.snapshot().commits) == [other]
    fill(journal, [commit(5, verb="create")])
    assert [c.revision for c in journal.snapshot().commits] == [5, 2]  # in key order
    assert [c.revision for c in journal.history(POD)] == [1, 3, 4, 5]


def test_another_epoch_is_fenced_and_the_newest_goes_on(journal):
    first = journal.acquire("one")
    head = journal.append(first, journal.head(), [commit(1, verb="create")])
    second = journal.acquire("two")
    assert (first, second) == (1, 2)
    assert journal.lease() == Lease(2, "two")
    with pytest.raises(Fenced, match=r"two holds epoch 2.*acquire"):
        journal.append(first, head, [commit(2)])
    with pytest.raises(Fenced):
        journal.append(second + 1, head, [commit(2)])
    assert journal.append(second, journal.head(), [commit(2)]) == Head(2, 2, 2)
    assert [entry.epoch for entry in journal.entries()] == [1, 2]


def test_nobody_appends_before_acquiring(journal):
    with pytest.raises(Fenced):
        journal.append(1, journal.head(), [commit(1, verb="create")])


def test_a_moved_head_is_refused(journal):
    epoch = journal.acquire("one")
    stale = journal.head()
    journal.append(epoch, stale, [draw()])
    with pytest.raises(HeadMoved, match=r"position 0.*position 1"):
        journal.append(epoch, stale, [draw()])
    assert journal.head() == Head(1, 0, 1)


def test_an_empty_group_writes_nothing_but_is_still_checked(journal):
    epoch = journal.acquire("one")
    assert journal.append(epoch, journal.head(), []) == Head(1, 0, 0)
    with pytest.raises(Fenced):
        journal.append(epoch - 1, journal.head(), [])


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ([commit(2, verb="create")], "record 0 .* revision 2, not 1"),
        ([commit(1, verb="create"), draw(), commit(3)], "record 2 .* revision 3, not 2"),
        ([commit(1)], "update of /Pod/default/a, which does not exist"),
        ([commit(1, OTHER, "create"), commit(2, verb="delete")], "delete of /Pod/default/a, which does not"),
        ([commit(1, verb="create"), commit(2, verb="create")], "create of /Pod/default/a, which exists already"),
        ([commit(1, verb="create"), commit(2, verb="delete"), commit(3)], "update of /Pod/default/a, which does"),
    ],
)
def test_a_group_out_of_sequence_leaves_no_trace(journal, group, names):
    epoch = journal.acquire("one")
    with pytest.raises(BadRecord, match=names):
        journal.append(epoch, journal.head(), group)
    assert journal.head() == Head(1, 0, 0) and journal.verify().ok


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ([commit(3, OTHER), commit(4, verb="create")], "create of /Pod/default/a"),
        ([commit(3, verb="create"), commit(4, verb="delete")], "create of /Pod/default/a"),
        ([commit(3), commit(4, LEASE)], "update of coordination.k8s.io/Lease"),
        ([commit(3), commit(4, LEASE, "delete")], "delete of coordination.k8s.io/Lease"),
    ],
)
def test_a_group_at_odds_with_the_live_objects_leaves_no_trace(journal, group, names):
    head = fill(journal, [commit(1, verb="create"), commit(2, OTHER, "create")])
    with pytest.raises(BadRecord, match=names):
        journal.append(1, head, group)
    assert journal.head() == head and journal.verify().ok
    assert journal.append(1, head, [commit(3), commit(4, OTHER)]).revision == 4


def lease(revision, verb="update"):
    return commit(revision, LEASE, verb, "head-only")


def test_head_only_kinds_keep_their_newest_version_only(journal):
    fill(journal, [lease(1, "create"), commit(2, verb="create"), lease(3), lease(4)])
    assert [c.revision for c in journal.read()] == [2, 4]
    fill(journal, [commit(5), draw(), lease(6)])
    assert [c.revision for c in journal.history(LEASE)] == [6]
    assert [c.revision for c in journal.read()] == [2, 5, 6]
    assert journal.at(4) is None and journal.latest(LEASE).revision == 6
    assert [c.revision for c in journal.snapshot().commits] == [2 + 3, 6]
    assert journal.head() == Head(2, 6, 7)
    fill(journal, [lease(7, "delete"), lease(8, "create")])
    assert [c.revision for c in journal.history(LEASE)] == [8]
    report = journal.verify()
    assert report.ok and (report.rows, report.commits) == (4, 3)


def test_a_key_may_change_its_class(journal):
    node = ("", "Node", "", "n1")
    fill(journal, [commit(1, node, "create"), commit(2, node, retention="head-only")])
    assert [c.revision for c in journal.history(node)] == [1, 2]
    fill(journal, [commit(3, node, retention="head-only"), commit(4, node)])
    assert [c.revision for c in journal.history(node)] == [1, 4]
    assert journal.verify().ok


def test_sums_are_known_at_each_revision_for_full_history_and_at_the_head_for_the_rest(journal):
    def at(revision, full, head_only, **kind):
        made = commit(revision, **kind)
        return sj.Commit(*[getattr(made, f) for f in made.__slots__[:7]], sums(full, head_only), made.retention)

    fill(
        journal,
        [
            at(1, 10, 0, verb="create"),
            at(2, 10, 1, key=LEASE, verb="create", retention="head-only"),
            at(3, 30, 1),
            at(4, 30, 2, key=LEASE, retention="head-only"),
            at(5, 30, 3, key=LEASE, retention="head-only"),
        ],
    )
    full, head_only = zip(*[journal.sums(revision) for revision in range(6)], strict=True)
    assert full == tuple(sums(n)[0] for n in (0, 10, 10, 30, 30, 30))
    assert head_only == (None,) * 5 + (sums(0, 3)[1],)
    for wrong in (-1, 6):
        with pytest.raises(BadRecord, match=f"no revision {wrong}"):
            journal.sums(wrong)


def test_an_iterator_keeps_the_state_of_its_call(journal):
    head = fill(journal, [lease(1, "create"), commit(2, verb="create")])
    reads = [journal.read(), journal.history(LEASE), journal.snapshot().commits]
    entries = journal.entries()
    journal.append(1, head, [lease(3), commit(4), commit(5, OTHER, "create")])
    assert [[c.revision for c in read] for read in reads] == [[1, 2], [1], [2, 1]]
    assert [entry.revision for entry in entries] == [1, 2]


def test_a_reader_sees_each_append_and_writes_nothing(journal):
    reader = journal.reader()
    head = fill(journal, [commit(1, verb="create")])
    assert reader.head() == head and reader.at(1) == commit(1, verb="create")
    for refused in (lambda: reader.acquire("me"), lambda: reader.append(1, head, [commit(2)])):
        with pytest.raises(JournalError, match="only reads"):
            refused()
    reader.close()
    assert journal.head() == head


def test_a_closed_journal_says_so(journal):
    journal.close()
    journal.close()
    for call in (journal.head, journal.read, journal.snapshot, journal.verify, journal.reader):
        with pytest.raises(JournalError, match=r"closed; open it again"):
            call()
    with pytest.raises(JournalError, match="closed"):
        journal.acquire("me")


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgresql://db/steersman", "postgresql is not built in this version; use sqlite:PATH"),
        ("sqlite:", "use memory: or sqlite:PATH"),
        ("sqlite::memory:", "use memory: or sqlite:PATH"),
        ("sqlite://journal.db", "use memory: or sqlite:PATH"),
        ("memory:x", "use memory: or sqlite:PATH"),
        ("journal.db", "use memory: or sqlite:PATH"),
        ("", "use memory: or sqlite:PATH"),
    ],
)
def test_a_wrong_url_is_an_error_with_a_remedy(url, remedy):
    with pytest.raises(JournalError, match=remedy):
        sj.open(url)
