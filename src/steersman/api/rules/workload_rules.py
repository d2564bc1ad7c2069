"""What Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs must look like.

Source of the facts: kubernetes `pkg/apis/apps/validation` and `pkg/apis/batch/validation`, release 1.36.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api import cron, zones
from steersman.api.errors import Cause
from steersman.api.rules import internal, job_rules, pod_rules, rules
from steersman.api.rules.job_rules import MISMATCH
from steersman.api.rules.rules import Causes, Object, chosen, not_negative
from steersman.kernel.value import EMPTY

_SURGE_ZERO: Final = "may not be 0 when `maxSurge` is 0"


def _selector(out: Causes, path: str, spec: Object, what: str) -> bool:
    """A required selector that is not empty and picks the template's own labels. Whether it is a selector at all."""
    found = spec.get("selector")
    meta = (spec.get("template") or EMPTY).get("metadata") or EMPTY
    labels = meta.get("labels") or EMPTY
    at = f"{path}.template.metadata.labels"
    if found is None:
        if not what.endswith("daemonset"):
            out.append(Cause.required(f"{path}.selector"))
        out.append(Cause.invalid(at, internal.sorted_map(labels), MISMATCH))
        return True
    compiled = rules.selector(out, f"{path}.selector", found)
    if not found.get("matchLabels") and not found.get("matchExpressions"):
        out.append(Cause.invalid(f"{path}.selector", found, f"empty selector is {what}"))
    elif compiled is None:
        if not what.endswith("daemonset"):
            detail = "" if what.endswith("statefulset") else "invalid label selector"
            out.append(Cause.invalid(f"{path}.selector", internal.selector(found), detail))
    elif not compiled.matches(labels):
        out.append(Cause.invalid(at, internal.sorted_map(labels), MISMATCH))
    return compiled is not None


def _long_running(out: Causes, path: str, spec: Object, kind: str) -> None:
    """The template of pods that always restart."""
    inner = (spec.get("template") or EMPTY).get("spec") or EMPTY
    policy = inner.get("restartPolicy", "Always")
    if policy != "Always":
        out.append(Cause.unsupported(f"{path}.template.spec.restartPolicy", policy, ("Always",)))
    if "activeDeadlineSeconds" in inner:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        out.append(Cause.forbidden(f"{path}.template.spec.activeDeadlineSeconds", detail))


def deployment(out: Causes, path: str, spec: Object) -> None:
    """The spec of a Deployment."""
    not_negative(out, path, spec, "replicas")
    if _selector(out, path, spec, "invalid for deployment"):
        pod_rules.template(out, f"{path}.template", spec.get("template"))
        _long_running(out, path, spec, "ReplicaSet")
    _deployment_strategy(out, f"{path}.strategy", spec.get("strategy") or EMPTY)
    not_negative(out, path, spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
    if deadline is not None and deadline <= ready:
        detail = "must be greater than minReadySeconds"
        out.append(Cause.invalid(f"{path}.progressDeadlineSeconds", deadline, detail))


def _deployment_strategy(out: Causes, path: str, strategy: Object) -> None:
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            out.append(Cause.forbidden(f"{path}.rollingUpdate", detail))
    elif kind != "RollingUpdate":
        shown = internal.shown(strategy, internal.DEPLOYMENT_STRATEGY)
        out.append(Cause.unsupported(path, shown, ("Recreate", "RollingUpdate")))
    elif rolling is not None:
        at = f"{path}.rollingUpdate"
        down, up = rolling.get("maxUnavailable", "25%"), rolling.get("maxSurge", "25%")
        rules.count_or_percent(out, f"{at}.maxUnavailable", down)
        rules.count_or_percent(out, f"{at}.maxSurge", up)
        if rules.percent(down) == 0 and rules.percent(up) == 0:
            out.append(Cause.invalid(f"{at}.maxUnavailable", down, _SURGE_ZERO))
        rules.at_most_all(out, f"{at}.maxUnavailable", down)


def replica_set(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ReplicaSet."""
    not_negative(out, path, spec, "replicas", "minReadySeconds")
    if _selector(out, path, spec, "invalid for deployment"):
        pod_rules.template(out, f"{path}.template", spec.get("template"))
        _long_running(out, path, spec, "ReplicaSet")


def replication_controller(out: Causes, path: str, spec: Object) -> None:
    """The spec of a ReplicationController, whose selector is a plain map."""
    not_negative(out, path, spec, "minReadySeconds")
    chosen_labels = spec.get("selector") or EMPTY
    if not chosen_labels:
        out.append(Cause.required(f"{path}.selector"))
    not_negative(out, path, spec, "replicas")
    if spec.get("template") is None:
        out.append(Cause.required(f"{path}.template"))
        return
    labels = (spec["template"].get("metadata") or EMPTY).get("labels") or EMPTY
    if any(labels.get(key) != value for key, value in chosen_labels.items()):
        out.append(Cause.invalid(f"{path}.template.metadata.labels", internal.sorted_map(labels), MISMATCH))
    pod_rules.template(out, f"{path}.template", spec["template"])
    _long_running(out, path, spec, "ReplicationController")


def daemon_set(out: Causes, path: str, spec: Object) -> None:
    """The spec of a DaemonSet."""
    _selector(out, path, spec, "invalid for daemonset")
    pod_rules.template(out, f"{path}.template", spec.get("template"))
    _long_running(out, path, spec, "DaemonSet")
    not_negative(out, path, spec, "minReadySeconds")
    strategy = spec.get("updateStrategy") or EMPTY
    at, kind = f"{path}.updateStrategy", strategy.get("type", "RollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        shown = internal.shown(strategy, internal.DEPLOYMENT_STRATEGY)
        out.append(Cause.unsupported(at, shown, ("RollingUpdate", "OnDelete")))
    elif kind == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        at, rolling = f"{at}.rollingUpdate", strategy["rollingUpdate"]
        down, up = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)
        for field, value in (("maxUnavailable", down), ("maxSurge", up)):
            rules.count_or_percent(out, f"{at}.{field}", value)
            rules.at_most_all(out, f"{at}.{field}", value)
        if rules.percent(down) and rules.percent(up):
            out.append(Cause.invalid(f"{at}.maxSurge", up, "may not be set when maxUnavailable is non-zero"))
        elif not rules.percent(down) and not rules.percent(up):
            out.append(Cause.required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    not_negative(out, path, spec, "revisionHistoryLimit")


def stateful_set(out: Causes, path: str, spec: Object) -> None:
    """The spec of a StatefulSet, whose pods get volumes of its claims, and names of their own."""
    management = spec.get("podManagementPolicy", "OrderedReady")
    if management not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        out.append(Cause.invalid(f"{path}.podManagementPolicy", management, detail))
    _stateful_strategy(out, f"{path}.updateStrategy", spec.get("updateStrategy") or EMPTY)
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or EMPTY
    for field in ("whenDeleted", "whenScaled"):
        at = f"{path}.persistentVolumeClaimRetentionPolicy.{field}"
        chosen(out, at, retention.get(field), ("Delete", "Retain"))
    not_negative(out, path, spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    not_negative(out, f"{path}.ordinals", spec.get("ordinals") or EMPTY, "start")
    if _selector(out, path, spec, "invalid for statefulset"):
        pod_rules.template(out, f"{path}.template", _with_claims(spec))
    _long_running(out, path, spec, "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """The template of a StatefulSet's pods as its controller completes it."""
    template = spec.get("template") or EMPTY
    inner = template.get("spec") or EMPTY
    names = [(claim.get("metadata") or EMPTY).get("name") for claim in spec.get("volumeClaimTemplates") or ()]
    kept = {field: item for field, item in inner.items() if field not in ("hostname", "subdomain")}
    if names:
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names if name]
        kept["volumes"] = [*made, *(each for each in inner.get("volumes") or () if each.get("name") not in names)]
    return {**template, "spec": kept}


def _stateful_strategy(out: Causes, path: str, strategy: Object) -> None:
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            shown = internal.shown(rolling, internal.ROLLING_STATEFUL)
            out.append(Cause.invalid(f"{path}.rollingUpdate", shown, detail))
    elif kind != "RollingUpdate":
        shown = internal.shown(strategy, internal.STATEFUL_STRATEGY)
        out.append(Cause.invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))
    elif rolling is not None:
        not_negative(out, f"{path}.rollingUpdate", rolling, "partition")


