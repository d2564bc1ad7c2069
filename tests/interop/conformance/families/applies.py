"""Server-side apply: who owns what, conflicts, removal, and the ways from and to other writes."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import LABELS, POD, sample
from tests.interop.conformance.sequence import APPLY, Case, apply, delete, edit, get, patch, post, put, step

CMS = "/api/v1/namespaces/$(ns)/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$(ns)/deployments"
SERVICES = "/api/v1/namespaces/$(ns)/services"
PODS = "/api/v1/namespaces/$(ns)/pods"


def cm(name: str = "a", **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(containers: list[Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": dict(spec)}
    if containers is not None:
        made["spec"]["selector"] = {"matchLabels": LABELS}
        made["spec"]["template"] = {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}
    return made


one, d = f"{CMS}/a", f"{DEPLOYMENTS}/d"
c = {"name": "c", "image": "i:1"}
CASES: Final = [
    Case(
        "applies/conflicts",
        [
            apply(one, cm(a="1", b="1")),
            apply(one, cm(a="2"), "two"),
            apply(one, cm(a="2", b="2"), "two"),
            apply(one, cm(a="1"), "two"),
            apply(one, cm(a="2"), "two", force=True),
            apply(one, cm(a="1", b="1")),
            apply(one, cm(b="1")),
            get(one),
            apply(one, cm(), "two"),
            get(one),
            apply(one, cm()),
            get(one),
        ],
    ),
    Case(
        "applies/shared",
        [
            apply(one, cm(a="1")),
            apply(one, cm(a="1"), "two"),
            apply(one, cm(a="3")),
            apply(one, cm()),
            get(one),
            apply(one, cm(), "two"),
            get(one),
            put(f"{one}?fieldManager=three", cm(z="1")),
            get(one),
            apply(one, cm(z="2")),
            patch(f"{one}?fieldManager=four", {"data": {"z": "9"}}),
            apply(one, cm(z="2")),
        ],
    ),
    Case(
        "applies/update-then-apply",
        [
            post(f"{CMS}?fieldManager=u", cm(a="1")),
            apply(one, cm(a="1"), "u"),
            apply(one, cm(a="2"), "u"),
            apply(one, cm(a="2"), "u", force=True),
            get(one),
            apply(one, cm(), "u"),
            get(one),
        ],
    ),
    Case(
        "applies/create-preconditions",
        [
            apply(one, {**cm(), "metadata": {"name": "a", "uid": "00000000-0000-4000-8000-000000000000"}}),
            apply(one, {**cm(), "metadata": {"name": "a", "resourceVersion": "5"}}),
            apply(one, {**cm(), "metadata": {}}),
            apply(one, {**cm(), "metadata": {"name": "b"}}),
            apply(one, {**cm(), "metadata": {"name": "a", "managedFields": [{}]}}),
            apply(one, {**cm(), "metadata": {"name": "a", "managedFields": []}}),
            apply(one, {**cm(), "metadata": {"name": "a", "namespace": "elsewhere"}}),
            apply(one, {**cm(), "kind": "Secret"}),
            apply(one, {**cm(), "apiVersion": "v2"}),
            apply(one, {"metadata": {"name": "a"}}),
            apply(one, {**cm(), "data": {"a": 5}}),
            apply(one, {**cm(), "data": {"a": None}}),
            apply(one, {**cm(), "other": 1}),
            apply(f"{one}?fieldValidation=Ignore", {**cm(), "other": 1}),
            apply(f"{one}?fieldValidation=Warn", {**cm(), "other": 1}),
            apply(f"{one}?dryRun=All", cm(q="1")),
            get(one),
            patch(one, cm(), APPLY),
            step("PATCH", f"{one}?fieldManager=y", raw="apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n", type=APPLY),
            step(
                "PATCH",
                f"{one}?fieldManager=y",
                raw="apiVersion: v1\nkind: ConfigMap\ndata: {a: b, a: c}\n",
                type=APPLY,
            ),
            step("PATCH", f"{one}?fieldManager=y", raw="a: [", type=APPLY),
            get(one, save="a"),
            apply(one, edit("a", ["metadata.managedFields"]), "all"),
            apply(one, edit("a"), "all"),
            get(one),
        ],
    ),
    Case(
        "applies/containers",
        [
            apply(d, deployment([c, {"name": "e", "image": "i:2"}], replicas=2)),
            apply(d, deployment([{"name": "f", "image": "i:3"}]), "two"),
            get(d),
            apply(d, deployment([c])),
            get(d),
            apply(d, deployment([{"name": "c", "image": "i:9"}]), "two"),
            apply(d, deployment([{"name": "c", "image": "i:9"}]), "two", force=True),
            get(d),
            apply(d, deployment([c, c])),
            apply(d, deployment([{"image": "i"}])),
            apply(d, deployment([{**c, "env": [{"name": "A", "value": "1"}]}]), force=True),
            apply(d, deployment([{**c, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}])),
            apply(d, deployment([{**c, "ports": [{"containerPort": 80}]}])),
            apply(d, deployment([{**c, "ports": [{"containerPort": 80, "protocol": "TCP"}]}]), "three", force=True),
            apply(d, deployment([{**c, "args": ["x"]}])),
            apply(d, deployment([{**c, "args": ["y"]}]), "two"),
            get(d),
            apply(d, deployment([{**c, "resources": {"requests": {"cpu": "1000m"}}}])),
            get(d),
            apply(d, deployment([{**c, "resources": {"requests": {"cpu": "1"}}}]), "two"),
            get(d),
        ],
    ),
    Case(
        "applies/scale",
        [
            apply(d, deployment([c], replicas=1)),
            patch(f"{d}/scale?fieldManager=hpa", {"spec": {"replicas": 3}}),
            get(d),
            apply(d, deployment([c], replicas=1)),
            apply(d, deployment([c])),
            get(d),
            apply(
                f"{d}/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "d"},
                    "spec": {"replicas": 4},
                },
                "scaler",
            ),
            apply(
                f"{d}/scale",
                {
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": "d"},
                    "spec": {"replicas": 4},
                },
                "scaler",
                force=True,
            ),
            get(d),
        ],
    ),
    Case(
        "applies/status",
        [
            apply(d, deployment([c], replicas=1)),
            apply(
                f"{d}/status",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "d"},
                    "status": {"replicas": 3},
                },
                "ctl",
            ),
            get(d),
            apply(
                f"{d}/status",
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 9}},
                "ctl",
            ),
            get(d),
            apply(
                f"{d}/status",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "d"},
                    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]},
                },
                "ctl",
            ),
            apply(
                f"{d}/status",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "d"},
                    "status": {"conditions": [{"type": "B", "status": "True"}]},
                },
                "two",
            ),
            get(d),
            apply(
                f"{DEPLOYMENTS}/none/status",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "none"},
                    "status": {"replicas": 3},
                },
            ),
        ],
    ),
    Case(
        "applies/metadata",
        [
            apply(one, {**cm(), "metadata": {"name": "a", "labels": {"x": "1"}, "finalizers": ["example.com/a"]}}),
            apply(one, {**cm(), "metadata": {"name": "a", "finalizers": ["example.com/b"]}}, "two"),
            get(one),
            apply(one, cm()),
            get(one),
            apply(
                one,
                {
                    **cm(),
                    "metadata": {
                        "name": "a",
                        "ownerReferences": [
                            {
                                "apiVersion": "v1",
                                "kind": "ConfigMap",
                                "name": "o",
                                "uid": "11111111-1111-4111-8111-111111111111",
                            },
                        ],
                    },
                },
            ),
            get(one),
            apply(
                one,
                {
                    **cm(),
                    "metadata": {
                        "name": "a",
                        "ownerReferences": [
                            {
                                "apiVersion": "v1",
                                "kind": "ConfigMap",
                                "name": "p",
                                "uid": "22222222-2222-4222-8222-222222222222",
                                "controller": True,
                            }
                        ],
                    },
                },
                "two",
            ),
            get(one),
            apply(one, cm(), "two"),
            get(one),
        ],
    ),
    Case(
        "applies/managed-fields-writes",
        [
            apply(one, cm(a="1")),
            get(one, save="a"),
            put(one, edit("a", ["metadata.managedFields"])),
            get(one),
            put(one, edit("a", ["metadata.resourceVersion"], **{"metadata.managedFields": []})),
            get(one),
            put(one, edit("a", ["metadata.resourceVersion"], **{"metadata.managedFields": [{}]})),
            get(one),
            apply(one, cm(a="1")),
            apply(one, cm(a="5"), "two"),
            put(
                one,
                edit(
                    "a",
                    ["metadata.resourceVersion"],
                    **{
                        "metadata.managedFields": [
                            {
                                "manager": "x",
                                "operation": "Apply",
                                "apiVersion": "v1",
                                "fieldsType": "FieldsV1",
                                "fieldsV1": {"f:data": {"f:a": {}}},
                                "time": "2020-01-01T00:00:00Z",
                            }
                        ]
                    },
                ),
            ),
            get(one),
            apply(one, cm(a="7"), "two"),
            put(
                one,
                edit(
                    "a",
                    ["metadata.resourceVersion"],
                    **{"metadata.managedFields": [{"manager": "x", "operation": "Nothing", "apiVersion": "v1"}]},
                ),
            ),
            put(
                one,
                edit(
                    "a",
                    ["metadata.resourceVersion"],
                    **{
                        "metadata.managedFields": [
                            {"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV9"}
                        ]
                    },
                ),
            ),
            get(one),
        ],
    ),
    Case(
        "applies/service-ports",
        [
            apply(
                f"{SERVICES}/s",
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "s"},
                    "spec": {"ports": [{"port": 80, "name": "a"}]},
                },
            ),
            apply(
                f"{SERVICES}/s",
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "s"},
                    "spec": {"ports": [{"port": 80, "protocol": "UDP", "name": "b"}]},
                },
                "two",
            ),
            get(f"{SERVICES}/s"),
            apply(f"{SERVICES}/s", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}),
            get(f"{SERVICES}/s"),
        ],
    ),
    Case(
        "applies/deleted",
        [
            apply(one, {**cm(a="1"), "metadata": {"name": "a", "finalizers": ["example.com/a"]}}),
            delete(one),
            apply(one, {**cm(a="2"), "metadata": {"name": "a", "finalizers": ["example.com/a"]}}),
            apply(one, {**cm(a="2"), "metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}}),
            apply(one, cm(a="2")),
            get(one),
            apply(one, cm(a="3")),
        ],
    ),
    Case(
        "applies/pod",
        [
            apply(f"{PODS}/p", {**sample("Pod").make("p"), "spec": POD}),
            apply(f"{PODS}/p", {**sample("Pod").make("p"), "spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
            apply(f"{PODS}/p", {**sample("Pod").make("p"), "spec": {"containers": [{"name": "d", "image": "i:2"}]}}),
            patch(
                f"{PODS}/p/status?fieldManager=kubelet",
                {"status": {"phase": "Running", "podIPs": [{"ip": "192.0.2.1"}], "podIP": "192.0.2.1"}},
            ),
            get(f"{PODS}/p"),
        ],
    ),
    Case(
        "applies/none-and-empty",
        [
            apply(one, {**cm(), "data": {}}),
            get(one),
            apply(one, {**cm(), "data": None}),
            get(one),
            apply(one, {**cm(), "metadata": {"name": "a", "labels": {}, "annotations": {"a": ""}}}),
            get(one),
            apply(d, deployment([c], strategy={"type": "Recreate"})),
            apply(d, deployment([c], strategy={})),
            get(d),
            apply(d, deployment([c], strategy=None)),
            get(d),
            apply(d, deployment([{**c, "volumeMounts": []}])),
            get(d),
        ],
    ),
]
