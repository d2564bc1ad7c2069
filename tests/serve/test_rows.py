"""What `kubectl get` shows of pods and other kinds, case by case, and ages."""

import pytest

from steersman.kernel.value import freeze
from steersman.serve.table.ages import age, human
from steersman.serve.table.columns import COLUMNS, PLAIN
from steersman.serve.table.labels_text import selector_text
from steersman.serve.table.pod_row import pod_conditions

NOW = 1_790_000_000_000_000


def cells(gk, obj):
    base = {"metadata": {"name": "x", "creationTimestamp": "2026-09-21T14:13:20Z"}}
    base["metadata"] |= obj.pop("metadata", {})
    columns = COLUMNS.get(gk, PLAIN)
    row = columns.row(freeze({**base, **obj}), NOW)
    assert len(row) == len(columns.names)
    return row


def pod_row(status, spec=None, metadata=None):
    spec = {"containers": [{"name": "a"}, {"name": "b"}], **(spec or {})}
    return cells(("", "Pod"), {"spec": spec, "status": status, "metadata": metadata or {}})


def running(name="a", ready=True, restarts=0, **more):
    return {"name": name, "ready": ready, "restartCount": restarts, "state": {"running": {}}, **more}


def ended(name="a", **state):
    return {"name": name, "restartCount": 0, "state": {"terminated": state}}


def waiting(reason):
    return {"name": "a", "restartCount": 0, "state": {"waiting": {"reason": reason}}}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, ["0/2", "Pending", "0"]),
        ({"phase": "Running", "containerStatuses": [running("a"), running("b")]}, ["2/2", "Running", "0"]),
        ({"phase": "Running", "containerStatuses": [running("a", False, 3)]}, ["0/2", "Running", "3"]),
        ({"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff")]}, ["0/2", "ImagePullBackOff", "0"]),
        ({"phase": "Running", "containerStatuses": [ended(reason="Error", exitCode=1)]}, ["0/2", "Error", "0"]),
        ({"phase": "Running", "containerStatuses": [ended(exitCode=2)]}, ["0/2", "ExitCode:2", "0"]),
        ({"phase": "Running", "containerStatuses": [ended(signal=9)]}, ["0/2", "Signal:9", "0"]),
        ({"phase": "Failed", "reason": "Evicted"}, ["0/2", "Evicted", "0"]),
        (
            {"phase": "Running", "containerStatuses": [ended(reason="Completed", exitCode=0), running("b")]},
            ["1/2", "NotReady", "0"],
        ),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [ended(reason="Completed", exitCode=0), running("b")],
            },
            ["1/2", "Running", "0"],
        ),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated", "status": "False"}],
            },
            ["0/2", "SchedulingGated", "0"],
        ),
    ],
)
def test_pod_status(status, shown):
    assert pod_row(status)[1:4] == shown


def test_restarts_say_when():
    last = {"lastState": {"terminated": {"finishedAt": "2026-09-21T14:11:20Z"}}}
    assert pod_row({"phase": "Running", "containerStatuses": [running(restarts=2, **last)]})[3] == "2 (2m ago)"


