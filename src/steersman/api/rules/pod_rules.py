"""What the spec and the status of a pod, and a pod template, must look like.

Windows options are not judged. Source of the facts: kubernetes `pkg/apis/core/validation/validation.go`, release 1.36.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any, Final

from steersman.api import names
from steersman.api.errors import Cause
from steersman.api.rules import container_rules, context_rules, internal, rules, scheduling_rules, volume_rules
from steersman.api.rules.rules import MAX_INT32, Causes, Object, chosen
from steersman.kernel.value import EMPTY

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
MAX_NAMESERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_CHARS: Final = 2048
MAX_HOSTNAME: Final = 64
_LABELS: Final = ("hostname", "subdomain")


def pod_spec(out: Causes, path: str, spec: Object) -> None:
    """The spec of a Pod."""
    _spec(out, path, spec, pod=True)
    if not spec.get("serviceAccountName"):
        _no_tokens(out, path, spec)


def pod_create(out: Causes, path: str, spec: Object) -> None:
    """What a pod's spec may not have when the pod is created."""
    if spec.get("ephemeralContainers"):
        out.append(Cause.forbidden(f"{path}.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        out.append(Cause.forbidden(f"{path}.nodeName", detail))


def template(out: Causes, path: str, value: Any) -> None:
    """A pod template: its labels, annotations and spec."""
    value = value or EMPTY
    template_metadata(out, path, value)
    spec = value.get("spec") or EMPTY
    _spec(out, f"{path}.spec", spec, pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        out.append(Cause.forbidden(f"{path}.spec.ephemeralContainers", detail))


def template_metadata(out: Causes, path: str, value: Object) -> None:
    """The labels and annotations of a pod template."""
    meta = value.get("metadata") or EMPTY
    rules.labels(out, f"{path}.labels", meta.get("labels"))
    for key in meta.get("annotations") or ():
        problems = rules.qualified_name(key.lower())
        out.extend(Cause.invalid(f"{path}.annotations", key, problem) for problem in problems)


def _spec(out: Causes, path: str, spec: Object, *, pod: bool) -> None:
    mounted = volume_rules.volumes(out, f"{path}.volumes", spec.get("volumes"))
    claims = _claims(out, f"{path}.resourceClaims", spec.get("resourceClaims"))
    container_rules.containers(out, path, spec, container_rules.Given(mounted, claims, pod))
    rules.requirements(out, f"{path}.resources", spec.get("resources"))
    if spec.get("hostNetwork"):
        _host_network(out, path, spec, pod)
    chosen(out, f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    chosen(out, f"{path}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES)
    rules.labels(out, f"{path}.nodeSelector", spec.get("nodeSelector"))
    context_rules.pod_context(out, path, spec)
    scheduling_rules.affinity(out, f"{path}.affinity", spec.get("affinity"))
    _dns_config(out, f"{path}.dnsConfig", spec)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        at = f"{path}.readinessGates[{index}].conditionType"
        rules.named(out, at, gate.get("conditionType") or "", rules.qualified_name)
    scheduling_rules.gates(out, f"{path}.schedulingGates", spec.get("schedulingGates"))
    scheduling_rules.spread(out, f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints"))
    context_rules.host_users(out, path, spec)
    _hostname_override(out, path, spec)
    _names(out, path, spec, "serviceAccountName", "nodeName")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        detail = f"must be between 1 and {MAX_INT32}, inclusive"
        out.append(Cause.invalid(f"{path}.activeDeadlineSeconds", deadline, detail))
    for field in _LABELS:
        if spec.get(field):
            rules.named(out, f"{path}.{field}", spec[field], rules.dns_label)
    scheduling_rules.tolerations(out, f"{path}.tolerations", spec.get("tolerations"))
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        ip(out, f"{path}.hostAliases[{index}].ip", alias.get("ip") or "")
        for number, name in enumerate(alias.get("hostnames") or ()):
            at = f"{path}.hostAliases[{index}].hostnames[{number}]"
            rules.named(out, at, name, rules.dns_subdomain)
    _names(out, path, spec, "priorityClassName", "runtimeClassName")
    chosen(out, f"{path}.preemptionPolicy", spec.get("preemptionPolicy"), PREEMPTION_POLICIES)
    if spec.get("overhead"):
        rules.requirements(out, f"{path}.overhead", {"limits": spec["overhead"]})
    context_rules.operating_system(out, path, spec)


def _names(out: Causes, path: str, spec: Object, *fields: str) -> None:
    for field in fields:
        if spec.get(field):
            rules.named(out, f"{path}.{field}", spec[field], rules.dns_subdomain)


def _no_tokens(out: Causes, path: str, spec: Object) -> None:
    """Without an account there is nobody whose token could be mounted."""
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or EMPTY).get("sources") or ()):
            if "serviceAccountToken" in source:
                at = f"{path}.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                out.append(Cause.forbidden(at, "must not be specified when serviceAccountName is not set"))


def _claims(out: Causes, path: str, found: Any) -> frozenset[str]:
    """The claims of devices. Gives their names, which containers may ask for."""
    if not found:
        return frozenset()
    taken: set[str] = set()
    for index, claim in enumerate(found):
        at, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            out.append(Cause.required(f"{at}.name"))
        elif name in taken:
            out.append(Cause.duplicate(f"{at}.name", name))
        else:
            rules.named(out, f"{at}.name", name, rules.dns_label)
            taken.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(given) != 1:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
                if given
                else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
            out.append(Cause.invalid(at, internal.shown(claim, internal.POD_CLAIM), detail))
        for field in given:
            rules.named(out, f"{at}.{field}", claim[field], rules.dns_subdomain)
    return frozenset(taken)


def _hostname_override(out: Causes, path: str, spec: Object) -> None:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    at = f"{path}.hostnameOverride"
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            out.append(Cause.forbidden(at, f"may not be specified when {field} is true"))
    if len(name) > MAX_HOSTNAME:
        out.append(Cause.too_long(at, MAX_HOSTNAME))
    rules.named(out, at, name, rules.dns_subdomain)


def _host_network(out: Causes, path: str, spec: Object, pod: bool) -> None:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (pod or host) and host != port.get("containerPort", 0):
                at = f"{path}.containers[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                out.append(Cause.invalid(at, host, detail))


def _dns_config(out: Causes, path: str, spec: Object) -> None:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            out.append(Cause.required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            out.append(Cause.required(f"{path}.nameservers", detail))
            return
    if config is None:
        return
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > MAX_NAMESERVERS:
        detail = f"must not have more than {MAX_NAMESERVERS} nameservers"
        out.append(Cause.invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        ip(out, f"{path}.nameservers[{index}]", server)
    if len(searches) > MAX_SEARCHES:
        detail = f"must not have more than {MAX_SEARCHES} search paths"
        out.append(Cause.invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches)) > MAX_SEARCH_CHARS:
        detail = f"must not have more than {MAX_SEARCH_CHARS} characters (including spaces) in the search list"
        out.append(Cause.invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            rules.named(out, f"{path}.searches[{index}]", search.removesuffix("."), names.search_domain)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            out.append(Cause.required(f"{path}.options[{index}]", "must not be empty"))


_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}", re.ASCII)
"""Every pod has an address of its own, so remembering does not help; this is ten times as fast as `ip_address`."""


def _is_ip(text: str) -> bool:
    if _IPV4.fullmatch(text):
        return True
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def ip(out: Causes, path: str, text: str) -> None:
    """An address of IPv4 or IPv6."""
    if not _is_ip(text):
        out.append(Cause.invalid(path, text, names.NOT_AN_IP))


def pod_status(out: Causes, path: str, status: Object) -> None:
    """The status of a Pod."""
    phase = status.get("phase")
    if phase and phase not in PHASES:
        chosen(out, f"{path}.phase", phase, PHASES)
    for field in ("podIPs", "hostIPs"):
        for address in status.get(field, ()):
            text = address.get("ip") or ""
            if not _IPV4.fullmatch(text):
                ip(out, f"{path}.{field}[{status[field].index(address)}]", text)
    name = status.get("nominatedNodeName")
    if name:
        rules.named(out, f"{path}.nominatedNodeName", name, rules.dns_subdomain)
