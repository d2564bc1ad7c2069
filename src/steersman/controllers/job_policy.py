"""A Job's policies: which failures of pods end it or do not count, and when enough of it succeeded. Pure.

Source of the facts: Kubernetes 1.36, pkg/controller/job/{pod_failure_policy,success_policy}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.controllers import job_indexes
from steersman.controllers.job_indexes import Intervals
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]


def match_failure(policy: Json | None, pod: Json) -> tuple[bool, str, str]:
    """(whether a pod's failure counts, action of the rule that matched, message that ends the Job); the first rule
    that matches decides, and without one the failure counts."""
    status = pod.get("status") or EMPTY
    for number, rule in enumerate((policy or EMPTY).get("rules") or ()):
        action = rule["action"]
        if rule.get("onExitCodes") is not None:
            container = _by_exit_code(status, rule["onExitCodes"])
            if container is None:
                continue
            code = container["state"]["terminated"]["exitCode"]
            text = f"Container {container['name']} for pod {_name(pod)} failed with exit code {code}"
        else:
            condition = _by_condition(status, rule.get("onPodConditions") or ())
            if condition is None:
                continue
            text = f"Pod {_name(pod)} has condition {condition['type']}"
        message = f"{text} matching {action} rule at index {number}" if action == "FailJob" else ""
        return action != "Ignore", action, message
    return True, "", ""


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _by_exit_code(status: Json, wanted: Json) -> Json | None:
    """The first container that ended with a matching code; init containers come last."""
    for part in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(part) or ():
            ended = (each.get("state") or EMPTY).get("terminated")
            if ended is None or not ended.get("exitCode") or wanted.get("containerName") not in (None, each["name"]):
                continue
            if (ended["exitCode"] in wanted["values"]) == (wanted["operator"] == "In"):
                return each  # type: ignore[no-any-return]
    return None


def _by_condition(status: Json, patterns: Iterable[Json]) -> Json | None:
    for condition in status.get("conditions") or ():
        for pattern in patterns:
            if (condition["type"], condition["status"]) == (pattern["type"], pattern.get("status", "True")):
                return condition  # type: ignore[no-any-return]
    return None


def match_success(policy: Json | None, completions: int, succeeded: Intervals) -> str:
    """The message of the first rule that is met; "" for none."""
    if not succeeded:
        return ""
    for number, rule in enumerate((policy or EMPTY).get("rules") or ()):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes") is not None:
            wanted = job_indexes.parse(rule["succeededIndexes"], completions)
            have = job_indexes.common(wanted, succeeded)
            met = bool(wanted) and (have == job_indexes.total(wanted) or (count is not None and have >= count))
        else:
            met = count is not None and job_indexes.total(succeeded) >= count
        if met:
            return f"Matched rules at index {number}"
    return ""
