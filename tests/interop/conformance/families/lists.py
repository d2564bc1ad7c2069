"""Lists and watches: selectors, pages, resourceVersions, bookmarks, what a selector makes of an event."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import sample
from tests.interop.conformance.sequence import (
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    Case,
    close,
    delete,
    edit,
    get,
    patch,
    post,
    put,
    watch,
)

CMS = "/api/v1/namespaces/$(ns)/configmaps"
PODS = "/api/v1/namespaces/$(ns)/pods"
EVENTS = "/api/v1/namespaces/$(ns)/events"
FRESH = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def cm(name: str, **labels: str) -> dict[str, Any]:
    return sample("ConfigMap").make(name, labels=labels)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    made = sample("Pod").make(name)
    return {**made, "spec": {**made["spec"], **spec}}


four = [
    post(CMS, cm("a", x="1")),
    post(CMS, cm("b", x="2", y="1"), save="b"),
    post(CMS, cm("c", x="3")),
    post(CMS, cm("d"), save="d"),
]
selectors = [
    "x",
    "!x",
    "x=1",
    "x==1",
    "x!=1",
    "x+in+(1,2)",
    "x+notin+(1,2)",
    "x,y",
    "x%3E1",
    "x%3C3",
    "x+in+()",
    "x+in+(1",
    "x=1,y=1",
    "",
    "x%3Ea",
    "kubernetes.io/x",
    "/x",
    "x=-",
    "x%3D1%2C%21y",
    "x+in+(1,2),y",
    "X=1",
    "x=1,",
    ",x=1",
    "x=,y=1",
    "x+exists",
    "x%3E1,x%3C3",
]
CASES: Final = [
    Case("lists/labels", [*four, *[get(f"{CMS}?labelSelector={s}") for s in selectors]]),
    Case(
        "lists/fields",
        [
            *four,
            *[
                get(f"{CMS}?fieldSelector={s}")
                for s in (
                    "metadata.name=a",
                    "metadata.name!=a",
                    "metadata.name=a,metadata.name=a",
                    "metadata.namespace=$(ns)",
                    "metadata.namespace=x",
                    "metadata.name=a,metadata.name=b",
                    "metadata.name==a",
                    "metadata.labels.x=1",
                    "metadata.name",
                    "=",
                    "metadata.name=",
                    "spec.x=1",
                    "metadata.name=a\\,b",
                )
            ],
            get(f"{CMS}/a?fieldSelector=metadata.name=b"),
        ],
    ),
    Case(
        "lists/pod-fields",
        [
            post(PODS, pod("a", nodeName="n1")),
            post(PODS, pod("b", restartPolicy="Never")),
            post(PODS, pod("c", schedulerName="s", hostNetwork=True)),
            patch(
                f"{PODS}/a/status",
                {
                    "status": {
                        "phase": "Running",
                        "podIP": "192.0.2.1",
                        "podIPs": [{"ip": "192.0.2.1"}],
                        "nominatedNodeName": "n",
                    }
                },
            ),
            *[
                get(f"{PODS}?fieldSelector={s}")
                for s in (
                    "spec.nodeName=n1",
                    "spec.nodeName=",
                    "spec.nodeName!=",
                    "status.phase=Running",
                    "status.phase!=Running",
                    "spec.restartPolicy=Never",
                    "spec.schedulerName=s",
                    "spec.serviceAccountName=",
                    "status.podIP=192.0.2.1",
                    "status.nominatedNodeName=n",
                    "spec.hostNetwork=true",
                    "spec.priority=0",
                    "status.podIPs=192.0.2.1",
                )
            ],
        ],
    ),
    Case(
        "lists/event-fields",
        [
            post(EVENTS, sample("Event").make("e1")),
            post(
                EVENTS,
                {
                    **sample("Event").make("e2"),
                    "type": "Warning",
                    "reason": "Bad",
                    "source": {"component": "x"},
                    "reportingComponent": "y",
                },
            ),
            *[
                get(f"{EVENTS}?fieldSelector={s}")
                for s in (
                    "type=Warning",
                    "reason=Made",
                    "involvedObject.kind=Pod",
                    "involvedObject.name=p",
                    "involvedObject.name=q",
                    "source=x",
                    "reportingComponent=y",
                    "reportingComponent=x",
                    "involvedObject.uid=",
                    "involvedObject.apiVersion=",
                    "involvedObject.fieldPath=",
                    "involvedObject.resourceVersion=",
                    "involvedObject.namespace=$(ns)",
                    "count=1",
                )
            ],
            get("/apis/events.k8s.io/v1/namespaces/$(ns)/events"),
            get("/apis/events.k8s.io/v1/namespaces/$(ns)/events/e1"),
            get("/apis/events.k8s.io/v1/namespaces/$(ns)/events?fieldSelector=regarding.name=p"),
            post(
                "/apis/events.k8s.io/v1/namespaces/$(ns)/events",
                {
                    "apiVersion": "events.k8s.io/v1",
                    "kind": "Event",
                    "metadata": {"name": "e3"},
                    "regarding": {"kind": "Pod", "name": "p", "namespace": "$(ns)"},
                    "reason": "R",
                    "note": "n",
                    "type": "Normal",
                    "action": "A",
                    "reportingController": "example.com/c",
                    "reportingInstance": "i",
                    "eventTime": "2020-01-01T00:00:00.000000Z",
                },
            ),
            get(f"{EVENTS}/e3"),
            get(f"{EVENTS}/e3", accept=TABLE),
        ],
    ),
    Case(
        "lists/other-fields",
        [
            *[
                get(path)
                for path in (
                    "/api/v1/secrets?fieldSelector=type=x",
                    "/api/v1/nodes?fieldSelector=spec.unschedulable=true",
                    "/api/v1/namespaces?fieldSelector=status.phase=None",
                    "/api/v1/namespaces?fieldSelector=metadata.name=x",
                    "/apis/apps/v1/replicasets?fieldSelector=status.replicas=99",
                    "/apis/batch/v1/jobs?fieldSelector=status.successful=9",
                    "/api/v1/replicationcontrollers?fieldSelector=status.replicas=99",
                    "/api/v1/services?fieldSelector=spec.type=ExternalName",
                    "/api/v1/services?fieldSelector=spec.clusterIP=None",
                    "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName=x",
                    "/apis/apps/v1/deployments?fieldSelector=status.replicas=9",
                    "/api/v1/persistentvolumeclaims?fieldSelector=status.phase=x",
                )
            ],
        ],
    ),
    Case(
        "lists/pages",
        [
            *four,
            get(f"{CMS}?limit=2", save="p"),
            get(f"{CMS}?limit=2&continue=$(p.metadata.continue)"),
            delete(f"{CMS}/d"),
            post(CMS, cm("bb")),
            get(f"{CMS}?limit=2&continue=$(p.metadata.continue)"),
            get(f"{CMS}?limit=1&continue=$(p.metadata.continue)", save="q"),
            get(f"{CMS}?limit=9&continue=$(q.metadata.continue)"),
            get(f"{CMS}?limit=100"),
            get(f"{CMS}?limit=4"),
            get(f"{CMS}?limit=2&labelSelector=x", save="r"),
            get(f"{CMS}?limit=2&labelSelector=x&continue=$(r.metadata.continue)"),
            get(f"{CMS}?limit=2&resourceVersion=1&continue=$(p.metadata.continue)"),
            get(f"{CMS}?limit=1&resourceVersion=0"),
            get(f"{CMS}?limit=0"),
            get(f"{CMS}?limit=2", accept=TABLE),
            get(f"{CMS}?limit=2", accept=PARTIAL_LIST),
        ],
    ),
    Case(
        "lists/versions",
        [
            *four,
            {"pause": 0.2},
            get(f"{CMS}?resourceVersion=0"),
            get(f"{CMS}?resourceVersion=$(d.metadata.resourceVersion)"),
            get(f"{CMS}?resourceVersion=$(b.metadata.resourceVersion)&resourceVersionMatch=Exact"),
            get(f"{CMS}?resourceVersion=$(b.metadata.resourceVersion)&resourceVersionMatch=NotOlderThan"),
            get(f"{CMS}?resourceVersion=$(b.metadata.resourceVersion)&resourceVersionMatch=Exact&limit=1"),
            get(f"{CMS}?resourceVersion=999999999"),
            get(f"{CMS}/a?resourceVersion=999999999"),
            get(f"{CMS}/a?resourceVersion=0"),
            get(f"{CMS}/a?resourceVersion=$(b.metadata.resourceVersion)"),
            get(f"{CMS}/a?resourceVersion=x"),
        ],
    ),
    Case(
        "lists/all-namespaces",
        [
            *four,
            get("/api/v1/configmaps?fieldSelector=metadata.namespace=$(ns)"),
            get("/api/v1/configmaps?fieldSelector=metadata.namespace=$(ns)", accept=TABLE),
            get("/api/v1/configmaps?fieldSelector=metadata.namespace=$(ns)&labelSelector=x"),
        ],
    ),
    Case(
        "watches/plain",
        [
            post(CMS, cm("before"), save="b"),
            watch("w", f"{CMS}?watch=1"),
            watch("v", f"{CMS}?watch=true&resourceVersion=$(b.metadata.resourceVersion)"),
            watch("z", f"{CMS}?watch=true&resourceVersion=0"),
            post(CMS, cm("a")),
            patch(f"{CMS}/a", {"data": {"k": "2"}}),
            patch(f"{CMS}/a", {"data": {"k": "2"}}),
            post(f"{CMS}?dryRun=All", cm("dry")),
            delete(f"{CMS}/a"),
            close("w"),
            close("v"),
            close("z"),
        ],
    ),
    Case(
        "watches/selectors",
        [
            watch("w", f"{CMS}?watch=true&labelSelector=x%3D1"),
            watch("f", f"{CMS}?watch=true&fieldSelector=metadata.name%3Da"),
            post(CMS, cm("a")),
            patch(f"{CMS}/a", {"metadata": {"labels": {"x": "1"}}}),
            patch(f"{CMS}/a", {"data": {"z": "1"}}),
            patch(f"{CMS}/a", {"metadata": {"labels": {"x": "2"}}}),
            patch(f"{CMS}/a", {"metadata": {"labels": {"x": "1"}}}),
            delete(f"{CMS}/a"),
            post(CMS, cm("b", x="1")),
            close("w"),
            close("f"),
        ],
    ),
    Case(
        "watches/one-name",
        [
            post(CMS, cm("a")),
            watch("w", f"{CMS}/a?watch=true"),
            patch(f"{CMS}/a", {"data": {"z": "1"}}),
            post(CMS, cm("b")),
            close("w"),
            watch("o", "/api/v1/watch/namespaces/$(ns)/configmaps"),
            close("o"),
            watch("p", "/api/v1/watch/namespaces/$(ns)/configmaps/a"),
            close("p"),
        ],
    ),
    Case(
        "watches/initial-events",
        [
            post(CMS, cm("a"), save="a"),
            post(CMS, cm("b", x="1")),
            watch("w", f"{CMS}?{FRESH}"),
            watch("s", f"{CMS}?{FRESH}&labelSelector=x"),
            watch(
                "n",
                f"{CMS}?{FRESH.replace('Events=true', 'Events=false')}&resourceVersion=$(a.metadata.resourceVersion)",
            ),
            watch("u", f"{CMS}?{FRESH.replace('allowWatchBookmarks=true&', '')}"),
            post(CMS, cm("c")),
            delete(f"{CMS}/a"),
            close("w"),
            close("s"),
            close("n"),
            close("u"),
            watch("t", f"{CMS}?{FRESH}", accept=TABLE),
            close("t"),
            watch("m", f"{CMS}?{FRESH}", accept=PARTIAL),
            close("m"),
        ],
    ),
    Case(
        "watches/forms",
        [
            watch("t", f"{CMS}?watch=true", accept=TABLE),
            watch("p", f"{CMS}?watch=true", accept=PARTIAL),
            watch("n", f"{CMS}?watch=true&includeObject=None", accept=TABLE),
            post(CMS, cm("a")),
            post(CMS, cm("b")),
            patch(f"{CMS}/a", {"data": {"z": "1"}}),
            delete(f"{CMS}/b"),
            close("t"),
            close("p"),
            close("n"),
        ],
    ),
    Case(
        "watches/pods",
        [
            watch("w", f"{PODS}?watch=true&fieldSelector=spec.nodeName%3Dn1"),
            watch("p", f"{PODS}?watch=true&fieldSelector=status.phase%21%3DRunning"),
            post(PODS, pod("a")),
            post(
                f"{PODS}/a/binding",
                {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": "a"},
                    "target": {"kind": "Node", "name": "n1"},
                },
            ),
            patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}),
            delete(f"{PODS}/a"),
            delete(f"{PODS}/a?gracePeriodSeconds=0"),
            close("w"),
            close("p"),
        ],
    ),
    Case(
        "watches/errors",
        [
            watch("a", f"{CMS}?watch=true&resourceVersion=999999999&timeoutSeconds=1"),
            close("a"),
            watch("c", f"{CMS}?watch=true&limit=1&timeoutSeconds=1"),
            close("c"),
            watch("d", f"{CMS}?watch=true&continue=x"),
            close("d"),
            watch("e", f"{CMS}?watch=true&labelSelector=a%20in"),
            close("e"),
            watch("f", "/api/v1/namespaces/none/configmaps?watch=true&timeoutSeconds=1"),
            close("f"),
            watch("g", f"{CMS}?watch=false"),
            watch("h", f"{CMS}?watch=0"),
        ],
    ),
    Case(
        "lists/put-and-list",
        [
            post(CMS, cm("a"), save="a"),
            put(f"{CMS}/a", edit("a", data={"x": "y"})),
            get(CMS),
            get(CMS, accept=TABLE),
            get(f"{CMS}?includeObject=Object", accept=TABLE),
        ],
    ),
]
