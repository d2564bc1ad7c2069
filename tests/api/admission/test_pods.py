"""What the standard chain makes of pods, as kube-apiserver 1.36 does it."""

from __future__ import annotations

import pytest

from steersman.api.admission.runtime import merged
from steersman.api.admission.standard import standard
from steersman.kernel.value import freeze
from tests.api.admission.scene import admitted, generated
from tests.api.cluster import deployment, pod, refused

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
TOKEN = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}


def spec_of(cluster, name="p"):
    return cluster.get("v1/Pod", name)["spec"]


# -- ServiceAccount ------------------------------------------------------------------------------------------------


def test_a_pod_gets_the_default_account_and_its_token():
    c = admitted()
    c.create("v1/Pod", "p", spec=pod(initContainers=[{"name": "init", "image": "i:1"}]))
    spec = spec_of(c)
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {
                "downwardAPI": {
                    "items": [
                        {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
                    ]
                }
            },
        ],
    }
    for group in ("containers", "initContainers"):
        assert spec[group][0]["volumeMounts"] == [{**TOKEN, "name": volume["name"]}]
    owned = c.managed("v1/Pod", "p")[("test", "Update", "")]["f:spec"]
    assert not owned.keys() & {"f:volumes", "f:serviceAccountName", "f:serviceAccount", "f:tolerations"}


@pytest.mark.parametrize("where", ["pod", "account", "pod over account"])
def test_automount_can_be_switched_off(where):
    c = admitted(account=where == "pod")
    if where != "pod":
        c.create("v1/ServiceAccount", "default", automountServiceAccountToken=False)
    given = {"pod": {"automountServiceAccountToken": False}, "pod over account": {"automountServiceAccountToken": True}}
    c.create("v1/Pod", "p", spec=pod(**given.get(where, {})))
    assert ("volumes" in spec_of(c)) == (where == "pod over account")


def test_a_mount_at_the_path_and_a_volume_of_the_name_are_left_alone():
    c = admitted()
    container = {"name": "app", "image": "a:1", "volumeMounts": [{"name": "mine", "mountPath": TOKEN["mountPath"]}]}
    c.create("v1/Pod", "p", spec={"containers": [container], "volumes": [{"name": "mine", "emptyDir": {}}]})
    assert [v["name"] for v in spec_of(c)["volumes"]] == ["mine"]
    volumes = [{"name": "kube-api-access-mine", "emptyDir": {}}]
    c.create("v1/Pod", "q", spec=pod(volumes=volumes))
    assert [v["name"] for v in spec_of(c, "q")["volumes"]] == ["kube-api-access-mine"]
    assert spec_of(c, "q")["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-mine"


def test_pull_secrets_come_from_the_account_unless_the_pod_has_its_own():
    c = admitted(account=False)
    c.create("v1/ServiceAccount", "default", imagePullSecrets=[{"name": "registry"}])
    c.create("v1/Pod", "p", spec=pod())
    c.create("v1/Pod", "q", spec=pod(imagePullSecrets=[{"name": "own"}]))
    assert spec_of(c)["imagePullSecrets"] == [{"name": "registry"}]
    assert spec_of(c, "q")["imagePullSecrets"] == [{"name": "own"}]


def test_an_account_that_is_not_there_is_told_with_the_name_as_it_was_sent():
    c = admitted(account=False)
    detail = 'error looking up service account shop/{0}: serviceaccount "{0}" not found'
    error = refused(c.create, "v1/Pod", "p", spec=pod(serviceAccountName="robot"))
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == f'pods "p" is forbidden: {detail.format("robot")}'
    error = refused(generated, c, "v1/Pod", "web-", spec=pod())
    assert error.message == f'pods "web-" is forbidden: {detail.format("default")}'


def test_a_default_account_that_is_on_its_way_is_not_waited_for():
    c = admitted(account=False, chain=standard(controllers=["serviceaccount-controller"]))
    c.create("v1/Pod", "p", spec=pod())
    assert spec_of(c)["serviceAccountName"] == "default"
    assert refused(c.create, "v1/Pod", "q", spec=pod(serviceAccountName="robot")).code == 403


def test_mirror_pods_keep_their_spec_and_reference_nothing():
    c = admitted()
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    c.create("v1/Pod", "p", spec=pod(), metadata=mirror)
    assert "volumes" not in spec_of(c)
    error = refused(c.create, "v1/Pod", "q", spec=pod(serviceAccountName="default"), metadata=mirror)
    assert error.message.endswith("a mirror pod may not reference service accounts")
    secret = [{"name": "s", "secret": {"secretName": "s"}}]
    error = refused(c.create, "v1/Pod", "q", spec=pod(volumes=secret), metadata=mirror)
    assert error.message.endswith("a mirror pod may not reference secrets")


def test_an_account_can_limit_the_secrets_of_its_pods():
    c = admitted(account=False)
    notes = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    c.create("v1/ServiceAccount", "default", metadata=notes, secrets=[{"name": "mine"}])
    c.create("v1/Pod", "p", spec=pod(volumes=[{"name": "s", "secret": {"secretName": "mine"}}]))
    error = refused(c.create, "v1/Pod", "q", spec=pod(volumes=[{"name": "s", "secret": {"secretName": "other"}}]))
    assert error.message == (
        'pods "q" is forbidden: volume with secret.secretName="other" is not allowed because service account default '
        "does not reference that secret"
    )
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]
    error = refused(c.create, "v1/Pod", "q", spec={"containers": [{"name": "app", "image": "a:1", "env": env}]})
    assert error.message == (
        'pods "q" is forbidden: container app with envVar A referencing secret.secretName="other" is not allowed '
        "because service account default does not reference that secret"
    )


