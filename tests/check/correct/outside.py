"""Controllers of what is outside, of time, and of who leads."""

from __future__ import annotations

from typing import Any

import steersman as sm
from tests.check.correct.children import CONFIG, is_going
from tests.check.models import config

FINALIZER = "example.com/record"


def zone(request: Any, state: Any) -> tuple[Any, Any]:
    """A DNS zone: {"get": name}, {"put": name, "to": address} or {"drop": name}."""
    records = dict(state)
    if "put" in request:
        records[request["put"]] = request["to"]
    elif "drop" in request:
        records.pop(request["drop"], None)
    return records.get(request.get("get")), records


class Records(sm.Controller):
    """A record for each ConfigMap: promised by a finalizer before it is made, taken back before that is taken off. What
    is outside is put, not added to, so that doing it twice is doing it once."""

    kind = CONFIG

    def reconcile(self, c: Any, at: sm.Key) -> float | None:
        found = c.get(at)
        if found is None:
            return None
        held = list(found["metadata"].get("finalizers") or ())
        version = found["metadata"]["resourceVersion"]
        if is_going(found):
            if FINALIZER in held:
                c.external("dns", {"drop": at.name})
                left = [each for each in held if each != FINALIZER]
                c.patch(at, {"metadata": {"finalizers": left or None}}, rv=version)
            return None
        if FINALIZER not in held:
            c.patch(at, {"metadata": {"finalizers": [*held, FINALIZER]}}, rv=version)
            return None  # that write wakes it
        c.external("dns", {"put": at.name, "to": (found.get("data") or {}).get("address", "")})
        return None


def finalizer_and_outside() -> sm.Scenario:
    w = sm.Scenario().run(Records).external("dns", zone, state={})
    first, last = w.apply(config("a", address="10.0.0.1")), w.apply(config("b", address="10.0.0.2"))
    w.user("move", lambda c: c.patch(first, {"data": {"address": "10.0.0.9"}}))
    w.user("delete", lambda c: c.delete(last))

    def as_said(s: sm.State) -> bool:
        """A record for each that is there, and no other."""
        said = {each.metadata.name: (each.data or {}).get("address", "") for each in s.list(CONFIG)}
        return dict(s.external("dns")) == said

    return w.converges(as_said)


def seconds_of(config_map: Any) -> str:
    """How long a ConfigMap is to stay."""
    return str((config_map.get("data") or {}).get("seconds", ""))


class Expires(sm.Controller):
    """Deletes a ConfigMap when its time is over; it asks to be called then, and looks at the clock again."""

    kind = CONFIG

    def reconcile(self, c: Any, at: sm.Key) -> float | None:
        found = c.get(at)
        if found is None or is_going(found) or not seconds_of(found).isdecimal():
            return None
        if not c.after(found["metadata"]["creationTimestamp"], int(seconds_of(found))):
            return None  # it is woken then
        live = c.get(at, fresh=True)
        if live is not None and live.get("data") == found.get("data"):
            meta = live["metadata"]
            if meta["uid"] == found["metadata"]["uid"]:
                c.delete(at, uid=meta["uid"], rv=meta["resourceVersion"])
        return None


def expiry() -> sm.Scenario:
    w = sm.Scenario().run(Expires)
    at = w.apply(config("a", seconds="60"))
    w.user("keep", lambda c: c.patch(at, {"data": {"seconds": None}}))
    return w.converges(lambda s: not any(seconds_of(each).isdecimal() for each in s.list(CONFIG)))


class Leads(sm.Controller):
    """Does its work only while it holds a Lease, which is taken with the version that was read, and writes with the
    number of its term: whoever led before writes no more."""

    kind = CONFIG
    lease = sm.Key("coordination.k8s.io", "Lease", "default", "leader")
    seconds = 15

    def reconcile(self, c: Any, at: sm.Key) -> float | None:
        found = c.get(at)
        if at.name != "work" or found is None or is_going(found):
            return None
        term = self.leads(c)
        if term is None:
            return float(self.seconds)
        live = c.get(at, fresh=True)
        if (
            live is None
            or is_going(live)
            or live.get("immutable")
            or int((live.get("data") or {}).get("term", "0")) >= term
        ):
            return None
        c.update({**live, "data": {**(live.get("data") or {}), "term": str(term), "by": c.manager}})
        return None

    def leads(self, c: Any) -> int | None:
        """The number of the term it leads; None while another does."""
        lease = c.get(self.lease, fresh=True)
        mine = {"holderIdentity": c.manager, "leaseDurationSeconds": self.seconds}
        if lease is None:
            meta = {"name": self.lease.name, "namespace": self.lease.namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
            c.create({**body, "spec": {**mine, "leaseTransitions": 1}})
            return 1
        spec = lease["spec"]
        if spec.get("holderIdentity") == c.manager:
            return int(spec["leaseTransitions"])
        if spec.get("holderIdentity"):
            return None
        term = int(spec.get("leaseTransitions", 0)) + 1
        c.update({**lease, "spec": {**spec, **mine, "leaseTransitions": term}})
        return term


def leadership() -> sm.Scenario:
    w = sm.Scenario().run(first=Leads, second=Leads)
    work = w.apply(config("work"))

    def resign(c: Any) -> None:
        """The leader of the moment is gone, and an administrator frees the Lease."""
        if c.get(Leads.lease) is not None:
            c.patch(Leads.lease, {"spec": {"holderIdentity": None}})

    w.user("resign", resign)

    def one_leads(s: sm.State) -> bool:
        """What is written names the term of the Lease, or an earlier one, and who led it."""
        term = int((s[work].data or {}).get("term", "0")) if s[work] else 0
        return not s[work] or not s[Leads.lease] or term <= s[Leads.lease].spec.leaseTransitions

    return w.always("nobody writes for a term to come", one_leads)


class Polls(sm.Controller):
    """Notes what an external system says, every minute; it writes only what is new."""

    kind = CONFIG

    def reconcile(self, c: Any, at: sm.Key) -> float | None:
        found = c.get(at)
        if found is None or is_going(found) or found.get("immutable"):
            return None
        said = c.external("dns", {"get": at.name}) or "nothing"
        if (found.get("data") or {}).get("said") != said:
            c.patch(at, {"data": {"said": said}})
        return 60.0


def resync() -> sm.Scenario:
    w = sm.Scenario().run(Polls).external("dns", zone, state={"a": "10.0.0.1"})
    at = w.apply(config("a"))
    w.user("forget", lambda c: c.patch(at, {"data": {"said": None}}))
    return w.converges(lambda s: not s[at] or bool(s[at].immutable) or s[at].data.said == "10.0.0.1")


EVERY = (finalizer_and_outside, expiry, leadership, resync)
