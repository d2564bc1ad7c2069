"""The four kinds of patch on objects with lists of every sort."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import LABELS, sample
from tests.interop.conformance.sequence import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Case,
    apply,
    edit,
    get,
    patch,
    post,
    put,
)

DEPLOYMENTS = "/apis/apps/v1/namespaces/$(ns)/deployments"
PODS = "/api/v1/namespaces/$(ns)/pods"
SERVICES = "/api/v1/namespaces/$(ns)/services"
CMS = "/api/v1/namespaces/$(ns)/configmaps"
ACCOUNTS = "/api/v1/namespaces/$(ns)/serviceaccounts"


def rich() -> dict[str, Any]:
    """A Deployment with every sort of list."""
    made = sample("Deployment").make("d", labels={"app": "a"}, finalizers=["example.com/a", "example.com/b"])
    made["spec"]["template"] = {
        "metadata": {"labels": LABELS},
        "spec": {
            "containers": [
                {
                    "name": "one",
                    "image": "i:1",
                    "args": ["a", "b"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "ports": [{"containerPort": 80}, {"containerPort": 443, "name": "tls"}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                },
                {"name": "two", "image": "i:2"},
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "imagePullSecrets": [{"name": "s"}],
            "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["h"]}],
        },
    }
    made["spec"] = dict(made["spec"])
    return made


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


one = f"{DEPLOYMENTS}/d"
container = {"name": "one"}
strategic = [
    template(containers=[{"name": "two", "image": "i:3"}]),
    template(containers=[{"name": "three", "image": "i:3"}]),
    template(containers=[{"name": "two", "$patch": "delete"}]),
    template(containers=[{"image": "unnamed"}]),
    template(containers=[{**container, "env": [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}]}]),
    template(containers=[{**container, "env": [{"name": "A", "$patch": "delete"}]}]),
    template(containers=[{**container, "env": [{"$patch": "replace"}, {"name": "Z", "value": "1"}]}]),
    template(containers=[{**container, "args": ["c"]}]),
    template(containers=[{**container, "ports": [{"containerPort": 80, "name": "web"}]}]),
    template(containers=[{**container, "ports": [{"containerPort": 80, "protocol": "UDP"}]}]),
    template(**{"$setElementOrder/containers": [{"name": "three"}, {"name": "one"}]}),
    template(
        **{
            "$setElementOrder/containers": [{"name": "none"}, {"name": "one"}],
            "containers": [{"name": "one", "image": "i:5"}],
        }
    ),
    template(volumes=[{"name": "v", "emptyDir": None, "hostPath": {"path": "/x"}}]),
    template(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]),
    template(volumes=[{"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/x"}}]),
    template(volumes=[{"$patch": "replace"}]),
    template(tolerations=[{"key": "z", "operator": "Exists"}]),
    template(imagePullSecrets=[{"name": "t"}]),
    template(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["i"]}]),
    {"metadata": {"finalizers": ["example.com/c"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/none"]}},
    {"metadata": {"$setElementOrder/finalizers": ["example.com/c", "example.com/b"]}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    {"spec": {"strategy": {"type": "Recreate"}}},
    {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    {"metadata": {"labels": {"$patch": "replace", "only": "1"}}},
    {"metadata": {"labels": {"$patch": "delete"}}},
    {"metadata": {"labels": {"$patch": "nothing"}}},
    {"metadata": {"annotations": {"a": None, "b": "1"}}},
    template(containers=[{"$patch": "nothing", "name": "one"}]),
    template(containers={}),
    template(containers="x"),
    {"spec": None},
    {"spec": {"replicas": "x"}},
    {"spec": {"selector": {"matchLabels": {"b": "c"}}}},
    {"$patch": "delete"},
    {"$patch": "replace", "metadata": {"name": "d"}},
]
merge = [
    {"spec": {"replicas": 3}},
    {"spec": {"replicas": None}},
    {"spec": {"paused": True}},
    {"metadata": {"labels": {"app": None, "x": "y"}}},
    {"metadata": {"labels": None}},
    {"metadata": {"finalizers": ["example.com/z"]}},
    {"metadata": {"finalizers": None}},
    template(containers=[{"name": "only", "image": "i:9"}]),
    template(containers=[]),
    {"spec": {"template": None}},
    {"spec": {"unknown": 1}},
    {"spec": {"replicas": 1.5}},
    {"spec": {"replicas": 3000000000}},
    {"spec": {"replicas": "5"}},
    {"metadata": {"generation": 99}},
    {"metadata": {"creationTimestamp": None}},
    {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}},
    {"metadata": {"managedFields": []}},
    {"metadata": {"managedFields": [{}]}},
    {"metadata": {"namespace": "x"}},
    {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}},
    {"metadata": {"selfLink": "/x"}},
    {"status": {"replicas": 5}},
    {"metadata": {"generateName": "x-"}},
    {"metadata": {"resourceVersion": "0"}},
    {"metadata": {"resourceVersion": ""}},
]
json_patches: list[list[dict[str, Any]]] = [
    [{"op": "replace", "path": "/spec/replicas", "value": 3}],
    [{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "x", "image": "x"}}],
    [{"op": "remove", "path": "/spec/template/spec/containers/2"}],
    [{"op": "remove", "path": "/spec/template/spec/containers/9"}],
    [{"op": "add", "path": "/spec/template/spec/containers/9", "value": {"name": "x", "image": "x"}}],
    [{"op": "add", "path": "/spec/template/spec/containers/-1", "value": {"name": "y", "image": "x"}}],
    [{"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"}],
    [{"op": "copy", "from": "/metadata/labels/moved", "path": "/metadata/labels/a~1b"}],
    [{"op": "test", "path": "/metadata/labels/a~1b", "value": "a"}, {"op": "remove", "path": "/metadata/labels"}],
    [{"op": "test", "path": "/spec/replicas", "value": 4}],
    [{"op": "test", "path": "/spec/none", "value": None}],
    [{"op": "add", "path": "", "value": {}}],
    [{"op": "replace", "path": "/spec/none/deeper", "value": 1}],
    [{"op": "add", "path": "/spec/none/deeper", "value": 1}],
    [{"op": "remove", "path": "/metadata/name"}],
    [{"op": "replace", "path": "/spec/replicas", "value": "x"}],
    [{"op": "replace", "path": "/spec/replicas"}],
    [{"path": "/spec/replicas", "value": 1}],
    [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}],
    [{"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/first"}],
    [],
]
CASES: Final = [
    Case("patches/strategic", [post(DEPLOYMENTS, rich()), *[patch(one, body, STRATEGIC) for body in strategic]]),
    Case(
        "patches/strategic-fresh",
        [post(DEPLOYMENTS, rich()), *[patch(f"{one}?dryRun=All", body, STRATEGIC) for body in strategic]],
    ),
    Case("patches/merge", [post(DEPLOYMENTS, rich()), *[patch(one, body, MERGE) for body in merge]]),
    Case(
        "patches/merge-strict",
        [
            post(DEPLOYMENTS, rich()),
            *[patch(f"{one}?dryRun=All&fieldValidation=Strict", body, MERGE) for body in merge],
        ],
    ),
    Case("patches/json", [post(DEPLOYMENTS, rich()), *[patch(one, body, JSON_PATCH) for body in json_patches]]),
    Case(
        "patches/kubectl-apply",
        [
            post(
                f"{DEPLOYMENTS}?fieldManager=kubectl-client-side-apply",
                {
                    **rich(),
                    "metadata": {
                        "name": "d",
                        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}\n"},
                    },
                },
            ),
            patch(
                f"{one}?fieldManager=kubectl-client-side-apply",
                {
                    "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"a":1}\n'}},
                    "spec": {
                        "replicas": 2,
                        "template": {
                            "spec": {
                                "$setElementOrder/containers": [{"name": "one"}],
                                "containers": [
                                    {"name": "one", "image": "i:7"},
                                    {"$patch": "delete", "name": "two"},
                                ],
                            }
                        },
                    },
                },
                STRATEGIC,
            ),
            apply(
                one,
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}},
                "kubectl",
            ),
            get(one),
        ],
    ),
    Case(
        "patches/service-ports",
        [
            post(
                SERVICES,
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": "s"},
                    "spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "x"}]},
                },
                save="s",
            ),
            patch(f"{SERVICES}/s", {"spec": {"ports": [{"port": 82, "name": "c"}]}}, STRATEGIC),
            patch(f"{SERVICES}/s", {"spec": {"ports": [{"port": 80, "name": "z"}]}}, STRATEGIC),
            patch(f"{SERVICES}/s", {"spec": {"ports": [{"port": 81, "$patch": "delete"}]}}, STRATEGIC),
            patch(f"{SERVICES}/s", {"spec": {"ports": [{"port": 82}]}}, MERGE),
            patch(f"{SERVICES}/s", {"spec": {"type": "NodePort"}}),
            get(f"{SERVICES}/s", save="t"),
            patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}}),
            get(f"{SERVICES}/s"),
            patch(f"{SERVICES}/s", {"spec": {"clusterIP": "None"}}),
            patch(f"{SERVICES}/s", {"spec": {"type": "ExternalName", "externalName": "h.example.com"}}),
            get(f"{SERVICES}/s"),
            put(f"{SERVICES}/s", edit("s")),
            put(f"{SERVICES}/s", edit("s", ["metadata.resourceVersion"])),
        ],
    ),
    Case(
        "patches/service-account",
        [
            post(
                ACCOUNTS,
                {
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": {"name": "a"},
                    "secrets": [{"name": "x"}],
                    "imagePullSecrets": [{"name": "i"}],
                },
            ),
            patch(f"{ACCOUNTS}/a", {"secrets": [{"name": "y"}]}, STRATEGIC),
            patch(f"{ACCOUNTS}/a", {"imagePullSecrets": [{"name": "j"}]}, STRATEGIC),
            patch(f"{ACCOUNTS}/a", {"secrets": [{"name": "z"}]}, MERGE),
            get(f"{ACCOUNTS}/a"),
        ],
    ),
    Case(
        "patches/no-change",
        [
            post(CMS, sample("ConfigMap").make("c"), save="c"),
            patch(f"{CMS}/c", {}),
            patch(f"{CMS}/c", {}, STRATEGIC),
            patch(f"{CMS}/c", [], JSON_PATCH),
            put(f"{CMS}/c", edit("c")),
            put(f"{CMS}/c?fieldManager=other", edit("c")),
            patch(f"{CMS}/c?fieldManager=p", {"data": {"k": "v"}}),
            put(f"{CMS}/c", edit("c", ["metadata.managedFields"])),
            put(f"{CMS}/c", edit("c", ["metadata.uid"])),
            put(f"{CMS}/c", edit("c", ["metadata.creationTimestamp"])),
            get(f"{CMS}/c"),
        ],
    ),
]
