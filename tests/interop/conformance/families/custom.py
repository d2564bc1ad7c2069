"""CustomResourceDefinitions and their objects: schemas, pruning, defaults, rules, columns, subresources, versions."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.sequence import (
    JSON_PATCH,
    PARTIAL,
    STRATEGIC,
    TABLE,
    Case,
    apply,
    close,
    delete,
    edit,
    get,
    patch,
    post,
    put,
    watch,
)

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"},
                "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {"port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"}},
                    },
                },
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "either": {"x-kubernetes-int-or-string": True},
                "none": {"type": "string", "nullable": True},
                "replicas": {"type": "integer"},
                "low": {"type": "integer"},
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.low) || self.low <= self.size", "message": "low must not exceed size"}
            ],
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "phase": {"type": "string"},
            },
        },
    },
}


def crd(group: str, **version: Any) -> dict[str, Any]:
    """A definition of Wheels in a group of the sequence's own."""
    made = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, **version}
    names = {"plural": "wheels", "singular": "wheel", "kind": "Wheel", "shortNames": ["wh"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"wheels.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [made]},
    }


objects, errors_, parts, plain = (f"{name}.example.com" for name in ("objects", "errors", "parts", "plain"))


def wheel(group: str, name: str = "w", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Wheel", "metadata": {"name": name}, "spec": spec}


def path(group: str) -> str:
    return f"/apis/{group}/v1/namespaces/$(ns)/wheels"


one = path(objects)
values = [
    {}, {"size": 0}, {"size": 10}, {"size": "5"}, {"size": 1.5}, {"size": 5, "color": "blue"},
    {"size": 5, "name": "A"}, {"size": 5, "name": "abcdefgh"}, {"size": 5, "tags": ["a", "a"]},
    {"size": 5, "tags": ["a", "b", "c", "d"]}, {"size": 5, "ports": [{"port": 1}, {"port": 1}]},
    {"size": 5, "ports": [{}]}, {"size": 5, "unknown": {"a": 1}}, {"size": 5, "any": {"a": {"b": 1}}},
    {"size": 5, "either": "x"}, {"size": 5, "either": 5}, {"size": 5, "either": 5.5}, {"size": 5, "none": None},
    {"size": 5, "color": None}, {"size": 5, "name": None}, {"size": 3, "low": 4}, {"size": 5, "ports": [{"port": 1}]},
]  # fmt: skip
columns = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
         "labelSelectorPath": ".status.selector"}  # fmt: skip
bad: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {}}}, {"properties": {"a": {"type": "string"}}}, {"type": "nothing"},
    {"type": "array"}, {"type": "object", "properties": {"a": {"type": "array"}}},
    {"type": "object", "properties": {"a": {"type": "string", "default": 5}}},
    {"type": "object", "properties": {"metadata": {"type": "string"}}},
    {"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {"type": "string"}}},
    {"type": "object", "x-kubernetes-validations": [{"rule": "self.nothing"}]},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "["}}},
    {"type": "object", "properties": {"a": {"$ref": "#/x"}}}, {"type": "object", "uniqueItems": True},
]  # fmt: skip
CASES: Final = [
    Case(
        "custom/definitions",
        [
            post(CRDS, crd(plain), save="c"),
            {"pause": 2.5},
            get(f"{CRDS}/wheels.{plain}", save="d"),
            get(f"{CRDS}/wheels.{plain}", accept=TABLE),
            get(f"/apis/{plain}"),
            get(f"/apis/{plain}/v1"),
            post(CRDS, crd(plain)),
            patch(f"{CRDS}/wheels.{plain}", {"spec": {"scope": "Cluster"}}),
            patch(f"{CRDS}/wheels.{plain}", {"spec": {"group": "other.example.com"}}),
            patch(f"{CRDS}/wheels.{plain}", {"spec": {"names": {"shortNames": ["whl"]}}}),
            put(f"{CRDS}/wheels.{plain}", edit("c")),
            post(path(plain), wheel(plain, size=5)),
            delete(f"{CRDS}/wheels.{plain}"),
            {"pause": 1.5},
            get(path(plain)),
            get(f"/apis/{plain}/v1"),
        ],
    ),
    Case(
        "custom/definition-errors",
        [
            post(CRDS, {**crd("e.example.com"), "metadata": {"name": "other"}}),
            *[post(f"{CRDS}?dryRun=All", crd("e.example.com", schema={"openAPIV3Schema": schema})) for schema in bad],
            post(f"{CRDS}?dryRun=All", crd("e.example.com", schema=None)),
            post(f"{CRDS}?dryRun=All", crd("e.example.com", storage=False)),
            post(f"{CRDS}?dryRun=All", crd("e.example.com", name="bad")),
            post(f"{CRDS}?dryRun=All", crd("e.example.com", subresources={"scale": {}})),
            post(f"{CRDS}?dryRun=All", crd("e.example.com", additionalPrinterColumns=[{"name": "x"}])),
            post(f"{CRDS}?dryRun=All", crd("x.k8s.io")),
            post(f"{CRDS}?dryRun=All", crd("nodots")),
        ],
    ),
    Case(
        "custom/objects",
        [
            post(CRDS, crd(objects, additionalPrinterColumns=columns, selectableFields=[{"jsonPath": ".spec.color"}])),
            {"pause": 2.5},
            get(one),  # the first one to ask makes the real server's cache
            {"pause": 1.5},
            watch("w", f"{one}?watch=true"),
            post(one, wheel(objects, size=5, color="green"), save="w"),
            get(f"{one}/w"),
            get(f"{one}/w", accept=TABLE),
            get(one),
            get(one, accept=TABLE),
            get(f"{one}/w", accept=PARTIAL),
            get(f"{one}?fieldSelector=spec.color=green"),
            get(f"{one}?fieldSelector=spec.color=red"),
            get(f"{one}?fieldSelector=spec.size=5"),
            put(f"{one}/w", edit("w", **{"spec.size": 6})),
            put(f"{one}/w", edit("w", **{"spec.size": 7})),
            put(f"{one}/w", edit("w", ["metadata.resourceVersion"])),
            patch(f"{one}/w", {"spec": {"size": 7}}),
            patch(f"{one}/w", {"spec": {"size": 7}}, STRATEGIC),
            patch(f"{one}/w", [{"op": "replace", "path": "/spec/size", "value": 8}], JSON_PATCH),
            patch(f"{one}/w", {"spec": {"unknown": 1}}),
            patch(f"{one}/w?fieldValidation=Strict", {"spec": {"unknown": 1}}),
            patch(f"{one}/w", {"metadata": {"labels": {"a": "b"}}}),
            patch(f"{one}/w", {"status": {"phase": "x"}}),
            post(f"{one}?fieldValidation=Strict", {**wheel(objects, "x", size=5), "extra": 1}),
            post(f"{one}?fieldValidation=Warn", {**wheel(objects, "x", size=5), "extra": 1}),
            post(one, {**wheel(objects, "y", size=5), "kind": "Other"}),
            post(one, wheel(objects, "Y", size=5)),
            get(f"{one}/none"),
            get(f"{one}/w/status"),
            get(f"{one}/w/scale"),
            delete(f"{one}/w?propagationPolicy=Foreground"),
            get(f"{one}/w"),
            patch(f"{one}/w", {"metadata": {"finalizers": []}}),
            get(f"{one}/w"),
            delete(f"{one}/x"),
            delete(one),
            close("w"),
        ],
    ),
    Case(
        "custom/validation",
        [
            post(CRDS, crd(errors_)),
            {"pause": 2.5},
            *[post(f"{path(errors_)}?dryRun=All", wheel(errors_, **spec)) for spec in values],
            post(f"{path(errors_)}?dryRun=All", {**wheel(errors_), "spec": "text"}),
            post(
                f"{path(errors_)}?dryRun=All",
                {"apiVersion": f"{errors_}/v1", "kind": "Wheel", "metadata": {"name": "w"}},
            ),
        ],
    ),
    Case(
        "custom/apply",
        [
            post(CRDS, crd("apply.example.com")),
            {"pause": 2.5},
            apply(
                f"{path('apply.example.com')}/w",
                wheel("apply.example.com", size=5, tags=["a"], ports=[{"port": 1}]),
            ),
            apply(
                f"{path('apply.example.com')}/w",
                wheel("apply.example.com", size=5, tags=["b"], ports=[{"port": 2}]),
                "two",
            ),
            apply(f"{path('apply.example.com')}/w", wheel("apply.example.com", size=6), "two"),
            apply(f"{path('apply.example.com')}/w", wheel("apply.example.com", size=6), "two", force=True),
            apply(f"{path('apply.example.com')}/w", wheel("apply.example.com", tags=["a"])),
            apply(
                f"{path('apply.example.com')}/w",
                {
                    "apiVersion": "apply.example.com/v1",
                    "kind": "Wheel",
                    "metadata": {"name": "w"},
                    "spec": {"unknown": 1},
                },
            ),
            get(f"{path('apply.example.com')}/w"),
        ],
    ),
    Case(
        "custom/parts",
        [
            post(CRDS, crd(parts, subresources={"status": {}, "scale": scale})),
            {"pause": 2.5},
            post(path(parts), {**wheel(parts, size=5, replicas=2), "status": {"phase": "new"}}, save="w"),
            get(f"{path(parts)}/w/scale", save="s"),
            put(f"{path(parts)}/w/scale", edit("s", **{"spec.replicas": 3})),
            patch(f"{path(parts)}/w/scale", {"spec": {"replicas": 4}}),
            get(f"{path(parts)}/w"),
            patch(
                f"{path(parts)}/w/status",
                {"status": {"phase": "a", "replicas": 3, "selector": "a=b"}, "spec": {"size": 9}},
            ),
            get(f"{path(parts)}/w/scale"),
            patch(f"{path(parts)}/w", {"status": {"phase": "b"}, "spec": {"size": 6}}),
            get(f"{path(parts)}/w/status"),
            put(f"{path(parts)}/w/status", edit("w", status={"phase": "c"})),
            patch(f"{path(parts)}/w/status", {"metadata": {"labels": {"x": "y"}}}),
            patch(f"{path(parts)}/w/status", {"status": {"phase": 5}}),
            get(f"{path(parts)}/w"),
        ],
    ),
    Case(
        "custom/versions",
        [
            post(
                CRDS,
                {
                    **crd("versions.example.com"),
                    "spec": {
                        **crd("versions.example.com")["spec"],
                        "versions": [
                            {
                                "name": "v1beta1",
                                "served": True,
                                "storage": False,
                                "deprecated": True,
                                "schema": {"openAPIV3Schema": SCHEMA},
                            },
                            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}},
                            {
                                "name": "v1alpha1",
                                "served": False,
                                "storage": False,
                                "schema": {"openAPIV3Schema": SCHEMA},
                            },
                        ],
                    },
                },
            ),
            {"pause": 2.5},
            post(path("versions.example.com"), wheel("versions.example.com", size=5)),
            get(f"{path('versions.example.com').replace('/v1/', '/v1beta1/')}/w"),
            get(f"{path('versions.example.com').replace('/v1/', '/v1alpha1/')}/w"),
            get("/apis/versions.example.com"),
            get("/apis/versions.example.com/v1beta1"),
            patch(f"{path('versions.example.com').replace('/v1/', '/v1beta1/')}/w", {"spec": {"size": 6}}),
            get(f"{path('versions.example.com')}/w"),
        ],
    ),
]
