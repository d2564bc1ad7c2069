"""Controllers that make objects for others: by generated names, by names that follow, owned, copied."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import steersman as sm
from steersman.controllers.garbage import GarbageCollector
from tests.check.models import config, key

CONFIG = "v1/ConfigMap"
SECRET = "v1/Secret"


def owner_ref(obj: Any) -> dict[str, Any]:
    """The reference that makes an object the controller of another."""
    names = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    return {**names, "uid": obj["metadata"]["uid"], "controller": True}


def is_going(obj: Any) -> bool:
    """Whether its deletion has begun."""
    return "deletionTimestamp" in obj["metadata"]


def secret(name: str, **fields: Any) -> dict[str, Any]:
    """A Secret."""
    meta = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, **fields}


def owned_by(s: sm.State, parent: sm.Key) -> list[Any]:
    """The Secrets of the parent that there is."""
    uid = s[parent].metadata.uid
    return [each for each in s.list(SECRET) if any(ref.uid == uid for ref in each.metadata.ownerReferences or ())]


def number_in(config_map: Any) -> int | None:
    """How many a ConfigMap asks for; None where it does not say so in digits."""
    text = (config_map.get("data") or {}).get("count", "0")
    return int(text) if text.isdecimal() else None


class Generated(sm.Controller):
    """Keeps as many Secrets as a ConfigMap says, under generated names. A name that is drawn cannot be made twice by
    mistake, so before anything is made or deleted it is counted afresh."""

    kind = CONFIG
    owns = (SECRET,)

    def reconcile(self, c: Any, at: sm.Key) -> None:
        parent = c.get(at)
        if parent is None or is_going(parent):
            return
        wanted = number_in(parent)
        if wanted is None or len(self.mine(c, parent, fresh=False)) == wanted:
            return
        live = c.get(at, fresh=True)
        if live is None or live["metadata"]["uid"] != parent["metadata"]["uid"] or is_going(live):
            return
        wanted = number_in(live)
        mine = self.mine(c, live, fresh=True)
        if wanted is None:
            return
        for _ in range(wanted - len(mine)):
            meta = {"generateName": f"{at.name}-", "namespace": at.namespace, "ownerReferences": [owner_ref(live)]}
            c.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
        for each in mine[wanted:]:
            c.delete(each, uid=each["metadata"]["uid"])

    def mine(self, c: Any, parent: Any, fresh: bool) -> list[Any]:
        """Those that stay, the oldest first."""
        found = c.list(SECRET, parent["metadata"]["namespace"], owner=parent, fresh=fresh)
        return [each for each in found if not is_going(each)]


def generated_names() -> sm.Scenario:
    w = sm.Scenario().run(Generated)
    parent = w.apply(config("a", count="2"))
    w.user("fewer", lambda c: c.patch(parent, {"data": {"count": "1"}}))

    def as_many(s: sm.State) -> bool:
        return not s[parent] or number_in(s[parent]) in (None, len(owned_by(s, parent)))

    return w.converges(as_many)


class Following(sm.Controller):
    """A Secret for each name that a ConfigMap lists, called after both; what is not listed any more goes. One that is
    there and not seen is a refusal, and looked at again."""

    kind = CONFIG
    owns = (SECRET,)

    def reconcile(self, c: Any, at: sm.Key) -> None:
        parent = c.get(at)
        if parent is None or is_going(parent):
            return
        wanted = {f"{at.name}-{name}" for name in parent.get("data") or ()}
        mine = {each["metadata"]["name"]: each for each in c.list(SECRET, at.namespace, owner=parent)}
        for name in sorted(wanted - mine.keys()):
            c.create(secret(name, metadata={"ownerReferences": [owner_ref(parent)]}))
        stale = sorted(mine.keys() - wanted)
        live = c.get(at, fresh=True) if stale else None
        if live is None or live["metadata"]["uid"] != parent["metadata"]["uid"]:
            return
        for name in stale:
            if name.removeprefix(f"{at.name}-") not in (live.get("data") or ()):
                c.delete(mine[name], uid=mine[name]["metadata"]["uid"])


def names_that_follow() -> sm.Scenario:
    w = sm.Scenario().run(Following, GarbageCollector)
    parent = w.apply(config("a", x="1", y="1"))
    w.user("other", lambda c: c.patch(parent, {"data": {"x": None, "z": "1"}}))

    def listed(s: sm.State) -> bool:
        names = [each.metadata.name for each in owned_by(s, parent)]
        return not s[parent] or names == [f"a-{name}" for name in sorted(s[parent].data or ())]

    return w.converges(listed)


class Successor(sm.Controller):
    """One Secret a ConfigMap, of one name whatever the incarnation: what an earlier one left is waited for."""

    kind = CONFIG
    owns = (SECRET,)
    watches: ClassVar[Mapping[str, Any]] = {SECRET: lambda found: [key(found["metadata"]["name"])]}

    def reconcile(self, c: Any, at: sm.Key) -> None:
        parent = c.get(at)
        if parent is None or is_going(parent):
            return
        found = c.get(c.key(SECRET, at.name, at.namespace))
        if found is not None:
            return  # ours, or one that a collector takes; either way its end wakes us
        live = c.get(at, fresh=True)
        if live is None or live["metadata"]["uid"] != parent["metadata"]["uid"]:
            return
        c.create(secret(at.name, metadata={"ownerReferences": [owner_ref(live)]}))  # if it is there: tried again


def one_after_another() -> sm.Scenario:
    w = sm.Scenario().run(Successor, GarbageCollector)
    parent = w.apply(config("a"))

    def again(c: Any) -> None:
        c.delete(parent)
        c.create(config("a"))

    w.user("again", again)
    return w.converges(lambda s: not s[parent] or len(owned_by(s, parent)) == 1)


class Copies(sm.Controller):
    """Copies a Secret into the namespaces that ask for it, and takes back what they do not ask for."""

    kind = "v1/Namespace"
    watches: ClassVar[Mapping[str, Any]] = {SECRET: lambda found: ()}
    source = sm.Key("", "Secret", "default", "source")

    def map_event(self, event: Any, find: Any) -> list[sm.Key]:
        """A namespace, one's own copy, or the source, which is in everybody's interest."""
        if event.key.kind == "Namespace":
            return [event.key]
        if event.key == self.source:
            return [self.source]
        return [sm.Key("", "Namespace", "", event.key.namespace)] if event.key.name == "copy" else []

    def reconcile(self, c: Any, at: sm.Key) -> None:
        source = c.get(self.source)
        spaces = c.list("v1/Namespace") if at == self.source else [c.get(at)]
        for space in spaces:
            if space is not None and not is_going(space):
                self.copy(c, space, source)

    def copy(self, c: Any, space: Any, source: Any) -> None:
        """One namespace."""
        name = space["metadata"]["name"]
        asks = "copy" in (space["metadata"].get("labels") or ()) and source is not None
        at = c.key(SECRET, "copy", name)
        found = c.get(at)
        if not asks:
            if found is not None:
                c.delete(found, uid=found["metadata"]["uid"], rv=found["metadata"]["resourceVersion"])
        elif found is None:
            with suppress(sm.AlreadyExists):
                c.create(
                    {**secret("copy"), "metadata": {"name": "copy", "namespace": name}, "data": source.get("data")}
                )
        elif found.get("data") != source.get("data"):
            c.update({**found, "data": source.get("data")})


def copies() -> sm.Scenario:
    w = sm.Scenario().run(Copies)
    space = w.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"copy": ""}}})
    w.apply(secret("source", data={"a": "MQ=="}))
    w.user("change", lambda c: c.patch(Copies.source, {"data": {"a": "Mg=="}}))
    w.user("stop", lambda c: c.patch(space, {"metadata": {"labels": {"copy": None}}}))
    copy = sm.Key("", "Secret", "shop", "copy")

    def copied(s: sm.State) -> bool:
        asks = "copy" in (s[space].metadata.labels or ()) and s[Copies.source]
        return s[copy].data == s[Copies.source].data if asks else not s[copy]

    return w.converges(copied)


EVERY = (generated_names, names_that_follow, one_after_another, copies)
