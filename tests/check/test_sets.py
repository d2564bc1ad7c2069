"""The order of sets, wherever a controller's code makes one."""

# ruff: noqa: C405, C416  (every way to make a set)

import pytest

import steersman as sm
from steersman.check.sets import BackwardFrozenSet, Backwards, BackwardSet
from tests.check.models import config, key

NAMES = {"x", "y", "z"}


def helper(items):
    """Called by name from a method."""
    return list({item for item in items})


class Base(sm.Controller):
    kind = "v1/ConfigMap"

    def names(self):
        return []

    def reconcile(self, c, at):
        found = c.get(at)
        if not found.data.order:
            c.patch(at, {"data": {"order": " ".join(self.names())}})


class Display(Base):
    def names(self):
        return list({"x", "y", "z"})


class Call(Base):
    def names(self):
        return [name for name in set("xyz")]


class Frozen(Base):
    def names(self):
        return list(frozenset("xyz") - {"z"})


class Comprehension(Base):
    def names(self):
        return helper("xyz")


class Operators(Base):
    def names(self):
        return list(({"x"} | {"y", "q"}) & {"x", "y"})


class Popped(Base):
    def names(self):
        return [{"x", "y", "z"}.pop()]


class Static(Base):
    @staticmethod
    def names():
        return list({"x", "y"})


def closure():
    def names():
        return list({"x", "y"})

    class Closed(Base):
        def names(self):
            return names()

    return Closed


class Ordered(Base):
    def names(self):
        return sorted({"x", "y", "z"} | set("ab"))


class Membership(Base):
    def names(self):
        return [name for name in "abxyz" if name in {"x", "y"} and len({1, 2}) == 2 and {1, 2} == {2, 1}]


class Summed(Base):
    def names(self):
        return [str(sum({1, 2, 3})), str(max(set([3, 1])))]


def checked(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    w.run(controller)
    w.converges(lambda s: s[key("a")].data.order)
    return sm.check(w)


@pytest.mark.parametrize(
    "controller", [Display, Call, Frozen, Comprehension, Operators, Popped, Static, closure()], ids=lambda c: c.__name__
)
def test_a_dependence_is_found(controller):
    verdict = checked(controller)
    (violation,) = verdict.violations
    assert (violation.kind, violation.name) == ("finding", "set-order")
    assert "another order of a set led first to patch ConfigMap default/a" in violation.message


@pytest.mark.parametrize("controller", [Ordered, Membership, Summed], ids=lambda c: c.__name__)
def test_no_dependence_is_no_finding(controller):
    checked(controller).assert_holds(complete=True)


def test_the_code_is_put_back():
    code = Display.names.__code__
    backwards = Backwards([Display])
    assert len(backwards) == 1
    with backwards():
        assert Display.names.__code__ is not code
        assert isinstance(Display.names(Display()), list)
    assert Display.names.__code__ is code


def test_code_without_sets_costs_nothing():
    assert len(Backwards([Base])) == 0


def test_backward_sets_are_sets():
    one, two = BackwardSet("abc"), BackwardFrozenSet("bcd")
    assert list(one) == list(set(one))[::-1] or sorted(one) == ["a", "b", "c"]
    assert one == {"a", "b", "c"} and two == frozenset("bcd") and hash(two) == hash(frozenset("bcd"))
    for result in (one & two, one | two, one - two, one ^ two, one.union(two), one.copy(), {"x"} | one):
        assert isinstance(result, set)
    assert isinstance(one & {"a"}, BackwardSet) and isinstance(two - {"b"}, BackwardFrozenSet)
    assert one.pop() in "abc" and len(one) == 2
