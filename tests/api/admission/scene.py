"""A cluster behind the standard chain, for the tests of its plugins."""

from __future__ import annotations

from steersman.api.admission.priority import SYSTEM_CLASSES
from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.kernel.effect import Request
from steersman.kernel.object import Key
from tests.api.cluster import Cluster


def admitted(*, account=True, chain=None):
    """Namespace shop with its default account and the system's PriorityClasses, behind the standard chain."""
    made = Cluster()
    made.create("v1/Namespace", "shop")
    if account:
        made.create("v1/ServiceAccount", "default")
    for name, body in SYSTEM_CLASSES.items():
        key = Key("scheduling.k8s.io", "PriorityClass", "", name)
        made.send(Request("create", key, dict(body), actor="system:apiserver", manager="steersman"))
    made.api = Api(made.api.kinds, admission=standard() if chain is None else chain)
    return made


def generated(cluster, kind, base, **parts):
    """A create whose name is drawn."""
    body = cluster.body(kind, "", parts)
    body["metadata"] = {**body["metadata"], "generateName": base}
    del body["metadata"]["name"]
    return cluster.request("create", kind, "", body)
