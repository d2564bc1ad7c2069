"""The certificate of the cluster's authority, as a ConfigMap in every namespace.

Source of the facts: Kubernetes 1.36, pkg/controller/certificates/rootcacertpublisher. The certificate is read where the
server publishes it when it starts: ConfigMap extension-apiserver-authentication, of kube-system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from steersman.api.client import Client
from steersman.api.controller import Controller, Find
from steersman.api.errors import AlreadyExists, Forbidden, NotFound
from steersman.kernel.effect import Event
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

NAME: Final = "kube-root-ca.crt"
SOURCE: Final = Key("", "ConfigMap", "kube-system", "extension-apiserver-authentication")
SOURCE_FIELD: Final = "client-ca-file"
DESCRIPTION: Final = "kubernetes.io/description"
TEXT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
"""What kube-controller-manager writes there, word for word: clients compare objects."""


def authority_of(c: Client) -> str:
    """The certificate as PEM; "" while nobody published it."""
    source = c.get(SOURCE)
    pem: str = "" if source is None else (source.get("data") or EMPTY).get(SOURCE_FIELD) or ""
    return pem


class RootCA(Controller):
    """Publishes the certificate, and puts back what is changed or deleted."""

    name = "root-ca-certificate-publisher-controller"
    kind = "v1/Namespace"
    reads = ("v1/ConfigMap",)
    watches: ClassVar[Mapping[str, Callable[[Any], Iterable[Key]]]] = {"v1/ConfigMap": lambda config: ()}

    def map_event(self, event: Event, find: Find) -> Iterable[Key]:
        """A namespace; the ConfigMap in it; and its source, which is a key of its own."""
        if event.key.kind == "Namespace" or event.key == SOURCE:
            return (event.key,)
        return (Key("", "Namespace", "", event.key.namespace),) if event.key.name == NAME else ()

    def reconcile(self, c: Client, key: Key) -> float | None:
        pem = authority_of(c)
        names = [key.name]
        if key == SOURCE:
            names = [namespace["metadata"]["name"] for namespace in c.list("v1/Namespace")]
        for name in names if pem else ():
            _publish(c, name, pem)
        return None


def _publish(c: Client, name: str, pem: str) -> None:
    namespace = c.get(Key("", "Namespace", "", name))
    if namespace is None or "deletionTimestamp" in namespace["metadata"]:
        return
    key = Key("", "ConfigMap", name, NAME)
    found = c.get(key)
    data = {"ca.crt": pem}
    try:
        if found is None:
            meta = {"name": NAME, "namespace": name, "annotations": {DESCRIPTION: TEXT}}
            c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
            return
        notes = found["metadata"].get("annotations") or EMPTY
        if found.get("data") != data or notes.get(DESCRIPTION) != TEXT:
            meta = {**found["metadata"], "annotations": {**notes, DESCRIPTION: TEXT}}
            c.update({**found, "metadata": meta, "data": data})
    except (AlreadyExists, Forbidden, NotFound):  # it came or went, or the namespace goes: an event tells
        return
