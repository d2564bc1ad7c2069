"""What an APIService must look like, and the ones that stand for what this server serves itself.

Source of the facts: kube-aggregator pkg/apis/apiregistration/validation and pkg/controllers/autoregister, and
cmd/kube-apiserver/app/aggregator.go (priorities), release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import names
from steersman.api.errors import Cause
from steersman.api.filling import inside, unset
from steersman.api.rules.flow_rules import spec_of
from steersman.api.rules.rules import Causes, Object

GROUP: Final = "apiregistration.k8s.io"
GK: Final = (GROUP, "APIService")
API_VERSION: Final = f"{GROUP}/v1"
MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
"""Label of the ones that nobody made: `onstart` are put back when the server starts, `true` whenever they change."""
ON_START, ALWAYS = "onstart", "true"
MAX_GROUP_PRIORITY: Final = 20_000
MAX_VERSION_PRIORITY: Final = 1_000
HTTPS: Final = 443
CUSTOM_PRIORITY: Final = (1000, 100)
"""groupPriorityMinimum and versionPriority of the groups of custom kinds."""
STATUSES: Final = ("False", "True", "Unknown")


def fill_spec(spec: Any) -> Any:
    """The spec of an APIService, complete."""
    return inside(spec, "service", lambda service: unset(service, {"port": HTTPS}))


def service(out: Causes, name: str, parts: Mapping[str, Any]) -> None:
    """An APIService by the name of `name`."""
    spec: Object = spec_of(parts)
    group, version = spec.get("group") or "", spec.get("version") or ""
    wanted = f"{version}.{group}"
    if name != wanted:
        told = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        out.append(Cause.invalid("metadata.name", name, told))
    if not group and version != "v1":
        out.append(Cause.required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    out += [Cause.invalid("spec.group", group, told) for told in (names.dns1123_subdomain(group) if group else ())]
    out += [Cause.invalid("spec.version", version, told) for told in names.dns1035_label(version)]
    for field, most in (("groupPriorityMinimum", MAX_GROUP_PRIORITY), ("versionPriority", MAX_VERSION_PRIORITY)):
        priority = spec.get(field) or 0
        if not 0 < priority <= most:
            out.append(Cause.invalid(f"spec.{field}", priority, f"must be positive and less than {most}"))
    _behind(out, spec)


def _behind(out: Causes, spec: Object) -> None:
    """Where an APIService leads, and how its answers are trusted."""
    bundle, unchecked, found = spec.get("caBundle") or "", spec.get("insecureSkipTLSVerify"), spec.get("service")
    if found is None:
        if bundle:
            told = "local APIServices may not have a caBundle"
            out.append(Cause.invalid("spec.caBundle", f"{len(bundle) * 3 // 4} bytes", told))
        if unchecked:
            told = "local APIServices may not have insecureSkipTLSVerify"
            out.append(Cause.invalid("spec.insecureSkipTLSVerify", unchecked, told))
        return
    out += [Cause.required(f"spec.service.{field}", "") for field in ("namespace", "name") if not found.get(field)]
    port = found.get("port") or 0
    if not 0 < port < 1 << 16:
        told = "port is not valid: must be between 1 and 65535, inclusive"
        out.append(Cause.invalid("spec.service.port", port, told))
    if unchecked and bundle:
        told = "may not be true if caBundle is present"
        out.append(Cause.invalid("spec.insecureSkipTLSVerify", unchecked, told))


def status(out: Causes, path: str, found: Object) -> None:
    """The status of an APIService."""
    for index, condition in enumerate(found.get("conditions") or ()):
        if condition.get("status") not in STATUSES:
            at = f"{path}.conditions[{index}].status"
            out.append(Cause.unsupported(at, condition.get("status") or "", STATUSES))


def local(group: str, version: str, priority: tuple[int, int], managed: str) -> dict[str, Any]:
    """The APIService of a group version that this server serves itself; `priority` is that of group and version."""
    return {
        "apiVersion": API_VERSION,
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {MANAGED: managed}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": priority[0],
            "versionPriority": priority[1],
        },
    }
