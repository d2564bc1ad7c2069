"""Two controllers that are right by themselves, and never come to an end together.

An operator keeps a Deployment as its Shop asks for it, whoever edits it. A scaler keeps a Deployment at the least
number of replicas that its Floor asks for. Each holds in a check of its own, COMPLETE, with stale caches, a crash and a
conflict, and while somebody edits the Deployment by hand. Then a team puts a Floor on the Deployment of a Shop: two
owners of one field. The report names both, the object and the field; so does `steersman check --static`, before
anything runs.

The cure is an agreement: where a Floor is, the operator leaves the number of replicas to it.

    steersman check examples/compose/replicas.py

shows all four; `together` is VIOLATED (exit code 1), as it should be.
"""

import steersman as sm

GROUP = "example.com"
SHOP = sm.Key(GROUP, "Shop", "default", "shop")
FLOOR = sm.Key(GROUP, "Floor", "default", "shop")
WEB = sm.Key("apps", "Deployment", "default", "shop")


def definition(kind, **fields):
    """A CustomResourceDefinition whose spec has these fields."""
    plural = f"{kind.lower()}s"
    spec = {"type": "object", "properties": {name: {"type": of} for name, of in fields.items()}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def of_shop(_obj):
    """Both watch what there is one of."""
    return [SHOP]


class Operator(sm.Controller):
    """Keeps the Deployment of a Shop as the Shop wants it."""

    kind = f"{GROUP}/v1/Shop"
    watches = {"apps/v1/Deployment": of_shop}

    def reconcile(self, c, key):
        shop = c.get(key)
        if shop is None:
            return
        wanted = self.wanted(c, shop)
        web = c.get(WEB)
        if web is None:
            c.create(deployment(shop.spec.image, wanted.get("replicas", shop.spec.replicas)))
        elif any(web.spec[field] != value for field, value in wanted.items()):
            c.patch(WEB, {"spec": wanted})

    def wanted(self, c, shop):
        """The fields of the Deployment's spec that are this operator's."""
        return {"replicas": shop.spec.replicas}


class Scaler(sm.Controller):
    """Keeps a Deployment at the replicas that a Floor asks for, at least."""

    kind = f"{GROUP}/v1/Floor"
    watches = {"apps/v1/Deployment": lambda web: [FLOOR]}

    def reconcile(self, c, key):
        floor, web = c.get(key), c.get(WEB)
        if floor is not None and web is not None and web.spec.replicas < floor.spec.least:
            c.patch(WEB, {"spec": {"replicas": floor.spec.least}})


class PoliteOperator(Operator):
    """Leaves the number of replicas to a Floor, where there is one."""

    watches = {"apps/v1/Deployment": of_shop, f"{GROUP}/v1/Floor": of_shop}

    def wanted(self, c, shop):
        return {} if c.get(FLOOR) is not None else super().wanted(c, shop)


def deployment(image, replicas):
    """The Deployment of the shop."""
    labels = {"app": WEB.name}
    pod = {"containers": [{"name": "web", "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": WEB.name, "namespace": WEB.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def custom(key, **spec):
    """An object of one of the two kinds."""
    meta = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": f"{GROUP}/v1", "kind": key.kind, "metadata": meta, "spec": spec}


def scenario(name, *controllers, shop=True, floor=True):
    """A Shop that wants 2 replicas, a Floor of 5, and somebody who edits the Deployment."""
    w = sm.Scenario(name)
    w.kind(definition("Shop", image="string", replicas="integer"))
    w.kind(definition("Floor", least="integer"))
    if shop:
        w.apply(custom(SHOP, image="shop:1", replicas=2))
    else:
        w.apply(deployment("shop:1", 2))
    if floor:
        w.apply(custom(FLOOR, least=5))
    w.run(*controllers)
    w.user("edit by hand", lambda c: c.patch(WEB, {"spec": {"replicas": 3}}))
    return w


def test_the_operator_alone():
    w = scenario("operator alone", Operator, floor=False)
    w.converges(lambda s: s[WEB].spec.replicas == 2).confluent()
    sm.check(w, lag=1, crashes=1, conflicts=1).assert_holds(complete=True)


def test_the_scaler_alone():
    w = scenario("scaler alone", Scaler, shop=False)
    w.converges(lambda s: s[WEB].spec.replicas == 5).confluent()
    sm.check(w, lag=1, crashes=1, conflicts=1).assert_holds(complete=True)


def test_both_together_fight():
    verdict = sm.check(scenario("together", Operator, Scaler))
    (violation,) = verdict.violations
    assert violation.title == "livelock: no fight over a field"
    assert violation.message.startswith("operator and scaler fight over Deployment default/shop spec.replicas: ")
    assert "operator sets 2" in violation.message and "scaler sets 5" in violation.message
    assert "two owners of Deployment.apps default/shop" in verdict.static


def test_they_agree():
    w = scenario("polite", PoliteOperator, Scaler)
    w.converges(lambda s: s[WEB].spec.replicas == 5).confluent()
    sm.check(w, lag=1, crashes=1, conflicts=1).assert_holds(complete=True)
