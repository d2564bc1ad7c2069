"""What the Job controller asks about pods: their index, how and when they ended, and what a new one looks like. Pure.

Source of the facts: Kubernetes 1.36, pkg/controller/job (indexed_job_utils.go, backoff_utils.go, job_controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.api.times import MICRO, parse_time
from steersman.controllers import owned, pods
from steersman.controllers.conditions import find
from steersman.controllers.job_policy import match_failure
from steersman.controllers.replicaset import new_pod
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod of an Indexed Job."""
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX_ENV: Final = "JOB_COMPLETION_INDEX"
GENERATED_MAX: Final = 58
"""Letters of a generated name before its random ones."""
MAX_INT32: Final = 2**31 - 1


def is_indexed(job: Json) -> bool:
    """Whether its pods have indexes."""
    return job["spec"].get("completionMode") == "Indexed"  # type: ignore[no-any-return]


def replaces_failed_only(job: Json) -> bool:
    """Whether a pod that is being deleted is replaced only when it has ended."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_tracked(pod: Json) -> bool:
    """Whether the pod still has the finalizer: its end is not counted yet."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def without_finalizer(pod: Json) -> list[dict[str, Any]]:
    """The JSON patch that lets a pod go, whatever else became of it; it must still be that pod."""
    at = f"/metadata/finalizers/{list(pod['metadata']['finalizers']).index(FINALIZER)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": at, "value": FINALIZER},
        {"op": "remove", "path": at},
    ]


def index_of(pod: Json) -> int:
    """The completion index; -1 for none."""
    text = (pod["metadata"].get("annotations") or EMPTY).get(INDEX, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1


def valid_index(job: Json, pod: Json) -> bool:
    """Whether the pod's index is one the Job asks for."""
    return 0 <= index_of(pod) < job["spec"]["completions"]  # type: ignore[no-any-return]


def is_failed(pod: Json, job: Json) -> bool:
    """Whether a pod counts as failed; one that is being deleted may never come to a phase of its own."""
    phase = pods.phase(pod)
    if phase == "Failed" or replaces_failed_only(job):
        return phase == "Failed"
    return owned.is_terminating(pod) and phase != "Succeeded"


def finished_at(pod: Json) -> int:
    """When a pod ended (microseconds): as its containers say; else as its Ready condition, its deletion or, at last,
    its creation does."""
    meta = pod["metadata"]
    status = pod.get("status") or EMPTY
    sidecars = {
        each["name"] for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"
    }
    counted = [
        *(status.get("containerStatuses") or ()),
        *[each for each in status.get("initContainerStatuses") or () if each["name"] in sidecars],
    ]
    ends = [((each.get("state") or EMPTY).get("terminated") or EMPTY).get("finishedAt") for each in counted]
    if ends and all(ends):
        return max(parse_time(end) for end in ends)
    ready = find(status.get("conditions") or (), "Ready")
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if owned.is_terminating(pod):
        return parse_time(meta["deletionTimestamp"]) - MICRO * (meta.get("deletionGracePeriodSeconds") or 0)
    return parse_time(meta["creationTimestamp"])


def failures_of(pod: Json, annotation: str) -> int:
    """The failures of its index before this pod, as an annotation says."""
    text = (pod["metadata"].get("annotations") or EMPTY).get(annotation, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else 0
    return number if number <= MAX_INT32 else 0


def all_failures_of(pod: Json) -> int:
    """Counted and ignored failures of its index before this pod."""
    return failures_of(pod, FAILURES) + failures_of(pod, IGNORED)


def index_has_failed(pod: Json, job: Json) -> bool:
    """Whether this pod's failure is the end of its index (backoffLimitPerIndex)."""
    if not is_failed(pod, job):
        return False
    counted, action, _ = match_failure(job["spec"].get("podFailurePolicy"), pod)
    if action == "FailIndex":
        return True
    return counted and failures_of(pod, FAILURES) >= job["spec"]["backoffLimitPerIndex"]


def restarts(these: Iterable[Json]) -> int:
    """Restarts of the containers of pods that have not ended."""
    return sum(
        each.get("restartCount") or 0
        for pod in these
        if pods.phase(pod) in ("Running", "Pending")
        for part in ("initContainerStatuses", "containerStatuses")
        for each in (pod.get("status") or EMPTY).get(part) or ()
    )


def removal_order(pod: Json) -> tuple[Any, ...]:
    """Sort key of who goes first: as for a ReplicaSet, but deletion costs and neighbours do not count."""
    order = pods.deletion_order(pod, EMPTY)
    return (*order[:3], *order[5:])


def job_pod(job: Json, index: int = -1, replaced: Json | None = None) -> dict[str, Any]:
    """The pod a Job creates. `index`: of an Indexed Job. `replaced`: the failed pod of that index, whose failures are
    handed on (backoffLimitPerIndex)."""
    made = new_pod(job)
    meta, spec = made["metadata"], dict(made["spec"])
    meta["finalizers"] = [*[name for name in meta.get("finalizers") or () if name != FINALIZER], FINALIZER]
    if is_indexed(job):
        for part in ("initContainers", "containers"):
            if spec.get(part):
                spec[part] = [_with_index(container) for container in spec[part]]
    if index >= 0:
        name = job["metadata"]["name"]
        text = str(index)
        meta["annotations"] = {**(meta.get("annotations") or EMPTY), INDEX: text}
        meta["labels"] = {**(meta.get("labels") or EMPTY), INDEX: text}
        meta["generateName"] = f"{name[: GENERATED_MAX - len(text) - 2]}-{text}-"
        spec["hostname"] = f"{name}-{text}"
        if job["spec"].get("backoffLimitPerIndex") is not None:
            meta["annotations"].update(_handed_on(job, replaced))
    return {**made, "spec": spec}


def _handed_on(job: Json, replaced: Json | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    counted = match_failure(job["spec"].get("podFailurePolicy"), replaced)[0]
    ignored = failures_of(replaced, IGNORED) + (not counted)
    handed = {FAILURES: str(failures_of(replaced, FAILURES) + counted)}
    return {**handed, IGNORED: str(ignored)} if ignored else handed


def _with_index(container: Json) -> Json:
    env = container.get("env") or ()
    if any(each["name"] == INDEX_ENV for each in env):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*env, {"name": INDEX_ENV, "valueFrom": source}]}