@pytest.mark.parametrize(
    ("init", "shown"),
    [
        ([ended(name="i", exitCode=0)], "Init:1/2"),
        ([ended(name="i", exitCode=1)], "Init:ExitCode:1"),
        ([ended(name="i", exitCode=137, signal=9)], "Init:Signal:9"),
        ([ended(name="i", exitCode=1, reason="Error")], "Init:Error"),
        ([{"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}], "Init:CrashLoopBackOff"),
        ([{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}], "Init:0/2"),
    ],
)
def test_init_containers(init, shown):
    init = [*init, {"name": "j", "state": {"waiting": {"reason": "PodInitializing"}}}]
    spec = {"initContainers": [{"name": "i"}, {"name": "j"}]}
    assert pod_row({"phase": "Pending", "initContainerStatuses": init}, spec)[2] == shown


def test_sidecars_count_as_containers():
    spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    status = {"phase": "Running", "initContainerStatuses": [running("s", restarts=1, started=True)]}
    status["containerStatuses"] = [running("a"), running("b")]
    assert pod_row(status, spec)[1:4] == ["3/3", "Running", "1"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [({"phase": "Running"}, "Terminating"), ({"phase": "Succeeded"}, "Succeeded"), ({"reason": "NodeLost"}, "Unknown")],
)
def test_a_pod_that_is_going_away(status, shown):
    assert pod_row(status, metadata={"deletionTimestamp": "2026-09-21T14:13:20Z"})[2] == shown


def test_wide_cells_and_row_conditions():
    status = {
        "phase": "Succeeded",
        "podIPs": [{"ip": "10.0.0.1"}],
        "nominatedNodeName": "n2",
        "conditions": [{"type": "g", "status": "True"}],
    }
    spec = {"nodeName": "n1", "readinessGates": [{"conditionType": "g"}, {"conditionType": "h"}]}
    assert pod_row(status, spec)[5:] == ["10.0.0.1", "n1", "n2", "1/2"]
    assert pod_conditions(freeze({"status": status}))[0]["reason"] == "Succeeded"
    assert pod_conditions(freeze({"status": {"phase": "Running"}})) == []


@pytest.mark.parametrize(
    ("gk", "obj", "shown"),
    [
        (("", "Namespace"), {"status": {"phase": "Active"}}, ["x", "Active", "0s"]),
        (("", "ConfigMap"), {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["x", 2, "0s"]),
        (("", "Secret"), {"type": "Opaque", "data": {"a": ""}}, ["x", "Opaque", 1, "0s"]),
        (("", "Secret"), {}, ["x", "", 0, "0s"]),
        (("apps", "ReplicaSet"), {"spec": {"replicas": 3}, "status": {"replicas": 2}}, ["x", 3, 2, 0, "0s"]),
        (("apps", "StatefulSet"), {"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}, ["x", "1/3", "0s"]),
        (("apps", "Deployment"), {"spec": {"replicas": 0}}, ["x", "0/0", 0, 0, "0s"]),
        (("coordination.k8s.io", "Lease"), {"spec": {"holderIdentity": "me"}}, ["x", "me", "0s"]),
        (("example.com", "Widget"), {}, ["x", "0s"]),
        (
            ("", "Node"),
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "a"}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}},
            },
            ["x", "Ready,SchedulingDisabled", "a,worker", "0s", "v1", "<none>"],
        ),
        (
            ("", "Node"),
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            ["x", "NotReady", "<none>"],
        ),
        (("", "Node"), {}, ["x", "Unknown", "<none>"]),
        (
            ("", "Service"),
            {"spec": {"clusterIP": "None", "ports": [{"port": 80, "nodePort": 30080, "protocol": "UDP"}]}},
            ["x", "ClusterIP", "None", "<none>", "80:30080/UDP", "0s", "<none>"],
        ),
        (("", "Service"), {"spec": {"type": "LoadBalancer"}}, ["x", "LoadBalancer", "<none>", "<pending>", "<none>"]),
        (
            ("", "Service"),
            {"spec": {"type": "ExternalName", "externalName": "e"}},
            ["x", "ExternalName", "<none>", "e"],
        ),
        (
            ("batch", "Job"),
            {
                "spec": {"completions": 2},
                "status": {"succeeded": 1, "startTime": "2026-09-21T14:10:00Z"},
            },
            ["x", "Running", "1/2", "3m20s", "0s"],
        ),
        (
            ("batch", "Job"),
            {
                "status": {
                    "startTime": "2026-09-21T14:10:00Z",
                    "completionTime": "2026-09-21T14:10:30Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                }
            },
            ["x", "Complete", "0/1", "30s", "0s"],
        ),
        (("batch", "Job"), {"spec": {"parallelism": 3}}, ["x", "Running", "0/1 of 3", "", "0s"]),
        (("batch", "CronJob"), {"spec": {"schedule": "* * * * *"}}, ["x", "* * * * *", "<none>", "False", 0, "<none>"]),
        (
            ("", "PersistentVolumeClaim"),
            {
                "spec": {"volumeName": "v", "storageClassName": "s", "volumeMode": "Block"},
                "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
            },
            ["x", "Bound", "v", "1Gi", "RWO", "s", "<unset>", "0s", "Block"],
        ),
        (("", "PersistentVolumeClaim"), {"status": {"phase": "Pending"}}, ["x", "Pending", "", "", "", "", "<unset>"]),
        (
            ("", "PersistentVolume"),
            {"spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "n", "name": "c"}}},
            ["x", "1Gi", "", "", "", "n/c", "", "<unset>", "", "0s", "<unset>"],
        ),
        (
            ("", "Event"),
            {
                "type": "Normal",
                "reason": "Pulled",
                "message": " done ",
                "count": 2,
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "source": {"component": "kubelet", "host": "n1"},
                "firstTimestamp": "2026-09-21T14:13:10Z",
                "lastTimestamp": "2026-09-21T14:13:18Z",
            },
            ["2s", "Normal", "Pulled", "pod/p", "spec", "kubelet, n1", "done", "10s", 2, "x"],
        ),
        (
            ("", "Event"),
            {"eventTime": "2026-09-21T14:13:10.5Z", "reportingComponent": "me", "involvedObject": {"kind": "Node"}},
            ["9s", "", "", "node", "", "me", "", "9s", 1, "x"],
        ),
    ],
)
def test_rows(gk, obj, shown):
    assert cells(gk, obj)[: len(shown)] == shown


@pytest.mark.parametrize("gk", sorted(COLUMNS))
def test_an_object_without_anything_has_a_row(gk):
    assert cells(gk, {})[0] in ("x", "<unknown>")


def test_selectors_on_one_line():
    rules = [
        {"key": "a", "operator": "In", "values": ["y", "x"]},
        {"key": "b", "operator": "NotIn", "values": ["z"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    assert selector_text(freeze({"matchLabels": {"k": "v"}, "matchExpressions": rules})) == (
        "k=v,a in (x,y),b notin (z),c,!d"
    )
    assert selector_text(freeze({})) == "<none>"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ],
)
def test_durations(seconds, shown):
    assert human(seconds) == shown


@pytest.mark.parametrize("time", [None, "", "yesterday", 5])
def test_an_unknown_age(time):
    assert age(time, NOW) == "<unknown>"
