"""Views behind the head: events in order, the store as it was, and the end of being behind."""

from steersman.kernel.effect import Event
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import freeze
from steersman.kernel.view import Caches, View


def event(rev):
    return Event(rev, Key("", "Pod", "default", f"p{rev}"), None, None)


def test_a_view_shows_what_was_before_its_oldest_event():
    view = View(((event(1), "store 0"),)).behind(event(2), "store 1").behind(event(3), "store 2")
    assert view.seen("head") == "store 0"
    first, view = view.delivered()
    assert first.rev == 1 and view.seen("head") == "store 1"
    second, view = view.delivered()
    assert second.rev == 2 and view.seen("head") == "store 2"
    third, view = view.delivered()
    assert third.rev == 3 and view is None, "it has caught up with the head"


def test_views_are_values():
    view = View(((event(1), "store 0"),))
    longer = view.behind(event(2), "store 1")
    assert len(view.waiting) == 1 and len(longer.waiting) == 2


def kept(*names_on_nodes):
    """A store of pods, each on a node."""
    store = Store()
    for rev, (name, node) in enumerate(names_on_nodes, 1):
        meta = Section(freeze({"name": name, "uid": name}))
        store.put(Object(Key("", "Pod", "default", name), "v1", rev, meta, None, None, None, node=node))
    return store


def test_caches_show_each_kind_as_its_own_view_has_it():
    pod, gone = ("", "Pod"), ("", "Node")
    head, before = kept(("a", "n1"), ("b", "n1")), kept(("a", "n1"))
    late = View(((event(2), before),))
    names = lambda found: [obj.key.name for obj in found]  # noqa: E731
    assert names(Caches(head, {gone: late}).find("node", "n1", pod)) == ["a", "b"], "only Nodes are seen as they were"
    assert names(Caches(head, {pod: late}).find("node", "n1", pod)) == ["a"]
    assert names(Caches(head, {gone: late}).find("node", "n1")) == ["a", "b"]
    assert names(Caches(head, {pod: late}).find("node", "n1")) == ["a"]
