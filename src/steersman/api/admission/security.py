"""PodSecurity: namespaces say by labels which Pod Security Standard holds in them.

`enforce` refuses pods, `warn` warns of pods and of what makes pods; `audit` tells the audit log. Source of the
facts: pod-security-admission `admission/admission.go` and `api/helpers.go`, release 1.36, with its default
configuration: everything is privileged where a namespace says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api import errors
from steersman.api.admission.plugin import CREATE, UPDATE, Answer, Attempt, Plugin, Verdict
from steersman.api.errors import Cause
from steersman.api.rules import pod_security
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
POD: Final = ("", "Pod")
NAMESPACE: Final = ("", "Namespace")
LABELS: Final = "pod-security.kubernetes.io/"
LEVELS: Final = ("privileged", "baseline", "restricted")
NOTES: Final = "pod-security.kubernetes.io/"
"""How annotations for the audit log begin."""
MODES: Final = ("enforce", "audit", "warn")
MAX_PODS: Final = 3000
"""Pods of a namespace that are looked at when its level is raised (Kubernetes' number)."""
TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "Job"): ("spec", "template"),
}
"""Where kinds that make pods have their template."""


class Level(NamedTuple):
    """A level of one version of the standards."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, meta: Json, spec: Json) -> list[pod_security.Forbidden]:
        """What it forbids of a pod."""
        minor = pod_security.LATEST if self.version == "latest" else int(self.version.removeprefix("v1."))
        return pod_security.violations(self.level, minor, meta.get("annotations") or EMPTY, spec)


class Policy(NamedTuple):
    """What a namespace asks for, and what is wrong with its labels."""

    enforce: Level = Level()
    audit: Level = Level()
    warn: Level = Level()
    causes: tuple[Cause, ...] = ()


NOTHING: Final = Policy()


def policy_of(labels: Json) -> Policy:
    """The policy that a namespace's labels state."""
    for name in labels:
        if name.startswith(LABELS):
            break
    else:
        return NOTHING
    causes: list[Cause] = []
    found: dict[str, Level] = {}
    for mode in MODES:
        level, version = labels.get(LABELS + mode), labels.get(f"{LABELS}{mode}-version")
        place = f"metadata.labels[{LABELS}{mode}]"
        if level is not None and level not in LEVELS:
            causes.append(Cause.invalid(place, level, f"must be one of {', '.join(LEVELS)}"))
            level = "restricted" if mode == "enforce" else "privileged"
        if version is not None and version != "latest" and not re.fullmatch(r"v1\.([0-9]|[1-9][0-9]{0,5})", version):
            place = f"metadata.labels[{LABELS}{mode}-version]"
            causes.append(Cause.invalid(place, version, 'must be "latest" or "v1.x"'))
            version = "latest"
        found[mode] = Level(level or "privileged", version or "latest")
    if LABELS + "warn" not in labels and labels.get(LABELS + "enforce") in LEVELS[1:]:
        given = f"{LABELS}warn-version" in labels
        enforce = found["enforce"]
        found["warn"] = Level(enforce.level, found["warn"].version if given else enforce.version)
    return Policy(found["enforce"], found["audit"], found["warn"], tuple(causes))


class PodSecurity(Plugin):
    """See the module's text."""

    name = "PodSecurity"
    kinds = (POD, NAMESPACE, *TEMPLATES)
    operations = (CREATE, UPDATE)
    subresources = ("", "ephemeralcontainers", "resize")

    def validate(self, attempt: Attempt) -> Answer:
        """Refuses pods that violate what is enforced, and warns."""
        gk = attempt.kind.gk
        if gk == NAMESPACE:
            return None if attempt.subresource else _namespace(attempt)
        namespace = attempt.store.get(Key("", "Namespace", "", attempt.key.namespace))
        labels = EMPTY if namespace is None else namespace.meta.value.get("labels") or EMPTY
        policy = policy_of(labels)
        body = attempt.body
        if policy is NOTHING or body is None:
            return None
        if gk != POD:
            if attempt.subresource:
                return None
            template = _template(body, TEMPLATES[gk])
            _note(attempt, policy, template)
            return _warned(policy.warn, template)
        if attempt.old is not None and not _is_significant(attempt.old.spec_value or EMPTY, body["spec"]):
            return None
        if attempt.audited:
            attempt.note(f"{NOTES}enforce-policy", str(policy.enforce))
        _note(attempt, policy, body)
        found = policy.enforce.violations(body["metadata"], body["spec"])
        if found:
            detail = f"violates PodSecurity {errors.quote(str(policy.enforce))}: {pod_security.told(found)}"
            raise attempt.forbidden(detail)
        return _warned(policy.warn, body)