def test_pods_of_one_template_share_their_spec():
    c = admitted()
    c.create("apps/v1/ReplicaSet", "web", spec=deployment())
    template = c.read("apps/v1/ReplicaSet", "web").spec.value["template"]["spec"]
    for name in ("a", "b"):
        c.create("v1/Pod", name, spec=template)
    assert c.read("v1/Pod", "a").spec is c.read("v1/Pod", "b").spec


# -- Priority ------------------------------------------------------------------------------------------------------


def priority_class(c, name, value, **parts):
    c.create("scheduling.k8s.io/v1/PriorityClass", name, value=value, **parts)


def test_priority_follows_from_the_class():
    c = admitted()
    priority_class(c, "high", 1000, preemptionPolicy="Never")
    c.create("v1/Pod", "p", spec=pod(priorityClassName="high"))
    assert (spec_of(c)["priority"], spec_of(c)["preemptionPolicy"]) == (1000, "Never")
    c.create("v1/Pod", "q", spec=pod(priorityClassName="system-node-critical"))
    assert spec_of(c, "q")["priority"] == 2_000_001_000
    c.create("v1/Pod", "r", spec=pod())
    assert (spec_of(c, "r")["priority"], spec_of(c, "r")["preemptionPolicy"]) == (0, "PreemptLowerPriority")


def test_the_default_class_is_everybodys_and_there_is_one():
    c = admitted()
    priority_class(c, "usual", 50, globalDefault=True)
    c.create("v1/Pod", "p", spec=pod())
    assert (spec_of(c)["priority"], spec_of(c)["priorityClassName"]) == (50, "usual")
    error = refused(priority_class, c, "other", 60, globalDefault=True)
    assert error.message == (
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. '
        "Only one default can exist"
    )
    c.merge("scheduling.k8s.io/v1/PriorityClass", "usual", {"description": "still the default"})


def test_a_priority_that_is_not_the_classes_is_refused_and_so_is_an_unknown_class():
    c = admitted()
    error = refused(c.create, "v1/Pod", "p", spec=pod(priority=7))
    assert error.message == (
        'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission '
        "controller computed 0 from the given PriorityClass name"
    )
    error = refused(c.create, "v1/Pod", "p", spec=pod(priorityClassName="none"))
    assert error.message == 'pods "p" is forbidden: no PriorityClass with name none was found'


