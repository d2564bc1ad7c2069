"""A face in ten lines: a store and a request machine whose Calls are answered by counting."""

from __future__ import annotations

import orjson
import pytest

from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.kernel.effect import MICRO, Call, Commit, Request, reply_of
from steersman.kernel.object import Key
from steersman.kernel.store import Store, StoreConfig
from steersman.kernel.value import thaw

START = 1_780_000_000
NOW_TEXT = "2026-05-28T20:26:40Z"


class Cluster:
    """Requests by short words: `create("v1/Pod", "web", spec={...})`. Every verb returns the outcome as a Reply."""

    def __init__(self, *custom, config=None):
        kinds = Kinds.builtin()
        for document in custom:
            kinds = kinds.with_custom(Kinds.custom_from_yaml_dict(document, "test"))
        self.api = Api(kinds)
        self.store = Store(config or StoreConfig())
        self.now = START
        self.drawn = 0
        self.suffixes = []
        """Answers to questions for a name's suffix; made up when empty."""
        self.asked = []

    def key(self, kind, name, namespace="shop"):
        found = self.api.kinds.find(kind)
        return Key(found.group, found.kind, namespace if found.namespaced else "", name)

    def send(self, request):
        """Carries a request out, as a face does."""
        outcome = self.api.begin(self.store, request)
        while isinstance(outcome, Call):
            self.asked.append(outcome.question[0])
            self.drawn += 1
            answer = f"uid-{self.drawn}"
            if outcome.question[0] == "name":
                answer = self.suffixes.pop(0) if self.suffixes else f"{self.drawn:05d}"
            outcome = outcome.resume(answer)
        if isinstance(outcome, Commit):
            event = self.store.commit(outcome)
            assert event is not None
            return reply_of(outcome, event)
        return outcome

    def request(self, verb, kind, name, body=None, sub="", manager="test", namespace="shop", **options):
        key = self.key(kind, name, namespace)
        return self.send(Request(verb, key, body, sub, "someone", manager, self.now * MICRO, options))

    def body(self, kind, name, parts, namespace="shop"):
        found = self.api.kinds.find(kind)
        meta = {"name": name, **parts.pop("metadata", {})}
        return {"apiVersion": found.api_version, "kind": found.kind, "metadata": meta, **parts}

    def create(self, kind, name, *, namespace="shop", manager="test", options=None, **parts):
        body = self.body(kind, name, parts)
        return self.request("create", kind, name, body, manager=manager, namespace=namespace, **(options or {}))

    def apply(self, kind, name, *, manager="applier", sub="", force=False, options=None, **parts):
        body = self.body(kind, name, parts)
        return self.request("apply", kind, name, body, sub, manager, force=force, **(options or {}))

    def update(self, kind, name, *, manager="test", sub="", options=None, **parts):
        body = self.body(kind, name, parts)
        return self.request("update", kind, name, body, sub, manager, **(options or {}))

    def merge(self, kind, name, body, *, manager="test", sub="", **options):
        return self.request("patch", kind, name, body, sub, manager, patch="merge", **options)

    def json_patch(self, kind, name, body, *, manager="test", sub="", **options):
        return self.request("patch", kind, name, body, sub, manager, patch="json", **options)

    def delete(self, kind, name, *, namespace="shop", **options):
        return self.request("delete", kind, name, namespace=namespace, **options)

    def get(self, kind, name, namespace="shop"):
        """The object as a client would see it, without managedFields; a private copy."""
        return thaw(self.request("get", kind, name, namespace=namespace).obj.value)

    def read(self, kind, name):
        """The object itself."""
        return self.store.get(self.key(kind, name))

    def list(self, kind, namespace="shop", **options):
        return self.request("list", kind, "", namespace=namespace, **options)

    def managed(self, kind, name):
        """managedFields as they are rendered: (manager, operation, subresource) → FieldsV1."""
        meta = orjson.loads(self.read(kind, name).to_json())["metadata"]
        entries = meta.get("managedFields", [])
        return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}

    def times(self, kind, name):
        """(manager, operation) → time of the entry."""
        return {(entry.name, entry.operation): entry.time for entry in self.read(kind, name).managers}


def pod(**spec):
    """The smallest pod spec."""
    return {"containers": [{"name": "app", "image": "app:1"}], **spec}


def deployment(replicas=None, **container):
    """The smallest deployment spec."""
    labels = {"app": "web"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "app:1", **container}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return spec


def crd(schema, *, kind="Widget", status=True, scope="Namespaced"):
    """A CustomResourceDefinition of example.com/v1 with this schema."""
    plural = kind.lower() + "s"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural},
            "scope": scope,
            "versions": [version],
        },
    }


def refused(call, *args, **kwargs):
    """The error with which a request is refused."""
    with pytest.raises(ApiError) as caught:
        call(*args, **kwargs)
    return caught.value
