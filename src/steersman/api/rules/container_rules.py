"""What the containers of a pod must look like: names, images, ports, environment, mounts, probes, resources.

Source of the facts: kubernetes `pkg/apis/core/validation/validation.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api.errors import Cause
from steersman.api.rules import context_rules, rules
from steersman.api.rules.rules import Causes, Object, chosen, not_negative
from steersman.kernel.value import EMPTY, EMPTY_LIST

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
SIDECAR_ONLY: Final = "may not be set for init containers without restartPolicy=Always"
NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_FIELD_PATHS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_RESOURCE_FIELDS: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


class Given(NamedTuple):
    """What the pod spec around its containers offers them."""

    volumes: frozenset[str]
    """Names that may be mounted."""
    claims: frozenset[str]
    """Names of claims that they may ask for."""
    pod: bool
    """A pod's own spec and not one in a template."""


def containers(out: Causes, path: str, spec: Object, given: Given) -> None:
    """All containers of a pod spec at `path`."""
    found, inits = spec.get("containers") or EMPTY_LIST, spec.get("initContainers") or EMPTY_LIST
    if not found:
        out.append(Cause.required(f"{path}.containers"))
    grace = spec.get("terminationGracePeriodSeconds", 30)
    seen: set[str] = set()
    for index, container in enumerate(found):
        at = f"{path}.containers[{index}]"
        _common(out, at, container, spec, given)
        _unique_name(out, at, container, seen)
        _lifecycle_and_probes(out, at, container, grace)
        chosen(out, f"{at}.restartPolicy", container.get("restartPolicy"), RESTART_POLICIES)
    _host_ports(out, f"{path}.containers", found)
    for index, container in enumerate(inits):
        at = f"{path}.initContainers[{index}]"
        _common(out, at, container, spec, given)
        _unique_name(out, at, container, seen)
        _host_ports(out, f"{path}.initContainers", [container])
        _init(out, at, container, grace)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}.ephemeralContainers[{index}]"
        _common(out, at, container, spec, given)
        target = container.get("targetContainerName")
        if target and all(other.get("name") != target for other in (*found, *inits)):
            out.append(Cause.not_found(f"{at}.targetContainerName", target))
        _unique_name(out, at, container, seen)
        for field in ("ports", "lifecycle", "resources", "resizePolicy", "restartPolicy", *PROBES):
            if container.get(field):
                out.append(Cause.forbidden(f"{at}.{field}", NOT_EPHEMERAL))
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    out.append(Cause.forbidden(f"{at}.volumeMounts[{number}].{field}", NOT_EPHEMERAL))


def _unique_name(out: Causes, path: str, container: Object, seen: set[str]) -> None:
    name = container.get("name")
    if not name:
        return
    if name in seen:
        out.append(Cause.duplicate(f"{path}.name", name))
    seen.add(name)


