"""Faults of a request: 500 and 429 answered, a time-out of what was not done, and of what was."""

import steersman as sm
from tests.check.faults.seeded import finds
from tests.check.models import config, key


class Absent(sm.Controller):
    """Frees the address of a node that is gone. It asks the API server itself, and takes a failure for `gone` (the
    mechanism of bug 105)."""

    kind = "v1/ConfigMap"
    careless = True

    def reconcile(self, c, at):
        if at.name != "address":
            return
        try:
            node = c.get(key("node"), fresh=True)
        except sm.ApiError as error:
            if not self.careless or error.code != 500:
                raise
            node = None
        if node is None:
            c.delete(at)


class Careful(Absent):
    careless = False


def decommission(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("node"))
    w.apply(config("address"))
    w.run(controller)
    w.always("a node keeps its address", lambda s: s[key("address")])
    return w


def test_an_error_that_is_read_as_absent():
    verdict = finds(decommission, Absent, Careful, "errors")
    assert "failed, 500 InternalError (nothing was done)" in str(verdict)


class GivesUp(sm.Controller):
    """Writes once; of one kind of refusal it says that somebody else will see to it."""

    kind = "v1/ConfigMap"
    swallows = 0

    def reconcile(self, c, at):
        if c.get(at).data.done:
            return
        try:
            c.patch(at, {"data": {"done": "yes"}})
        except sm.ApiError as error:
            if error.code != self.swallows:
                raise


class OnThrottle(GivesUp):
    swallows = 429


class OnTimeout(GivesUp):
    """Bug 92: it believes that what timed out was done, and that the event will wake it."""

    swallows = 504


def written(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    w.run(controller)
    w.converges(lambda s: s[key("a")].data.done)
    return w


def test_a_throttled_write_that_is_not_tried_again():
    finds(written, OnThrottle, GivesUp, "throttles")


def test_a_write_that_timed_out_and_was_not_done():
    verdict = finds(written, OnTimeout, GivesUp, "timeouts")
    assert "timed out, 504 Timeout" in str(verdict)


class TriesAgain(sm.Controller):
    """Makes one child with a generated name; after a time-out it makes it again at once, without looking."""

    kind = "v1/ConfigMap"
    looks = False

    def reconcile(self, c, at):
        if at.name != "parent" or self.children(c):
            return
        child = config("")
        child["metadata"] = {"namespace": "default", "generateName": "child-"}
        try:
            c.create(child)
        except sm.ApiError as error:
            if error.code != 504 or self.looks:
                raise
            c.create(child)

    @staticmethod
    def children(c):
        return [obj for obj in c.list("v1/ConfigMap", fresh=True) if obj.metadata.name.startswith("child-")]


class Looks(TriesAgain):
    looks = True


def parent(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("parent"))
    w.run(controller)
    w.always("one child", lambda s: s.count("v1/ConfigMap") <= 2)
    w.converges(lambda s: s.count("v1/ConfigMap") == 2)
    return w


def test_a_write_that_timed_out_and_was_done():
    verdict = finds(parent, TriesAgain, Looks, "lost_replies", also=("leaders",))
    assert "done, but the answer is lost: the controller sees 504 Timeout" in str(verdict)


def test_a_lost_reply_of_a_refusal_does_nothing():
    class Twice(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, at):
            c.create(config("a"))

    w = sm.Scenario("twice")
    w.apply(config("a"))
    w.run(Twice)
    w.always("untouched", lambda s: s.count("v1/ConfigMap") == 1)
    sm.check(w, lost_replies=2).assert_holds(complete=True)
