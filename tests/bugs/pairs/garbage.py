"""Garbage collection: what is to go with its owner, and what is not."""

from functools import partial
from typing import Final

import steersman as sm
from tests.bugs.objects import claim, config_key, config_map, key_of, secret, secret_key
from tests.bugs.row import Row


class CollectOnNews(sm.Controller):
    """Deletes the children of a parent when it hears that the parent is gone."""

    kind = "v1/ConfigMap"
    looks_at_start = False

    def reconcile(self, c, key):
        if key.name == "parent" and c.get(key) is None:
            c.delete(config_key("child"))
        elif self.looks_at_start and key.name == "child" and c.get(config_key("parent"), fresh=True) is None:
            c.delete(key)


class CollectAtStartToo(CollectOnNews):
    """Looks at every child after a start: what was missed while it was down."""

    looks_at_start = True


def collecting(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config_map("parent"))
    w.apply(config_map("child"))
    w.run(controller)
    w.user("delete", lambda c: c.delete(config_key("parent")))
    w.converges(lambda s: not s[config_key("child")], name="children are collected")
    return w


# -- 72, 85: what the cache does not show is taken to be gone ---------------------------------------------------------


class GoneFromTheCache(sm.Controller):
    """Deletes what belongs to somebody who is not there."""

    kind = "v1/Secret"
    fresh = False

    def reconcile(self, c, key):
        part = c.get(key)
        if part is None:
            return
        owner = part.metadata.annotations
        if c.get(sm.Key("", owner.kind, key.namespace, owner.name), fresh=self.fresh) is None:
            c.delete(part, uid=part.metadata.uid)


class GoneForGood(GoneFromTheCache):
    """Asks the API server whether they are gone."""

    fresh = True


def made_together(owner, name, controller):
    """A person makes an object and what belongs to it."""
    w = sm.Scenario(controller.__name__)
    w.run(controller)
    part = secret(name)
    part["metadata"]["annotations"] = {"kind": owner["kind"], "name": owner["metadata"]["name"]}

    def make(c):
        c.create(owner)
        c.create(part)

    w.user("make", make)
    w.always("who lives keeps what is theirs", lambda s: not s[key_of(owner)] or s[key_of(part)])
    return w


# -- 75: known by uid, looked for in the wrong namespace --------------------------------------------------------------


class RemembersUids(sm.Controller):
    """Deletes what belongs to an owner that is not there; remembers owners that it looked for in vain."""

    kind = "v1/Secret"

    def reconcile(self, c, key):
        part = c.get(key)
        if part is None:
            return
        owner = part.metadata.ownerReferences[0]
        place = self.place(key, owner)
        absent = c.memory.get("absent", ())
        if place not in absent:
            live = c.get(sm.Key("", "ConfigMap", key.namespace, owner.name), fresh=True)
            if live is not None and live.metadata.uid == owner.uid:
                return
            c.memory["absent"] = [*absent, place]
        c.delete(part, uid=part.metadata.uid)

    def place(self, key, owner):
        """What it remembers of an owner."""
        return owner.uid


class RemembersWhere(RemembersUids):
    """Remembers where it looked, too."""

    def place(self, key, owner):
        return f"{key.namespace}/{owner.uid}"


OTHER: Final = "other"


def across(controller):
    """A person makes a child in another namespace than its owner's; there is a good one beside the owner."""
    w = sm.Scenario(controller.__name__)
    owner = w.apply(config_map("owner"))
    w.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}})
    w.run(controller)

    def child(c, namespace):
        uid = c.get(owner).metadata.uid
        body = secret("child")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        body["metadata"].update(namespace=namespace, ownerReferences=[reference])
        c.create(body)

    w.user("make", lambda c: child(c, "default"))
    w.user("make elsewhere", lambda c: child(c, OTHER))
    good = secret_key("child")
    w.converges(lambda s: s[good], name="who lives keeps what is theirs")
    return w


# -- 76: orphans that the cache does not show -------------------------------------------------------------------------

ORPHAN: Final = "example.com/orphan"


class OrphansOfTheCache(sm.Controller):
    """An owner that is to leave its dependents behind: they are let go, and then it goes. What belongs to nobody who is
    there is deleted."""

    kind = "v1/ConfigMap"
    watches = {"v1/Secret": lambda obj: [config_key("owner")]}  # noqa: RUF012
    fresh = False

    def reconcile(self, c, key):
        owner = c.get(key, fresh=True)
        dependents = c.list("v1/Secret", "default", labels="owned=yes", fresh=self.fresh or owner is None)
        if owner is None:
            for each in dependents:
                c.delete(each)
        elif owner.metadata.deletionTimestamp:
            for each in dependents:
                c.patch(each, {"metadata": {"labels": None}})
            c.patch(key, {"metadata": {"finalizers": None}})


