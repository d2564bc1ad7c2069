"""Deletion: finalizers, preconditions, propagation, grace, collections, namespaces."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import sample
from tests.interop.conformance.sequence import JSON_PATCH, Case, close, delete, edit, get, patch, post, put, watch

CMS = "/api/v1/namespaces/$(ns)/configmaps"
PODS = "/api/v1/namespaces/$(ns)/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$(ns)/deployments"
JOBS = "/apis/batch/v1/namespaces/$(ns)/jobs"
NAMESPACES = "/api/v1/namespaces"


def options(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **more}


def cm(name: str, **meta: Any) -> dict[str, Any]:
    return sample("ConfigMap").make(name, **meta)


a = f"{CMS}/a"
pod = sample("Pod").make("p")
CASES: Final = [
    Case(
        "deletes/finalizers",
        [
            watch("w", f"{CMS}?watch=true"),
            post(CMS, cm("a", finalizers=["example.com/x"]), save="a"),
            delete(a),
            get(a),
            delete(a),
            patch(a, {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}),
            patch(a, {"metadata": {"labels": {"q": "1"}}}),
            patch(a, {"metadata": {"deletionTimestamp": None}}),
            put(a, edit("a", ["metadata.resourceVersion"])),
            post(CMS, cm("a")),
            patch(a, [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH),
            get(a),
            post(CMS, cm("a")),
            close("w"),
        ],
    ),
    Case(
        "deletes/preconditions",
        [
            post(CMS, cm("a"), save="a"),
            delete(a, options(preconditions={"uid": "wrong"})),
            delete(a, options(preconditions={"resourceVersion": "1"})),
            delete(a, options(preconditions={"uid": "$(a.metadata.uid)", "resourceVersion": "1"})),
            delete(a, options(preconditions={})),
            post(CMS, cm("a"), save="b"),
            delete(a, options(preconditions={"uid": "$(a.metadata.uid)"})),
            delete(
                a,
                options(preconditions={"uid": "$(b.metadata.uid)", "resourceVersion": "$(b.metadata.resourceVersion)"}),
            ),
        ],
    ),
    *[
        Case(
            f"deletes/propagation-{slug}",
            [
                post(collection, body, save="o"),
                delete(f"{collection}/{body['metadata']['name']}{query}", given),
                get(f"{collection}/{body['metadata']['name']}"),
                patch(f"{collection}/{body['metadata']['name']}", {"metadata": {"finalizers": None}}),
                get(f"{collection}/{body['metadata']['name']}"),
            ],
        )
        for slug, collection, body, query, given in (
            ("foreground", CMS, cm("a"), "?propagationPolicy=Foreground", None),
            ("orphan", CMS, cm("a"), "?propagationPolicy=Orphan", None),
            ("background", CMS, cm("a"), "?propagationPolicy=Background", None),
            ("orphan-body", DEPLOYMENTS, sample("Deployment").make("d"), "", options(propagationPolicy="Orphan")),
            ("orphan-old", DEPLOYMENTS, sample("Deployment").make("d"), "", options(orphanDependents=True)),
            ("orphan-old-false", DEPLOYMENTS, sample("Deployment").make("d"), "", options(orphanDependents=False)),
            (
                "both",
                DEPLOYMENTS,
                sample("Deployment").make("d"),
                "",
                options(orphanDependents=True, propagationPolicy="Foreground"),
            ),
            ("job", JOBS, sample("Job").make("j"), "", None),
            ("job-foreground", JOBS, sample("Job").make("j"), "?propagationPolicy=Foreground", None),
            (
                "finalizer-and-foreground",
                CMS,
                cm("a", finalizers=["example.com/x"]),
                "?propagationPolicy=Foreground",
                None,
            ),
            ("has-foreground", CMS, cm("a", finalizers=["foregroundDeletion"]), "", None),
            (
                "has-foreground-background",
                CMS,
                cm("a", finalizers=["foregroundDeletion"]),
                "?propagationPolicy=Background",
                None,
            ),
            ("has-orphan", CMS, cm("a", finalizers=["orphan"]), "", None),
        )
    ],
    Case(
        "deletes/foreground-then-more",
        [
            post(CMS, cm("a", finalizers=["example.com/x"])),
            delete(f"{a}?propagationPolicy=Background"),
            delete(f"{a}?propagationPolicy=Foreground"),
            get(a),
            delete(f"{a}?propagationPolicy=Orphan"),
            get(a),
        ],
    ),
    Case(
        "deletes/grace",
        [
            watch("w", f"{PODS}?watch=true"),
            post(PODS, pod),
            delete(f"{PODS}/p"),
            get(f"{PODS}/p"),
            post(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "n"}}),
            delete(f"{PODS}/p"),
            get(f"{PODS}/p"),
            delete(f"{PODS}/p", options(gracePeriodSeconds=40)),
            delete(f"{PODS}/p", options(gracePeriodSeconds=5)),
            get(f"{PODS}/p"),
            patch(f"{PODS}/p", {"metadata": {"deletionGracePeriodSeconds": 3}}),
            delete(f"{PODS}/p", options(gracePeriodSeconds=0)),
            get(f"{PODS}/p"),
            post(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "n", "terminationGracePeriodSeconds": 7}}),
            delete(f"{PODS}/p?gracePeriodSeconds=-1"),
            get(f"{PODS}/p"),
            delete(f"{PODS}/p?gracePeriodSeconds=1"),
            delete(f"{PODS}/p?gracePeriodSeconds=0"),
            post(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "n"}, "status": {"phase": "Succeeded"}}),
            patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}),
            delete(f"{PODS}/p"),
            get(f"{PODS}/p"),
            close("w"),
        ],
    ),
    Case(
        "deletes/pod-finalizer",
        [
            post(PODS, sample("Pod").make("p", finalizers=["example.com/x"])),
            delete(f"{PODS}/p"),
            delete(f"{PODS}/p?gracePeriodSeconds=0"),
            get(f"{PODS}/p"),
            patch(f"{PODS}/p", {"metadata": {"finalizers": None}}),
            get(f"{PODS}/p"),
        ],
    ),
    Case(
        "deletes/collection",
        [
            post(CMS, cm("a", labels={"x": "1"})),
            post(CMS, cm("b", labels={"x": "2"})),
            post(CMS, cm("c", labels={"x": "1"}, finalizers=["example.com/x"])),
            watch("w", f"{CMS}?watch=true"),
            delete(f"{CMS}?labelSelector=x%3D1&dryRun=All"),
            delete(f"{CMS}?labelSelector=x%3D1"),
            get(CMS),
            delete(f"{CMS}?fieldSelector=metadata.name%3Db"),
            delete(f"{CMS}?limit=1"),
            get(CMS),
            delete(CMS, options(preconditions={"uid": "x"})),
            delete(CMS, options(gracePeriodSeconds=0)),
            delete(CMS),
            close("w"),
        ],
    ),
    Case(
        "deletes/dry-run",
        [
            post(CMS, cm("a")),
            delete(f"{a}?dryRun=All"),
            delete(a, options(dryRun=["All"])),
            get(a),
            delete(a, options(dryRun=["Some"])),
            delete(a, options(dryRun=["All", "All"])),
            delete(a),
            get(a),
        ],
    ),
    Case(
        "deletes/namespace",
        [
            post(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "$(ns)-x"}}, save="n"),
            post(f"{NAMESPACES}/$(ns)-x/configmaps", cm("a")),
            delete(f"{NAMESPACES}/$(ns)-x"),
            get(f"{NAMESPACES}/$(ns)-x", save="m"),
            post(f"{NAMESPACES}/$(ns)-x/configmaps", cm("b")),
            patch(f"{NAMESPACES}/$(ns)-x/configmaps/a", {"data": {"x": "1"}}),
            delete(f"{NAMESPACES}/$(ns)-x"),
            put(f"{NAMESPACES}/$(ns)-x/finalize", edit("m", **{"spec.finalizers": ["example.com/f"]}), save="o"),
            put(f"{NAMESPACES}/$(ns)-x/finalize", edit("o", **{"spec.finalizers": []})),
            get(f"{NAMESPACES}/$(ns)-x"),
            delete(f"{NAMESPACES}/default"),
            delete(f"{NAMESPACES}/kube-system"),
            delete(f"{NAMESPACES}/none"),
        ],
    ),
    Case(
        "deletes/namespace-finalizers",
        [
            post(
                NAMESPACES,
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": "$(ns)-x", "finalizers": ["example.com/x"]},
                    "spec": {"finalizers": ["example.com/y"]},
                },
            ),
            delete(f"{NAMESPACES}/$(ns)-x"),
            get(f"{NAMESPACES}/$(ns)-x", save="m"),
            put(f"{NAMESPACES}/$(ns)-x/finalize", edit("m", **{"spec.finalizers": []})),
            patch(f"{NAMESPACES}/$(ns)-x", {"metadata": {"finalizers": None}}),
            get(f"{NAMESPACES}/$(ns)-x"),
        ],
    ),
]
