"""The store, example by example; tests/laws/test_store_law.py has it against a plain dict."""

import pytest

from steersman.kernel.effect import Commit, ListQuery, Request, reply_of
from steersman.kernel.object import PARSED, Key, Section
from steersman.kernel.store import NODE, OWNER, Store, StoreConfig, label_index
from steersman.kernel.value import freeze
from tests.kernel.samples import POD, SET, thing


def names(found):
    return [f"{obj.key.namespace}/{obj.key.name}" for obj in found]


def full():
    store = Store(StoreConfig(indexes=(OWNER, NODE, label_index(POD, "app"))))
    rv = 0
    for namespace in ("b", "a"):
        for name in ("y", "x", "z"):
            rv += 1
            pod = thing(POD, namespace, name, rv, labels={"app": name}, owners=("o1",), node=f"n-{name}")
            assert store.put(pod) is None
    store.put(thing(SET, "a", "s", 7, owners=("o1", "o2"), labels={"app": "x"}))
    return store


def test_lists_are_sorted_and_continue():
    store = full()
    assert names(store.list(POD)) == ["a/x", "a/y", "a/z", "b/x", "b/y", "b/z"]
    assert names(store.list(POD, "b")) == ["b/x", "b/y", "b/z"]
    assert names(store.list(POD, None, ("a", "y"))) == ["a/z", "b/x", "b/y", "b/z"]
    assert names(store.list(POD, None, ("a", "yy"))) == ["a/z", "b/x", "b/y", "b/z"]
    assert names(store.list(POD, "b", ("b", "x"))) == ["b/y", "b/z"]
    assert names(store.list(POD, "b", ("a", "z"))) == ["b/x", "b/y", "b/z"]
    assert names(store.list(POD, "c")) == []
    assert names(store.list(("", "Node"))) == []
    assert store.kinds() == [POD, SET]
    assert store.namespaces(POD) == ["a", "b"]
    assert (store.count(POD), store.count(("", "Node"))) == (6, 0)


def test_indexes():
    store = full()
    assert names(store.find("owner", "o1", POD)) == ["a/x", "a/y", "a/z", "b/x", "b/y", "b/z"]
    assert names(store.find("owner", "o1")) == ["a/x", "a/y", "a/z", "b/x", "b/y", "b/z", "a/s"]
    assert names(store.find("owner", "o2")) == ["a/s"]
    assert names(store.find("node", "n-x")) == ["a/x", "b/x"]
    assert names(store.find("label:app", "x")) == ["a/x", "b/x"]  # the ReplicaSet is not of the index's kind
    assert names(store.find("owner", "o")) == []
    assert names(store.find("nothing", "o1")) == []
    old = store.get(Key(*POD, "a", "x"))
    store.put(old.replace(node=None, rv=8, meta=Section(freeze({"name": "x"}))))
    assert names(store.find("node", "n-x")) == ["b/x"]
    assert names(store.find("owner", "o1", POD)) == ["a/y", "a/z", "b/x", "b/y", "b/z"]
    assert names(store.find("label:app", "x")) == ["b/x"]


def test_queries():
    store = full()
    by_owner = ListQuery(POD, "b", "owner", "o1")
    assert names(store.query(by_owner)) == ["b/x", "b/y", "b/z"]
    assert names(store.query(by_owner, ("b", "y"))) == ["b/z"]
    only_z = ListQuery(POD, None, matches=lambda obj: obj.key.name == "z")
    assert names(store.query(only_z)) == ["a/z", "b/z"]


def test_commit_is_refused_when_the_slot_moved_on():
    store = Store()
    first = thing(POD, "a", "x")
    event = store.commit(Commit(first.key, None, first))
    assert (event.type, event.rev, event.obj.rv) == ("ADDED", 1, 1)
    assert store.commit(Commit(first.key, None, thing(POD, "a", "x"))) is None
    second = first.replace(node="n1", rv=0)
    changed = Commit(first.key, first, second)
    assert changed.expected_rv == 1
    event = store.commit(changed)
    assert (event.type, event.rev, event.old, event.new) == ("MODIFIED", 2, first, second)
    assert reply_of(changed, event).obj is second
    assert store.commit(Commit(first.key, first, None)) is None
    assert store.rev == 2
    gone = Commit(first.key, second, None)
    event = store.commit(gone)
    assert (event.type, event.rev, event.obj) == ("DELETED", 3, second)
    shown = reply_of(gone, event).obj
    assert (shown.rv, shown.same_content(second)) == (3, True)
    last = second.at(second.rv)
    assert reply_of(gone._replace(last=lambda _old: last), event).obj is last  # it has a revision of its own
    assert store.get(first.key) is None
    assert (store.kinds(), store.namespaces(POD), store.rev) == ([], [], 3)


def test_a_version_committed_twice_gets_a_revision_each_time():
    """Two paths of an exploration may commit one memoised version."""
    made = thing(POD, "a", "x")
    one, two = Store(), Store()
    two.put(thing(SET, "a", "s", 5))
    one.commit(Commit(made.key, None, made))
    two.commit(Commit(made.key, None, made))
    assert (one.get(made.key).rv, two.get(made.key).rv) == (1, 6)


def test_a_digest_taken_before_the_commit_is_not_kept():
    store = Store(StoreConfig(concrete=True))
    made = thing(POD, "a", "x")
    _ = made.term
    store.commit(Commit(made.key, None, made))
    assert store.digest == (thing(POD, "a", "x", 1).term, 0)


def test_forks_do_not_see_each_other():
    store = full()
    other = store.fork()
    store.remove(Key(*POD, "a", "x"), 8)
    other.put(thing(POD, "a", "w", 8, owners=("o1",)))
    assert names(store.list(POD, "a")) == ["a/y", "a/z"]
    assert names(other.list(POD, "a")) == ["a/w", "a/x", "a/y", "a/z"]
    assert names(store.find("owner", "o1", POD))[:2] == ["a/y", "a/z"]
    assert names(other.find("owner", "o1", POD))[:3] == ["a/w", "a/x", "a/y"]


def test_removing_what_is_not_there():
    store = Store()
    assert store.remove(Key(*POD, "a", "x"), 5) is None
    assert store.rev == 0
    store.put(thing(POD, "a", "y", 1))
    assert store.remove(Key(*POD, "a", "x"), 5) is None
    assert store.rev == 1


@pytest.mark.parametrize("running", [True, False])
def test_digests_keep_head_only_kinds_apart(running):
    store = Store(StoreConfig(concrete=running, head_only=lambda gk: gk == SET))
    pod, replicas = thing(POD, "a", "x", 1), thing(SET, "a", "s", 2)
    store.put(pod)
    store.put(replicas)
    assert store.digest == (pod.term, replicas.term)
    store.remove(pod.key, 3)
    assert store.digest == (0, replicas.term)


def test_compact_stores_keep_bytes_only_when_memory_is_short():
    store = Store(StoreConfig(compact=True))
    pod = thing(POD, "a", "x", 1, spec={"a": 1}, status={"b": 2})
    store.put(pod)
    PARSED.clear()
    assert (pod.spec._value, pod.status._value) == (None, None)
    assert store.get(pod.key).value["spec"] == {"a": 1}


def test_effects_name_what_they_touch():
    key = Key(*POD, "a", "x")
    assert Request("get", key).now == 0
    assert str(key) in f"create {key}"