def _template(body: Json, path: tuple[str, ...]) -> Json:
    found: Any = body
    for name in path:
        found = found.get(name) or EMPTY
    return found  # type: ignore[no-any-return]


def _note(attempt: Attempt, policy: Policy, pod: Json) -> None:
    """What a pod violates of the level that is audited, for the audit log."""
    if not attempt.audited:
        return
    found = policy.audit.violations(pod.get("metadata") or EMPTY, pod.get("spec") or EMPTY)
    if found:
        told = f"would violate PodSecurity {errors.quote(str(policy.audit))}: {pod_security.told(found)}"
        attempt.note(f"{NOTES}audit-violations", told)


def _warned(level: Level, pod: Json) -> Verdict | None:
    found = level.violations(pod.get("metadata") or EMPTY, pod.get("spec") or EMPTY)
    if not found:
        return None
    return Verdict(warnings=(f"would violate PodSecurity {errors.quote(str(level))}: {pod_security.told(found)}",))


def _is_significant(old: Json, new: Json) -> bool:
    """Whether an update brings containers or images that have not been judged."""
    for group in ("containers", "initContainers"):
        before, after = old.get(group) or (), new.get(group) or ()
        if len(before) != len(after):
            return True
        if any(a.get("image") != b.get("image") for a, b in zip(before, after, strict=True)):
            return True
    known = {one.get("name"): one.get("image") for one in old.get("ephemeralContainers") or ()}
    added = new.get("ephemeralContainers") or ()
    return any(one.get("name") not in known or known[one.get("name")] != one.get("image") for one in added)


def _namespace(attempt: Attempt) -> Verdict | None:
    assert attempt.body is not None
    policy = policy_of(attempt.body["metadata"].get("labels") or EMPTY)
    before = NOTHING
    if attempt.old is not None:
        before = policy_of(attempt.old.meta.value.get("labels") or EMPTY)
    if policy.causes and policy.causes != before.causes:
        raise errors.invalid("Namespace", attempt.key.name, policy.causes)
    enforce = policy.enforce
    if attempt.old is None or enforce == before.enforce or enforce.level == "privileged":
        return None
    if enforce.version == before.enforce.version and LEVELS.index(enforce.level) <= LEVELS.index(before.enforce.level):
        return None
    warnings = _existing(attempt, enforce)
    return Verdict(warnings=warnings) if warnings else None


def _existing(attempt: Attempt, enforce: Level) -> tuple[str, ...]:
    """What the pods there are would violate: one line a kind of violation, naming the first pod and counting."""
    name = attempt.key.name
    pods = _prioritized(list(attempt.store.list(POD, name)))
    out: list[str] = []
    if len(pods) > MAX_PODS:
        out.append(
            f"new PodSecurity enforce level only checked against the first {MAX_PODS} of {len(pods)} existing pods"
        )
    found: dict[str, list[str]] = {}
    for pod in pods[:MAX_PODS]:
        forbidden = enforce.violations(pod.meta.value, pod.spec_value or EMPTY)
        if forbidden:
            found.setdefault(", ".join(reason for reason, _ in forbidden), []).append(pod.key.name)
    if found:
        level = errors.quote(str(enforce))
        out.append(f"existing pods in namespace {errors.quote(name)} violate the new PodSecurity enforce level {level}")
    lines = []
    for text, names in found.items():
        others = len(names) - 1
        more = f" (and {others} other {'pod' if others == 1 else 'pods'})" if others else ""
        lines.append(f"{min(names)}{more}: {text}")
    return (*out, *sorted(lines))


def _prioritized(pods: list[Object]) -> list[Object]:
    """One pod of each controller first: those of one controller are alike."""
    seen: set[str] = set()
    first: list[Object] = []
    rest: list[Object] = []
    for pod in pods:
        owners = pod.meta.value.get("ownerReferences") or ()
        owner = next((str(one.get("uid")) for one in owners if one.get("controller")), "")
        (rest if owner and owner in seen else first).append(pod)
        seen.add(owner)
    return [*first, *rest]