_JOB_COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def job(out: Causes, path: str, spec: Object) -> None:
    """The spec of a Job; `job_rules.selected` judges what the server completes by the uid."""
    job_template_spec(out, path, spec)
    if spec.get("selector") is not None:
        rules.selector(out, f"{path}.selector", spec["selector"])


def job_template_spec(out: Causes, path: str, spec: Object) -> None:
    """What holds of a Job's spec also inside a CronJob."""
    not_negative(out, path, spec, *_JOB_COUNTS)
    mode = spec.get("completionMode", "NonIndexed")
    chosen(out, f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and "completions" not in spec:
        out.append(Cause.required(f"{path}.completions", "when completion mode is Indexed"))
    if mode != "Indexed":
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if field in spec:
                detail = "requires indexed completion mode"
                out.append(Cause.invalid(f"{path}.{field}", spec[field], detail))
    job_rules.policies(out, path, spec)
    replaced = spec.get("podReplacementPolicy")
    chosen(out, f"{path}.podReplacementPolicy", replaced, ("Failed", "TerminatingOrFailed"))
    pod_rules.template(out, f"{path}.template", spec.get("template"))
    policy = ((spec.get("template") or EMPTY).get("spec") or EMPTY).get("restartPolicy", "Always")
    at = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        out.append(Cause.required(at, 'valid values: "OnFailure", "Never"'))
    elif policy != "Never" and "podFailurePolicy" in spec:
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        out.append(Cause.invalid(at, policy, detail))


def cron_job(out: Causes, path: str, spec: Object) -> None:
    """The spec of a CronJob."""
    schedule = spec.get("schedule")
    if not schedule:
        out.append(Cause.required(f"{path}.schedule"))
    else:
        rules.named(out, f"{path}.schedule", schedule, cron.problems)
    if "timeZone" in spec and (problem := zones.problem(spec["timeZone"])):
        out.append(Cause.invalid(f"{path}.timeZone", spec["timeZone"], problem))
    not_negative(out, path, spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit")
    not_negative(out, path, spec, "failedJobsHistoryLimit")
    chosen(out, f"{path}.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    inner: Any = (spec.get("jobTemplate") or EMPTY).get("spec") or EMPTY
    at = f"{path}.jobTemplate.spec"
    job_template_spec(out, at, inner)
    if "selector" in inner:
        out.append(Cause.invalid(f"{at}.selector", inner["selector"], "`selector` will be auto-generated"))
    if inner.get("manualSelector"):
        out.append(Cause.unsupported(f"{at}.manualSelector", True, ("nil", "false")))


def revision(out: Causes, _name: str, parts: Object) -> None:
    """A ControllerRevision keeps something, be it nothing."""
    if "data" not in parts:
        out.append(Cause.required("data", "data is mandatory"))


def revision_number(out: Causes, path: str, number: Any) -> None:
    """The place of a ControllerRevision among those of its owner."""
    if isinstance(number, int) and number < 0:
        out.append(Cause.invalid(path, number, rules.NEGATIVE))