def test_an_update_without_priority_keeps_it():
    c = admitted()
    priority_class(c, "high", 1000)
    c.create("v1/Pod", "p", spec=pod(priorityClassName="high"))
    body = c.get("v1/Pod", "p")
    del body["spec"]["priority"], body["spec"]["preemptionPolicy"]
    c.update("v1/Pod", "p", metadata={"labels": {"x": "y"}}, spec=body["spec"])
    assert (spec_of(c)["priority"], c.get("v1/Pod", "p")["metadata"]["labels"]) == (1000, {"x": "y"})


# -- DefaultTolerationSeconds, TaintNodesByCondition, PodTopologyLabels ---------------------------------------------


def test_tolerations_for_nodes_that_fail_are_added_where_the_pod_has_none():
    c = admitted()
    c.create("v1/Pod", "p", spec=pod())
    added = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert spec_of(c)["tolerations"] == [{**added, "key": NOT_READY}, {**added, "key": UNREACHABLE}]
    own = [{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}]
    c.create("v1/Pod", "q", spec=pod(tolerations=own))
    assert [t["key"] for t in spec_of(c, "q")["tolerations"]] == [NOT_READY, UNREACHABLE]
    c.create("v1/Pod", "r", spec=pod(tolerations=[{"operator": "Exists"}]))
    assert len(spec_of(c, "r")["tolerations"]) == 1
    c.create("v1/Pod", "s", spec=pod(tolerations=[{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}]))
    assert len(spec_of(c, "s")["tolerations"]) == 3


def test_a_new_node_is_not_ready_and_its_zone_comes_to_its_pods():
    c = admitted()
    labels = {"topology.kubernetes.io/zone": "z1", "other": "x"}
    c.create("v1/Node", "n", metadata={"labels": labels})
    assert c.get("v1/Node", "n")["spec"]["taints"] == [{"key": NOT_READY, "effect": "NoSchedule"}]
    c.create("v1/Pod", "p", spec=pod(), metadata={"labels": {"app": "p"}})
    c.request("create", "v1/Pod", "p", {"target": {"kind": "Node", "name": "n"}}, "binding")
    assert c.get("v1/Pod", "p")["metadata"]["labels"] == {"app": "p", "topology.kubernetes.io/zone": "z1"}


# -- RuntimeClass --------------------------------------------------------------------------------------------------


def test_overhead_and_placement_come_from_the_runtime_class():
    c = admitted()
    scheduling = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]}
    parts = {"handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": scheduling}
    c.create("node.k8s.io/v1/RuntimeClass", "kata", **parts)
    c.create("v1/Pod", "p", spec=pod(runtimeClassName="kata", nodeSelector={"disk": "ssd"}))
    spec = spec_of(c)
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"disk": "ssd", "sandbox": "yes"}
    assert spec["tolerations"][-1] == {"key": "sandbox", "operator": "Exists"}
    error = refused(c.create, "v1/Pod", "q", spec=pod(runtimeClassName="kata", nodeSelector={"sandbox": "no"}))
    assert error.message.endswith(
        "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; pod.spec.nodeSelector[sandbox] = no"
    )
    error = refused(c.create, "v1/Pod", "q", spec=pod(runtimeClassName="kata", overhead={"cpu": "1"}))
    assert error.message.endswith("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    error = refused(c.create, "v1/Pod", "q", spec=pod(overhead={"cpu": "1"}))
    assert error.message.endswith("Pod Overhead set without corresponding RuntimeClass defined Overhead")
    error = refused(c.create, "v1/Pod", "q", spec=pod(runtimeClassName="gvisor"))
    assert error.message == 'pods "q" is forbidden: pod rejected: RuntimeClass "gvisor" not found'


def test_tolerations_that_another_one_covers_are_dropped():
    wide = {"key": "a", "operator": "Exists"}
    narrow = {"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
    assert merged(freeze([narrow]), freeze([wide])) == [wide]
    assert merged(freeze([wide]), freeze([narrow])) == [wide]
    assert merged(freeze([narrow]), freeze([narrow])) == [narrow]
    short = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    long = {**short, "tolerationSeconds": 9}
    assert merged(freeze([short]), freeze([long])) == [long]
    assert merged(freeze([narrow]), freeze([long])) == [narrow, long]