class OrphansOfTheServer(OrphansOfTheCache):
    """Asks the API server for the dependents."""

    fresh = True


def orphaning(controller):
    """A person makes a dependent, and deletes its owner, not the dependent."""
    w = sm.Scenario(controller.__name__)
    body = config_map("owner")
    body["metadata"]["finalizers"] = [ORPHAN]
    owner = w.apply(body)
    w.run(controller)
    child = secret("child")
    child["metadata"]["labels"] = {"owned": "yes"}

    def make_and_delete(c):
        c.create(child)
        c.delete(owner)

    w.user("delete but not its dependents", make_and_delete)
    w.converges(lambda s: not s[owner] and s[key_of(child)], name="dependents stay when they are to")
    return w


# -- 77: done once, asked twice ---------------------------------------------------------------------------------------

FOREGROUND: Final = "foregroundDeletion"
HELD: Final = "example.com/held"


class DoneOnce(sm.Controller):
    """Takes the foreground finalizer off an object that is being deleted, once: then it forgets about it."""

    kind = "v1/ConfigMap"
    forgets = True

    def reconcile(self, c, key):
        found = c.get(key)
        if found is None or not found.metadata.deletionTimestamp or FOREGROUND not in (found.metadata.finalizers or ()):
            return
        if self.forgets and c.memory.get("done"):
            return
        left = [name for name in found.metadata.finalizers if name != FOREGROUND]
        c.patch(key, {"metadata": {"finalizers": left}}, rv=found.metadata.resourceVersion)
        c.memory["done"] = True


class AsOftenAsAsked(DoneOnce):
    """As often as it is there."""

    forgets = False


class Holder(sm.Controller):
    """Holds an object until a person says so."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        found = c.get(key)
        if found is not None and found.metadata.deletionTimestamp and found.metadata.annotations.released:
            left = [name for name in found.metadata.finalizers or () if name != HELD]
            if left != list(found.metadata.finalizers or ()):
                c.patch(key, {"metadata": {"finalizers": left}}, rv=found.metadata.resourceVersion)


def twice(controller):
    """A person deletes an object in the foreground, again while somebody holds it, and then lets it go."""
    w = sm.Scenario(controller.__name__)
    body = config_map("owner")
    body["metadata"]["finalizers"] = [HELD]
    owner = w.apply(body)
    w.run(controller, Holder)

    w.user("delete", lambda c: c.delete(owner, propagation="Foreground"))
    w.user("delete again", lambda c: c.delete(owner, propagation="Foreground"))
    w.user("let go", lambda c: c.patch(owner, {"metadata": {"annotations": {"released": "yes"}}}))
    w.converges(lambda s: not s[owner], name="what is deleted goes")
    return w


ROWS = (
    Row(
        72,
        "kubernetes/kubernetes#88097",
        "children are looked at before their owners are in the cache: live ones are deleted",
        partial(made_together, config_map("owner"), "child"),
        GoneFromTheCache,
        GoneForGood,
        ("who lives keeps what is theirs",),
        {"lag": 1},
    ),
    Row(
        74,
        "kubernetes/kubernetes#109748",
        "an owner is deleted while the garbage collector is down: its dependents are never collected",
        collecting,
        CollectOnNews,
        CollectAtStartToo,
        ("children are collected",),
        {"crashes": 1},
        {"lag": 1},
    ),
    Row(
        75,
        "kubernetes/kubernetes#65200",
        "a child names an owner in another namespace: the owner is taken to be gone, and its own child is deleted",
        across,
        RemembersUids,
        RemembersWhere,
        ("who lives keeps what is theirs",),
        harder={"crashes": 1},
        shows=("user: make elsewhere",),
    ),
    Row(
        76,
        "kubernetes/kubernetes#26120",
        "dependents are to be orphaned, but the cache does not show one that has just been made: it is collected",
        orphaning,
        OrphansOfTheCache,
        OrphansOfTheServer,
        ("dependents stay when they are to",),
        {"lag": 1},
    ),
    Row(
        77,
        "kubernetes/kubernetes#77081",
        "deleted in the foreground a second time, when the collector has dropped the object: it stays for ever",
        twice,
        DoneOnce,
        AsOftenAsAsked,
        ("what is deleted goes",),
        shows=("user: delete", "user: delete again"),
    ),
    Row(
        85,
        "kubernetes/kubernetes#141891",
        "a claim that the cache does not show is taken to be deleted: the storage behind it is deleted",
        partial(made_together, claim("data"), "storage"),
        GoneFromTheCache,
        GoneForGood,
        ("who lives keeps what is theirs",),
        {"lag": 1},
    ),
)
