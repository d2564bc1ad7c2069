"""Confluence does not count which uid or generated name an object got."""

import steersman as sm

MAKER = sm.Key("", "ConfigMap", "default", "maker")
SECRET = sm.Key("", "Secret", "default", "s")


def secret(**meta):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default", **meta}}


class Maker(sm.Controller):
    """Makes a Secret again whenever it is not there."""

    kind = "v1/ConfigMap"
    watches = {"v1/Secret": lambda obj: [MAKER]}  # noqa: RUF012

    def reconcile(self, c, key):
        if not c.list("v1/Secret", "default", fresh=True):
            c.create(self.body(c.get(key)))

    def body(self, maker):
        return secret()


class Namer(Maker):
    """Has the name drawn."""

    def body(self, maker):
        meta = {"generateName": "s-", "namespace": "default"}
        return secret() | {"metadata": meta}


class Owner(Namer):
    """Names itself as the owner, by uid."""

    def body(self, maker):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "maker", "uid": maker.metadata.uid}
        return secret(ownerReferences=[owner], labels={"owner": maker.metadata.uid})


class First(Maker):
    """What it makes depends on who came first."""

    def body(self, maker):
        return secret(labels={"first": str(maker.data.first)})


def emptied(maker):
    """Somebody deletes whatever Secret there is: it comes again, with another uid where a cache holds the old one."""
    w = sm.Scenario(maker.__name__)
    w.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "maker"}, "data": {"first": "no"}})
    w.run(maker)

    def empty(c):
        for each in c.list("v1/Secret", "default"):
            c.delete(each)

    w.user("empty", empty)
    w.confluent()
    return w


def test_uids():
    """The cache that stalls holds the first Secret, so the second has another uid than in a run without."""
    verdict = sm.check(emptied(Maker), rewinds=1).assert_holds(complete=True)
    assert verdict.converged == 2
    sm.check(emptied(Maker), rewinds=1, walks=200).assert_holds()


def test_generated_names():
    verdict = sm.check(emptied(Namer), rewinds=1).assert_holds(complete=True)
    assert verdict.converged > 1


def test_uids_inside_of_others():
    w = emptied(Owner)

    def again(c):
        c.delete(MAKER)
        c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "maker", "namespace": "default"}})

    w.user("again", again)
    found = sm.check(w).violations
    assert [violation.kind for violation in found] == ["confluence"], "an owner of before is not the owner there is"
    sm.check(emptied(Owner), rewinds=1).assert_holds(complete=True)


def test_what_differs_is_told():
    w = emptied(First)
    w.user("first", lambda c: c.patch(MAKER, {"data": {"first": "yes"}}))
    for bounds in ({}, {"walks": 50}):
        (violation,) = sm.check(w, **bounds).violations
        assert violation.kind == "confluence" and violation.other
