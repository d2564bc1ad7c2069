"""Workloads: how they are rolled out, scaled, ended and deleted."""

from __future__ import annotations

from typing import Any, Final

from tests.run.scenarios.making import (
    CLAIM,
    CONTAINERS,
    DAEMONS,
    DEPLOYMENT,
    LABELS,
    ONE_BY_ONE,
    SETS,
    Step,
    create,
    delete,
    deployment,
    image,
    job,
    labelled,
    made,
    patch,
    template,
    together,
)

INDEX: Final = "batch.kubernetes.io/job-completion-index"


def ended(index: int, phase: str, code: int = 3, **more: Any) -> Step:
    """The pod of an index, running so far, has ended."""

    def step(c: Any) -> None:
        pods = [each for each in c.list("v1/Pod", "default") if each["status"]["phase"] in ("Pending", "Running")]
        found = next(each for each in pods if each["metadata"]["annotations"][INDEX] == str(index))
        exit_code = code if phase == "Failed" else 0
        last = {"name": "c", "state": {"terminated": {"exitCode": exit_code, "reason": "Ended"}}, **CONTAINER}
        c.patch_status(found, {"phase": phase, "containerStatuses": [last], **more})

    return step


CONTAINER: Final = {"image": "i", "imageID": "i", "ready": False, "restartCount": 0}

