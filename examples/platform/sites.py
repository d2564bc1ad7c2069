"""A platform that is not about pods: a Site has a database and a DNS zone, both of them elsewhere.

One controller sees to the database of a Site, another one to its zone, which points to where the database is. Neither
knows of the other: the first writes `status.address`, the second reads it. What they manage is reached by
`c.external`: a model in a check (below), a driver where it runs (drivers.py, live.py). Each holds a finalizer of its
own, so that nothing is left behind when a Site goes; and the zone goes first, so that no name ever points to a database
that is not there. That is checked with stale caches and conflicts, and with a crash between any two calls while the
answer of one of the two systems may be lost.

    steersman check examples/platform/sites.py
"""

import steersman as sm

GROUP = "example.com"
SITE = sm.Key(GROUP, "Site", "default", "shop")
TEXT = {"type": "string"}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"sites.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "sites", "singular": "site", "kind": "Site"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["domain", "size"],
                                "properties": {
                                    "domain": {**TEXT, "pattern": r"^[a-z0-9-]+(\.[a-z0-9-]+)+$"},
                                    "size": {"type": "integer", "minimum": 1, "maximum": 64},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"address": TEXT, "size": {"type": "integer"}, "record": TEXT},
                            },
                        },
                    }
                },
            }
        ],
    },
}
DATABASE, ZONE = f"{GROUP}/database", f"{GROUP}/zone"
"""The finalizers."""


class Part(sm.Controller):
    """Holds a finalizer on a Site while there is something to clean up, and lets go of it afterwards."""

    kind = f"{GROUP}/v1/Site"
    finalizer = ""

    def reconcile(self, c, key):
        site = c.get(key)
        if site is None:
            return
        held = list(site.metadata.finalizers or ())
        mine = self.finalizer in held
        if not site.metadata.deletionTimestamp:
            if mine:
                self.keep(c, site)
            else:
                self.hold(c, site, [*held, self.finalizer])
        elif mine and self.clean(c, site):
            self.hold(c, site, [name for name in held if name != self.finalizer])

    @staticmethod
    def hold(c, site, finalizers):
        """Both write this list: each only if nobody did so since it was read."""
        c.patch(site, {"metadata": {"finalizers": finalizers}}, rv=site.metadata.resourceVersion)

    def keep(self, c, site):
        """Makes what is elsewhere what the Site asks for."""

    def clean(self, c, site):
        """Takes it away; whether nothing of it is left."""
        return True


class Databases(Part):
    """The database of a Site. It may grow, and never shrinks."""

    finalizer = DATABASE

    def keep(self, c, site):
        name, size = name_of(site), site.spec.size
        found = c.external("databases", {"op": "get", "name": name})
        if found is None:
            found = c.external("databases", {"op": "create", "name": name, "size": size})
        elif found.size < size:
            found = c.external("databases", {"op": "resize", "name": name, "size": size})
        seen = {"address": found.address, "size": found.size}
        if any((site.status or {}).get(field) != value for field, value in seen.items()):
            c.patch_status(site, seen)

    def clean(self, c, site):
        if ZONE in (site.metadata.finalizers or ()):
            return False  # its zone still points there; that it is gone is an event of the Site
        c.external("databases", {"op": "delete", "name": name_of(site)})
        return True


class Zones(Part):
    """The record of a Site's domain: where its database is."""

    finalizer = ZONE

    def keep(self, c, site):
        address = site.status.address
        if not address:
            return
        wanted = f"{site.spec.domain} {address}"
        if c.external("dns", {"op": "get", "owner": name_of(site)}) != wanted:
            c.external("dns", {"op": "put", "owner": name_of(site), "record": wanted})
        if site.status.record != wanted:
            c.patch_status(site, {"record": wanted})

    def clean(self, c, site):
        c.external("dns", {"op": "delete", "owner": name_of(site)})
        return True


def name_of(site):
    """What belongs to a Site is called by its uid: another one of the same name gets its own."""
    return f"{site.metadata.namespace}-{site.metadata.name}-{site.metadata.uid}"


# -- the models ------------------------------------------------------------------------------------------------------


def databases(request, state):
    """A service of databases: {name: size}; a database is reached under an address that is made of its name."""
    name, size = request["name"], state.get(request["name"])
    if request["op"] == "delete":
        return None, {other: value for other, value in state.items() if other != name}
    if request["op"] in ("create", "resize"):
        size = max(size or 0, request["size"])
        state = {**state, name: size}
    return None if size is None else {"address": f"{name}.db.internal", "size": size}, state


def dns(request, state):
    """A DNS service: {owner: record}."""
    owner = request["owner"]
    if request["op"] == "delete":
        return None, {other: record for other, record in state.items() if other != owner}
    if request["op"] == "put":
        state = {**state, owner: request["record"]}
    return state.get(owner), state


# -- what is checked -------------------------------------------------------------------------------------------------


def site(size=1):
    """A Site."""
    meta = {"name": SITE.name, "namespace": SITE.namespace}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Site",
        "metadata": meta,
        "spec": {"domain": "shop.example.com", "size": size},
    }


def platform(name):
    """One Site, both controllers, and both systems with nothing in them."""
    w = sm.Scenario(name)
    w.kind(DEFINITION)
    w.apply(site())
    w.run(Databases, Zones)
    w.external("databases", databases, state={})
    w.external("dns", dns, state={})
    w.always("no name points to nothing", pointing)
    return w


def pointing(s):
    """Whoever has a record has a database."""
    return all(owner in s.external("databases") for owner in s.external("dns"))


def growing():
    """Somebody asks for more, at any moment."""
    w = platform("a site that grows")
    w.user("grow", lambda c: c.patch(SITE, {"spec": {"size": 2}}))

    def complete(s):
        found = s[SITE]
        (size,), (record,) = s.external("databases").values(), s.external("dns").values()
        return size == 2 and found.status.size == 2 and record == found.status.record

    return w.converges(complete)


def leaving():
    """Somebody deletes the Site, at any moment: nothing of it is left anywhere."""
    w = platform("a site that goes")
    w.user("delete", lambda c: c.delete(SITE))
    return w.converges(lambda s: not (s[SITE] or s.external("databases") or s.external("dns")))


def test_a_site_grows():
    sm.check(growing(), lag=1).assert_holds(complete=True)
    sm.check(growing(), crashes=1, external_losses=1).assert_holds(complete=True)


def test_a_site_goes():
    sm.check(leaving(), lag=1, conflicts=1).assert_holds(complete=True)
    sm.check(leaving(), crashes=1, external_losses=1).assert_holds(complete=True)
