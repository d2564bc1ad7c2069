"""Writes: dry runs, strictness, generated names, field managers, metadata, what may not change."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.conformance.samples import LABELS, POD, sample
from tests.interop.conformance.sequence import JSON, Case, edit, get, patch, post, put, step

CMS = "/api/v1/namespaces/$(ns)/configmaps"
PODS = "/api/v1/namespaces/$(ns)/pods"
SECRETS = "/api/v1/namespaces/$(ns)/secrets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$(ns)/deployments"
SERVICES = "/api/v1/namespaces/$(ns)/services"
JOBS = "/apis/batch/v1/namespaces/$(ns)/jobs"


def cm(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**POD, **spec}}


def container(**more: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", **more}])


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], **spec}}


dry = f"{PODS}?dryRun=All"
probe = {"httpGet": {"path": "/x", "port": 80}}
pods = [
    container(), container(image=""), container(name="A"), container(name=""), container(ports=[{}]),
    container(ports=[{"containerPort": 99999}]), container(ports=[{"containerPort": 80, "protocol": "X"}]),
    container(ports=[{"containerPort": 80, "name": "toolongportname1"}]),
    container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
    container(ports=[{"containerPort": 80, "hostPort": 80}]), container(imagePullPolicy="X"),
    container(image="i:latest"), container(image="i@sha256:aa"), container(env=[{"name": ""}]),
    container(env=[{"name": "A=B"}]), container(env=[{"name": "A", "value": "1", "valueFrom": {}}]),
    container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.none"}}}]),
    container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "", "key": ""}}}]),
    container(envFrom=[{"configMapRef": {"name": "x"}}, {}]), container(livenessProbe=probe),
    container(livenessProbe={}), container(readinessProbe={**probe, "successThreshold": 0, "periodSeconds": -1}),
    container(startupProbe={"exec": {"command": []}}), container(livenessProbe={"tcpSocket": {"port": "x y"}}),
    container(livenessProbe={"grpc": {"port": 5}}), container(lifecycle={"preStop": {}}),
    container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    container(resources={"requests": {"cpu": "-1"}}), container(resources={"requests": {"cpu": "x"}}),
    container(resources={"requests": {"nothing": "1"}}), container(resources={"limits": {"cpu": "1"}}),
    container(resources={"requests": {"example.com/a": "1"}}), container(resources={"limits": {"memory": "1.5Gi"}}),
    container(resources={"requests": {"hugepages-2Mi": "2Mi"}}), container(volumeMounts=[{"name": "none"}]),
    container(volumeMounts=[{"name": "none", "mountPath": "/x"}]), container(securityContext={"privileged": True}),
    container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
    container(securityContext={"runAsUser": -1}), container(terminationMessagePolicy="X"),
    container(restartPolicy="Always"), container(workingDir="x", stdin=True, tty=True), pod(containers=[]),
    pod(containers=None), pod(containers=[*POD["containers"], *POD["containers"]]), pod(restartPolicy="X"),
    pod(dnsPolicy="X"), pod(dnsPolicy="None"), pod(nodeSelector={"a": "b"}), pod(nodeSelector={"a b": "c"}),
    pod(hostNetwork=True), pod(hostNetwork=True, hostUsers=False), pod(hostname="A_B"), pod(subdomain="x"),
    pod(activeDeadlineSeconds=0), pod(terminationGracePeriodSeconds=-5), pod(serviceAccountName="A"),
    pod(serviceAccount="old"), pod(schedulerName=""), pod(priority=5), pod(priorityClassName="none"),
    pod(priorityClassName="system-node-critical"), pod(preemptionPolicy="Never"), pod(runtimeClassName="none"),
    pod(tolerations=[{"operator": "X"}]), pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    pod(tolerations=[{"key": "a", "effect": "X"}]), pod(tolerations=[{"tolerationSeconds": 5}]),
    pod(affinity={}), pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
    pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "In"}]}]}}}),
    pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": LABELS}}]}}),
    pod(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 0, "podAffinityTerm": {"topologyKey": "a"}}]}}),
    pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}]),
    pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]),
    pod(volumes=[{"name": "v"}]), pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
    pod(volumes=[{"name": "v", "configMap": {"name": ""}}]), pod(volumes=[{"name": "v", "configMap": {"name": "x"}}]),
    pod(volumes=[{"name": "v", "secret": {"secretName": "x", "items": [{"key": "", "path": "../x"}]}}]),
    pod(volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]),
    pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
    pod(volumes=[{"name": "v", "hostPath": {"path": "a/../b", "type": "X"}}]),
    pod(volumes=[{"name": "v", "downwardAPI": {"items": [{"path": "a", "fieldRef": {
        "fieldPath": "metadata.labels"}}]}}]), pod(volumes=[{"name": "v", "nfs": {"server": "", "path": "x"}}]),
    pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]),
    pod(volumes=[{"name": "v", "csi": {"driver": ""}}]), pod(volumes=[{"name": "v", "image": {"reference": "i"}}]),
    pod(initContainers=[{"name": "c", "image": "i"}]),
    pod(initContainers=[{"name": "d", "image": "i", "restartPolicy": "Always"}]),
    pod(initContainers=[{"name": "d", "image": "i", "livenessProbe": probe}]),
    pod(ephemeralContainers=[{"name": "e", "image": "i"}]), pod(securityContext={"runAsUser": -1, "fsGroup": -1}),
    pod(securityContext={"sysctls": [{"name": "a", "value": "b"}]}), pod(securityContext={"seccompProfile": {}}),
    pod(os={"name": "windows"}), pod(os={"name": "x"}), pod(schedulingGates=[{"name": ""}]),
    pod(schedulingGates=[{"name": "example.com/x"}]), pod(readinessGates=[{"conditionType": "x y"}]),
    pod(hostAliases=[{"ip": "x"}]), pod(dnsConfig={"nameservers": ["x"], "searches": ["-"]}),
    pod(overhead={"cpu": "1"}), pod(enableServiceLinks=False), pod(shareProcessNamespace=True, hostPID=True),
    pod(setHostnameAsFQDN=True), pod(automountServiceAccountToken=False), pod(imagePullSecrets=[{"name": ""}]),
    pod(nodeName="A b"), pod(resourceClaims=[{"name": "r"}]), pod(resources={"requests": {"cpu": "1"}}),
]  # fmt: skip
services = [
    service(), service(type="X"), service(type="NodePort"), service(type="LoadBalancer"), service(type="ExternalName"),
    service(type="ExternalName", externalName="a.example.com", ports=[]), service(clusterIP="None"),
    service(clusterIP="x"), service(clusterIP="192.0.2.1"), service(clusterIP="10.96.0.77"), service(ports=[]),
    service(ports=[{"port": 80}, {"port": 81}]), service(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]),
    service(ports=[{"port": 0}]), service(ports=[{"port": 80, "targetPort": "x y"}]),
    service(ports=[{"port": 80, "nodePort": 31000}]), service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
    service(sessionAffinity="X"), service(sessionAffinity="ClientIP"), service(selector={"a b": "c"}),
    service(externalIPs=["x"]), service(ipFamilyPolicy="RequireDualStack"), service(ipFamilies=["IPv6"]),
    service(type="LoadBalancer", externalTrafficPolicy="Local"), service(externalTrafficPolicy="Local"),
    service(internalTrafficPolicy="Local"), service(loadBalancerClass="a"), service(publishNotReadyAddresses=True),
    service(trafficDistribution="PreferClose"), service(allocateLoadBalancerNodePorts=False),
    service(sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}, sessionAffinity="ClientIP"),
]  # fmt: skip
deployment = sample("Deployment").body["spec"]
specs = [
    {},
    {"replicas": -1},
    {"strategy": {"type": "X"}},
    {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
    {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
    {"minReadySeconds": -1},
    {"strategy": {"rollingUpdate": {"maxSurge": "x%"}}},
    {"progressDeadlineSeconds": 0, "minReadySeconds": 1},
    {"revisionHistoryLimit": -1},
    {"selector": {}},
    {"selector": None},
    {"selector": {"matchLabels": {"b": "c"}}},
    {"selector": {"matchExpressions": [{"key": "app", "operator": "X"}]}},
    {"template": {}},
    {"template": {"metadata": {"labels": LABELS}, "spec": {**POD, "restartPolicy": "Never"}}},
    {"template": {"metadata": {"labels": LABELS}, "spec": {**POD, "activeDeadlineSeconds": 5}}},
    {"strategy": {"rollingUpdate": {"maxSurge": "150%", "maxUnavailable": "150%"}}},
    {"paused": True},
]
job = sample("Job").body["spec"]
jobs = [
    {},
    {"completions": -1},
    {"parallelism": -1},
    {"backoffLimit": -1},
    {"completionMode": "X"},
    {"completionMode": "Indexed"},
    {"completionMode": "Indexed", "completions": 3},
    {"suspend": True},
    {"ttlSecondsAfterFinished": -1},
    {"activeDeadlineSeconds": -1},
    {"manualSelector": True},
    {"selector": {"matchLabels": {"a": "b"}}},
    {"backoffLimitPerIndex": 1},
    {"podReplacementPolicy": "X"},
    {"template": {"spec": POD}},
    {"template": {"spec": {**POD, "restartPolicy": "OnFailure"}}},
    {"podFailurePolicy": {"rules": [{"action": "X"}]}},
    {"successPolicy": {"rules": []}},
    {"managedBy": "x"},
    {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
]
CASES: Final = [
    Case("writes/pods", [post(dry, body) for body in pods]),
    Case("writes/services", [post(f"{SERVICES}?dryRun=All", body) for body in services]),
    Case(
        "writes/deployments",
        [
            post(
                f"{DEPLOYMENTS}?dryRun=All",
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "d"},
                    "spec": {**deployment, **spec},
                },
            )
            for spec in specs
        ],
    ),
    Case(
        "writes/jobs",
        [
            post(
                f"{JOBS}?dryRun=All",
                {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {**job, **spec}},
            )
            for spec in jobs
        ],
    ),
    Case(
        "writes/pod-updates",
        [
            post(PODS, pod(), save="p"),
            patch(f"{PODS}/p", {"spec": {"hostname": "x"}}),
            patch(f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
            patch(f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": ""}]}}),
            patch(f"{PODS}/p", {"spec": {"containers": [{"name": "d", "image": "i:2"}]}}),
            patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 50}}),
            patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 60}}),
            patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": None}}),
            patch(f"{PODS}/p", {"spec": {"tolerations": [{"operator": "Exists"}]}}),
            patch(f"{PODS}/p", {"spec": {"tolerations": []}}),
            patch(f"{PODS}/p", {"spec": {"nodeName": "n"}}),
            patch(f"{PODS}/p", {"spec": {"terminationGracePeriodSeconds": 1}}),
            patch(f"{PODS}/p", {"spec": {"priority": 3}}),
            put(f"{PODS}/p", edit("p")),
            put(f"{PODS}/p", edit("p", ["metadata.resourceVersion", "spec.containers"])),
            get(f"{PODS}/p"),
        ],
    ),
    Case(
        "writes/names",
        [
            *[
                post(CMS, cm(name))
                for name in (
                    "a",
                    "a.b",
                    "a-b",
                    "-a",
                    "a-",
                    "A",
                    "a_b",
                    "a..b",
                    "a" * 253,
                    "a" * 254,
                    ".",
                    "..",
                    "a/b",
                    "a%b",
                    "é",
                )
            ],
            *[
                post(f"{SERVICES}?dryRun=All", {**service(), "metadata": {"name": name}})
                for name in ("a.b", "1a", "a" * 63, "a" * 64)
            ],
            *[
                post(
                    "/api/v1/namespaces?dryRun=All",
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
                )
                for name in ("a.b", "a" * 64)
            ],
            *[
                post(
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/$(ns)/roles?dryRun=All",
                    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}},
                )
                for name in ("a:b", "A b", "a/b", "a%")
            ],
        ],
    ),
    Case(
        "writes/generated-names",
        [
            post(CMS, {**cm(), "metadata": {"generateName": "g-"}}),
            post(CMS, {**cm(), "metadata": {"generateName": ""}}),
            post(CMS, {**cm(), "metadata": {"generateName": "g-", "name": "named"}}),
            post(f"{CMS}?dryRun=All", {**cm(), "metadata": {"generateName": "dry-"}}),
            post(PODS, {**pod(), "metadata": {"generateName": "p-"}}),
        ],
    ),
    Case(
        "writes/field-managers",
        [
            post(f"{CMS}?fieldManager=one", cm(data={"a": "1"}), save="a"),
            put(f"{CMS}/a?fieldManager=two", edit("a", **{"data.b": "1"})),
            patch(f"{CMS}/a?fieldManager=three", {"data": {"a": "2"}}),
            patch(f"{CMS}/a?fieldManager=one", {"data": {"a": None}}),
            put(f"{CMS}/a?fieldManager=one", cm(data={"z": "1"})),
            get(f"{CMS}/a"),
            step("POST", CMS, cm("agent"), headers={"user-agent": "kubectl/v1.36.0 (linux/amd64) kubernetes/abc"}),
            step("POST", CMS, cm("noagent"), headers={"user-agent": ""}),
            step("POST", CMS, cm("long"), headers={"user-agent": "x" * 200}),
            step("POST", CMS, cm("odd"), headers={"user-agent": "a b/c"}),
        ],
    ),
    Case(
        "writes/strict",
        [
            *[
                post(f"{CMS}?dryRun=All&fieldValidation={mode}", cm(nothing=1, more={"a": 1}))
                for mode in ("Strict", "Warn", "Ignore", "")
            ],
            *[
                post(
                    f"{PODS}?dryRun=All&fieldValidation={mode}",
                    container(unknown=1, ports=[{"containerPort": 1, "x": 2}]),
                )
                for mode in ("Strict", "Warn", "Ignore")
            ],
            *[
                step(
                    "POST",
                    f"{CMS}?dryRun=All&fieldValidation={mode}",
                    type=JSON,
                    raw='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"},"x":1}',
                )
                for mode in ("Strict", "Warn", "Ignore")
            ],
            *[
                step(
                    "POST",
                    f"{CMS}?dryRun=All&fieldValidation={mode}",
                    type="application/yaml",
                    raw="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\ndata: {c: d}\n",
                )
                for mode in ("Strict", "Warn", "Ignore")
            ],
        ],
    ),
    Case(
        "writes/metadata",
        [
            *[
                post(f"{CMS}?dryRun=All", {**cm(), "metadata": {"name": "a", **meta}})
                for meta in (
                    {"uid": "x"},
                    {"resourceVersion": "1"},
                    {"generation": 7},
                    {"creationTimestamp": "2020-01-01T00:00:00Z"},
                    {"deletionTimestamp": "2020-01-01T00:00:00Z"},
                    {"selfLink": "/x"},
                    {"namespace": "$(ns)"},
                    {"labels": {"a": "b" * 64}},
                    {"labels": {"a": "-"}},
                    {"labels": {"a.b/c": "d"}},
                    {"labels": {"A" * 64: ""}},
                    {"annotations": {"a": "x" * 100}},
                    {"annotations": {"A/b": "c"}},
                    {"finalizers": ["plain"]},
                    {"finalizers": ["a/b"]},
                    {"finalizers": ["foregroundDeletion", "orphan"]},
                    {"finalizers": ["kubernetes"]},
                    {"managedFields": [{"manager": "x"}]},
                    {"unknown": 1},
                    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
                    {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]},
                    {
                        "ownerReferences": [
                            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True},
                            {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "v", "controller": True},
                        ]
                    },
                    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}] * 2},
                    {"labels": None, "annotations": None, "finalizers": None},
                    {"labels": {}, "annotations": {}},
                )
            ],
        ],
    ),
    Case(
        "writes/configmaps",
        [
            *[
                post(f"{CMS}?dryRun=All", cm(**body))
                for body in (
                    {"data": {"a b": "c"}},
                    {"data": {"..": "c"}},
                    {"data": {"a": "b"}, "binaryData": {"a": "Yg=="}},
                    {"binaryData": {"a": "!"}},
                    {"data": {"": "c"}},
                    {"immutable": True},
                    {"data": {"a": None}},
                )
            ],
            post(CMS, cm(immutable=True, data={"a": "1"})),
            patch(f"{CMS}/a", {"data": {"a": "2"}}),
            patch(f"{CMS}/a", {"immutable": False}),
            patch(f"{CMS}/a", {"metadata": {"labels": {"x": "y"}}}),
        ],
    ),
    Case(
        "writes/secrets",
        [
            *[
                post(
                    f"{SECRETS}?dryRun=All",
                    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **body},
                )
                for body in (
                    {"type": "kubernetes.io/tls"},
                    {"type": "kubernetes.io/basic-auth"},
                    {"data": {"a": "!"}},
                    {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}},
                    {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}},
                    {"type": "kubernetes.io/service-account-token"},
                    {"stringData": {"a": "b"}, "data": {"a": "eA==", "c": "eA=="}},
                    {"type": "custom", "immutable": True},
                    {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}},
                )
            ],
            post(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "x"}),
            patch(f"{SECRETS}/a", {"type": "y"}),
            patch(f"{SECRETS}/a", {"stringData": {"q": "w"}}),
        ],
    ),
]