SCENARIOS: Final[dict[str, tuple[Step, ...]]] = {
    "deployment-rolling": (
        create(deployment(replicas=2, strategy={"rollingUpdate": ONE_BY_ONE})),
        patch(DEPLOYMENT, image("nginx:2")),
        patch(DEPLOYMENT, {"spec": {"paused": True, **image("nginx:3")["spec"]}}),
        patch(DEPLOYMENT, {"spec": {"replicas": 1}}),
        patch(DEPLOYMENT, {"spec": {"paused": False}}),
        patch(DEPLOYMENT, image("nginx:1")),
        delete(DEPLOYMENT, "Foreground"),
    ),
    "deployment-recreate": (
        create(deployment(replicas=2, strategy={"type": "Recreate"})),
        patch(DEPLOYMENT, image("nginx:2")),
        patch(DEPLOYMENT, {"spec": {"replicas": 0}}),
    ),
    "deployment-surge": (
        create(deployment(replicas=4, revisionHistoryLimit=1,
                          strategy={"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "0%"}})),
        patch(DEPLOYMENT, image("nginx:2")),
        patch(DEPLOYMENT, {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}}),
        patch(DEPLOYMENT, {"spec": {"replicas": 3}}),
        patch(DEPLOYMENT, {"spec": {"template": {"spec": {"nodeSelector": None}}}}),
        patch(DEPLOYMENT, image("nginx:3")),
    ),
    "deployment-deadline": (
        create(
            made(
                DEPLOYMENT, replicas=1, progressDeadlineSeconds=2, selector=LABELS,
                template=template(nodeSelector={"no": "where"}),
            )
        ),
    ),
    "statefulset-partition": (
        create(
            made(
                SETS, replicas=3, serviceName="web", selector=LABELS, template=template(),
                updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            )
        ),
        patch(SETS, image("nginx:2")),
        patch(SETS, {"spec": {"replicas": 1}}),
    ),
    "statefulset-claims": (
        create(
            made(
                SETS, replicas=2, podManagementPolicy="Parallel", updateStrategy={"type": "OnDelete"},
                persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
                serviceName="web", selector=LABELS,
                template=template(), volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": CLAIM}],
            )
        ),
        patch(SETS, image("nginx:2")),
        delete(SETS, "Background"),
    ),
    "statefulset-retention": (
        create(
            made(
                SETS, replicas=3, serviceName="web", selector=LABELS, template=template(),
                persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Delete"},
                volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": CLAIM}], podManagementPolicy="Parallel",
            )
        ),
        patch(SETS, {"spec": {"replicas": 1}}),
        patch(SETS, {"spec": {"replicas": 2, "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": "Delete", "whenScaled": "Retain"
        }}}),
        patch(SETS, {"spec": {"replicas": 1}}),
        delete(SETS, "Foreground"),
    ),
    "statefulset-start": (
        create(made(SETS, replicas=2, serviceName="web", selector=LABELS, template=template(), ordinals={"start": 2},
                    updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 3}})),
        patch(SETS, image("nginx:2")),
        patch(SETS, {"spec": {"ordinals": {"start": 1}}}),
        patch(SETS, {"spec": {"ordinals": None, "updateStrategy": {"rollingUpdate": {"partition": 0}}}}),
    ),
    "daemonset": (
        create(made(DAEMONS, selector=LABELS, template=template())),
        patch(DAEMONS, image("nginx:2")),
        patch(DAEMONS, {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}),
        patch(DAEMONS, image("nginx:1")),
    ),
    "job": (
        create(job("done", completions=2, parallelism=1), job("held", suspend=True)),
        patch("batch/v1/Job", {"spec": {"suspend": False}}, "held"),
    ),
    "job-failures": (
        create(
            job("limit", "3", backoffLimit=0),
            job("rule", "3", podFailurePolicy={
                "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
            }),
            job("late", lifetime="60", activeDeadlineSeconds=1),
            job("each", "3", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=0),
            job("enough", completionMode="Indexed", completions=2, parallelism=1, successPolicy={
                "rules": [{"succeededCount": 1}]
            }),
        ),
    ),
    "budget": (
        create(deployment(replicas=3)),
        create(made("policy/v1/PodDisruptionBudget", selector=LABELS, minAvailable=2)),
        patch("policy/v1/PodDisruptionBudget", {"spec": {"minAvailable": None, "maxUnavailable": "50%"}}),
    ),
    "replicationcontroller": (
        create(made("v1/ReplicationController", replicas=2, selector={"app": "web"}, template=template())),
        patch("v1/ReplicationController", {"spec": {"replicas": 1}}),
        delete("v1/ReplicationController", "Orphan"),
    ),
    "ephemeral-volume": (
        create(
            made("v1/Pod", containers=[{"name": "c", "image": "i"}], volumes=[
                {"name": "d", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"x": "y"}}, "spec": CLAIM}}}
            ])
        ),
    ),
    "statefulset-ordered": (
        create(made(SETS, replicas=3, serviceName="web", selector=LABELS, template=template(), ordinals={"start": 5})),
        lambda c: c.delete(c.key("v1/Pod", "web-6", "default")),
        patch(SETS, image("nginx:2")),
        patch(SETS, {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}}),
        patch(SETS, {"spec": {"template": {"spec": {"nodeSelector": None}}}}),
        patch(SETS, {"spec": {"replicas": 0}}),
        delete(SETS, "Orphan"),
    ),
    "statefulset-parallel": (
        create(
            made(
                SETS, replicas=3, podManagementPolicy="Parallel", serviceName="web", selector=LABELS,
                template=template(), revisionHistoryLimit=1,
            )
        ),
        patch(SETS, image("nginx:2")),
        patch(SETS, image("nginx:3")),
        patch(SETS, image("nginx:1")),
    ),
    "daemonset-places": (
        create(made(DAEMONS, selector=LABELS, template=template(), updateStrategy={"type": "OnDelete"})),
        patch(DAEMONS, image("nginx:2")),
        lambda c: c.delete(c.list("v1/Pod", "default", node="node-0")[0]),
        lambda c: c.patch(c.key("v1/Node", "node-1"), {"metadata": {"labels": {"disk": "fast"}}}),
        patch(DAEMONS, {"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}}),
        lambda c: c.patch(c.key("v1/Node", "node-0"), {"metadata": {"labels": {"disk": "fast"}}}),
        delete(DAEMONS, "Background"),
    ),
    "job-queue": (
        create(job("queue", lifetime="600", parallelism=2), job("fast", ttlSecondsAfterFinished=0),
               job("others", managedBy="example.com/other")),
        patch("batch/v1/Job", {"spec": {"parallelism": 1}}, "queue"),
        lambda c: c.delete(c.list("v1/Pod", "default")[0]),
        patch("batch/v1/Job", {"spec": {"suspend": True}}, "queue"),
        delete("batch/v1/Job", "Foreground", "queue"),
    ),
    "job-backoff": (
        create(
            job("twice", "3", backoffLimit=1),
            job("ignored", "3", backoffLimit=0, podReplacementPolicy="Failed", podFailurePolicy={
                "rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}}]
            }),
            job("indexes", "3", completionMode="Indexed", completions=2, parallelism=1, backoffLimitPerIndex=0,
                maxFailedIndexes=0),
        ),
    ),
    "job-indexes": (
        create(
            job("few", "3", completionMode="Indexed", completions=4, parallelism=1, backoffLimitPerIndex=0,
                maxFailedIndexes=2),
            job("again", "3", completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1),
            job("stop", "3", completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=5,
                podFailurePolicy={"rules": [
                    {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}}
                ]}),
        ),
    ),
    "job-mixed": (
        create(job("web", lifetime="600", completionMode="Indexed", completions=4, parallelism=4,
                   backoffLimitPerIndex=0)),
        together(ended(1, "Failed"), ended(3, "Failed")),
        ended(0, "Succeeded"),
        ended(2, "Succeeded"),
    ),
    "job-rules": (
        create(
            job("web", lifetime="600", completionMode="Indexed", completions=2, parallelism=2, backoffLimit=1,
                podFailurePolicy={"rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {"action": "FailJob", "onExitCodes": {
                        "containerName": "c", "operator": "In", "values": [42]
                    }},
                ]}),
        ),
        ended(1, "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}]),
        ended(0, "Failed", 42),
    ),
    "job-success": (
        create(
            job("web", lifetime="600", completionMode="Indexed", completions=4, parallelism=4, successPolicy={
                "rules": [{"succeededIndexes": "0-2", "succeededCount": 2}, {"succeededIndexes": "3"}]
            }),
        ),
        ended(2, "Succeeded"),
        ended(1, "Succeeded"),
    ),
    "budget-kinds": (
        create(made(SETS, replicas=2, serviceName="web", selector=LABELS, template=template())),
        create(
            made("policy/v1/PodDisruptionBudget", selector=LABELS, minAvailable="50%"),
            made("policy/v1/PodDisruptionBudget", "none", selector={"matchLabels": {"app": "none"}}, maxUnavailable=1),
        ),
        create(
            labelled(made("v1/Pod", "bare", containers=CONTAINERS))
        ),
        patch("policy/v1/PodDisruptionBudget", {"spec": {"minAvailable": 2}}),
    ),
    "namespace": (
        lambda c: c.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}),
        lambda c: c.delete(c.key("v1/Namespace", "other")),
    ),
}  # fmt: skip
