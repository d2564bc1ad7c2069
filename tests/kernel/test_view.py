"""Views behind the head: events in order, the store as it was, and the end of being behind."""

from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.view import View


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