def _common(out: Causes, path: str, container: Object, spec: Object, given: Given) -> None:
    name, image = container.get("name"), container.get("image")
    if name:
        rules.named(out, f"{path}.name", name, rules.dns_label)
    else:
        out.append(Cause.required(f"{path}.name"))
    if not image:
        out.append(Cause.required(f"{path}.image"))
    elif given.pod and image != image.strip():
        out.append(Cause.invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    chosen(out, f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), MESSAGE_POLICIES)
    _ports(out, f"{path}.ports", container.get("ports") or ())
    for index, variable in enumerate(container.get("env") or ()):
        _variable(out, f"{path}.env[{index}]", variable)
    _env_from(out, f"{path}.envFrom", container.get("envFrom") or ())
    _mounts(out, path, container, given.volumes)
    chosen(out, f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    found = container.get("resources")
    if found:
        rules.requirements(out, f"{path}.resources", found)
        if found.get("claims"):
            _claims(out, f"{path}.resources.claims", found["claims"], given.claims)
    if container.get("resizePolicy"):
        _resize(out, f"{path}.resizePolicy", container["resizePolicy"], spec.get("restartPolicy"))
    context = container.get("securityContext")
    if context:
        context_rules.container_context(out, f"{path}.securityContext", context, spec.get("hostUsers") is False)


def _claims(out: Causes, path: str, found: Any, known: frozenset[str]) -> None:
    """The claims of devices that a container asks for: each of the pod's once, whole or some of its requests."""
    seen: set[str] = set()
    for index, claim in enumerate(found):
        at, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            out.append(Cause.required(at))
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            out.append(Cause.duplicate(at, name))
        else:
            if request:
                rules.named(out, f"{at}.request", request, rules.dns_label)
            if key in seen:
                out.append(Cause.duplicate(at, key))
            elif not request:
                out.extend(Cause.duplicate(at, name) for other in sorted(seen) if other.startswith(f"{name}/"))
            seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            unknown = Cause.not_found(at, name)
            detail = f"{unknown.message}: must be one of the names in pod.spec.resourceClaims{listed}"
            out.append(Cause(unknown.reason, detail, at))


def _resize(out: Causes, path: str, policies: Any, restart: Any) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, how = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            out.append(Cause.duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        chosen(out, path, resource, ("cpu", "memory"))
        chosen(out, path, how, ("NotRequired", "RestartContainer"))
        if restart == "Never" and how != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            out.append(Cause.invalid(path, how, detail))


def _ports(out: Causes, path: str, ports: Any) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        name = port.get("name")
        if name:
            problems = rules.port_name_problems(name)
            out.extend(Cause.invalid(f"{at}.name", name, problem) for problem in problems)
            if not problems and name in seen:
                out.append(Cause.duplicate(f"{at}.name", name))
            seen.add(name)
        if not port.get("containerPort"):
            out.append(Cause.required(f"{at}.containerPort"))
        else:
            rules.port_number(out, f"{at}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            rules.port_number(out, f"{at}.hostPort", port["hostPort"])
        chosen(out, f"{at}.protocol", port.get("protocol"), rules.PROTOCOLS)


def _host_ports(out: Causes, path: str, found: Any) -> None:
    """Two containers cannot both have one port of the host."""
    seen: set[str] = set()
    for index, container in enumerate(found):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            taken = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if taken in seen:
                out.append(Cause.duplicate(f"{path}[{index}].ports[{number}].hostPort", taken))
            seen.add(taken)


def _env_name(out: Causes, path: str, name: str) -> None:
    if not name.isascii() or not name.isprintable() or "=" in name:
        detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        out.append(Cause.invalid(path, name, detail))


def _variable(out: Causes, path: str, variable: Object) -> None:
    name = variable.get("name")
    if name:
        _env_name(out, f"{path}.name", name)
    else:
        out.append(Cause.required(f"{path}.name"))
    source = variable.get("valueFrom")
    if source is None:
        return
    at = f"{path}.valueFrom"
    given = [field for field in _ENV_SOURCES if field in source]
    if "fieldRef" in source:
        _field_ref(out, f"{at}.fieldRef", source["fieldRef"])
    if "resourceFieldRef" in source:
        wanted = source["resourceFieldRef"].get("resource")
        if not wanted:
            out.append(Cause.required(f"{at}.resourceFieldRef.resource"))
        elif wanted not in _RESOURCE_FIELDS and not wanted.startswith(("limits.hugepages-", "requests.hugepages-")):
            out.append(Cause.unsupported(f"{at}.resourceFieldRef.resource", wanted, _RESOURCE_FIELDS))
    for field in ("configMapKeyRef", "secretKeyRef"):
        if field in source:
            _key_ref(out, f"{at}.{field}", source[field])
    if not given:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        )
        out.append(Cause.invalid(at, "", detail))
    elif variable.get("value"):
        out.append(Cause.invalid(at, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        out.append(Cause.invalid(at, "", "may not have more than one field specified at a time"))


_KNOWN_PATHS: Final = frozenset(
    {"spec.restartPolicy", "spec.schedulerName", "status.phase", "status.nominatedNodeName"}
)
"""Fields that a pod can be selected by and yet cannot tell its containers."""


def _field_ref(out: Causes, path: str, ref: Object) -> None:
    wanted = ref.get("fieldPath")
    if not wanted:
        out.append(Cause.required(f"{path}.fieldPath"))
        return
    head, bracket, key = wanted.partition("['")
    if bracket and key.endswith("']"):
        if head not in ("metadata.labels", "metadata.annotations"):
            out.append(Cause.invalid(path, head, "does not support subscript"))
            return
        key = key[:-2]
        judged = key.lower() if head == "metadata.annotations" else key
        out.extend(Cause.invalid(path, key, problem) for problem in rules.qualified_name(judged))
    elif wanted not in _FIELD_PATHS:
        known = wanted in _KNOWN_PATHS
        detail = f"error converting fieldPath: field label not supported: {wanted}"
        at = f"{path}.fieldPath"
        out.append(Cause.unsupported(at, wanted, _FIELD_PATHS) if known else Cause.invalid(at, wanted, detail))


def _key_ref(out: Causes, path: str, ref: Object) -> None:
    rules.named(out, f"{path}.name", ref.get("name") or "", rules.dns_subdomain)
    if not ref.get("key"):
        out.append(Cause.required(f"{path}.key"))
    else:
        rules.named(out, f"{path}.key", ref["key"], rules.config_key_problems)


def _env_from(out: Causes, path: str, sources: Any) -> None:
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        if source.get("prefix"):
            _env_name(out, f"{at}.prefix", source["prefix"])
        given = [field for field in ("configMapRef", "secretRef") if field in source]
        for field in given:
            name = source[field].get("name")
            if not name:
                out.append(Cause.required(f"{at}.{field}.name"))
            else:
                rules.named(out, f"{at}.{field}.name", name, rules.dns_subdomain)
        if not given:
            out.append(Cause.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            out.append(Cause.invalid(path, "", "may not have more than one field specified at a time"))


def _mounts(out: Causes, path: str, container: Object, volumes: frozenset[str]) -> None:
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}.volumeMounts[{index}]"
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            out.append(Cause.required(f"{at}.name"))
        if name not in volumes:
            out.append(Cause.not_found(f"{at}.name", name))
        if not where:
            out.append(Cause.required(f"{at}.mountPath"))
        if where in seen:
            out.append(Cause.invalid(f"{at}.mountPath", where, "must be unique"))
        seen.add(where)
        if mount.get("subPath") and mount.get("subPathExpr"):
            detail = "subPathExpr and subPath are mutually exclusive"
            out.append(Cause.invalid(f"{at}.subPathExpr", mount["subPathExpr"], detail))
        for field in ("subPath", "subPathExpr"):
            rules.descending_path(out, f"{path}.volumeMounts.{field}", mount.get(field) or "")
    for index, device in enumerate(container.get("volumeDevices") or ()):
        at = f"{path}.volumeDevices[{index}]"
        if (device.get("name") or "") not in volumes:
            out.append(Cause.not_found(f"{at}.name", device.get("name") or ""))
        if not device.get("devicePath"):
            out.append(Cause.required(f"{at}.devicePath"))


def _init(out: Causes, path: str, container: Object, grace: int) -> None:
    chosen(out, f"{path}.restartPolicy", container.get("restartPolicy"), RESTART_POLICIES)
    if container.get("restartPolicy") == "Always":
        _lifecycle_and_probes(out, path, container, grace)
        return
    for field in ("lifecycle", *PROBES):
        if field in container:
            out.append(Cause.forbidden(f"{path}.{field}", SIDECAR_ONLY))


def _lifecycle_and_probes(out: Causes, path: str, container: Object, grace: int) -> None:
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or EMPTY).get(hook)
        if handler is not None:
            _handler(out, f"{path}.lifecycle.{hook}", handler, grace)
    for field in PROBES:
        probe = container.get(field)
        if probe is not None:
            _probe(out, f"{path}.{field}", probe, grace, field)


_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def _probe(out: Causes, path: str, probe: Object, grace: int, field: str) -> None:
    _handler(out, path, probe, grace)
    not_negative(out, path, probe, *_PROBE_NUMBERS)
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and own <= 0:
        out.append(Cause.invalid(f"{path}.terminationGracePeriodSeconds", own, "must be greater than 0"))
    if field == "readinessProbe":
        if own is not None:
            detail = "must not be set for readinessProbes"
            out.append(Cause.invalid(f"{path}.terminationGracePeriodSeconds", own, detail))
    elif probe.get("successThreshold", 1) != 1:
        out.append(Cause.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))


def _handler(out: Causes, path: str, handler: Mapping[str, Any], grace: int) -> None:
    given = [name for name in HANDLERS if name in handler]
    if not given:
        out.append(Cause.required(path, "must specify a handler type"))
        return
    out.extend(Cause.forbidden(f"{path}.{n}", "may not specify more than 1 handler type") for n in given[1:])
    kind = given[0]
    at, action = f"{path}.{kind}", handler[kind]
    if kind == "exec":
        if not action.get("command"):
            out.append(Cause.required(f"{at}.command"))
    elif kind == "sleep":
        if not 0 <= action.get("seconds", 0) <= grace:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            out.append(Cause.invalid(at, action.get("seconds", 0), detail))
    else:
        rules.port(out, f"{at}.port", action.get("port", 0))
    if kind == "httpGet":
        chosen(out, f"{at}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
