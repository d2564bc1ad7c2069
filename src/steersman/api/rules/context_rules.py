"""What security contexts must look like, those of pods and those of containers, and what an operating system forbids.

Source of the facts: kubernetes `pkg/apis/core/validation/validation.go`, release 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from steersman.api.errors import Cause
from steersman.api.references import CONTAINERS
from steersman.api.rules import internal, rules
from steersman.api.rules.rules import Causes, Object, chosen
from steersman.kernel.value import EMPTY

PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
OPERATING_SYSTEMS: Final = ("linux", "windows")
MAX_SYSCTL: Final = 253
MAX_PATH: Final = 4095  # PATH_MAX of Linux, less its final zero
NO_WINDOWS: Final = "cannot be set for a windows pod"
_SYSCTL: Final = re.compile(
    r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII
)  # bounded by MAX_SYSCTL before it is tried
_SYSCTL_TOLD: Final = f"^{_SYSCTL.pattern}$"
_POD_LINUX: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser"),
    *("runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"),
)
_CONTAINER_LINUX: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
)


def pod_context(out: Causes, path: str, spec: Object) -> None:
    """The securityContext of a pod's spec at `path`."""
    context = spec.get("securityContext")
    if not context:
        if spec.get("shareProcessNamespace") and spec.get("hostPID"):
            _share(out, f"{path}.securityContext")
        return
    at = f"{path}.securityContext"
    _ids(out, at, context, ("fsGroup", "runAsUser", "runAsGroup"))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        _id(out, f"{at}.supplementalGroups[{index}]", group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        _share(out, at)
    _sysctls(out, f"{at}.sysctls", context.get("sysctls") or ())
    chosen(out, f"{at}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"))
    _profiles(out, at, context)
    chosen(out, f"{at}.supplementalGroupsPolicy", context.get("supplementalGroupsPolicy"), ("Merge", "Strict"))
    chosen(out, f"{at}.seLinuxChangePolicy", context.get("seLinuxChangePolicy"), ("MountOption", "Recursive"))


def _share(out: Causes, path: str) -> None:
    detail = "ShareProcessNamespace and HostPID cannot both be enabled"
    out.append(Cause.invalid(f"{path}.shareProcessNamespace", True, detail))


def container_context(out: Causes, path: str, context: Object, own_users: bool) -> None:
    """The securityContext of a container. `own_users`: the pod has a user namespace of its own."""
    _ids(out, path, context, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            out.append(Cause.unsupported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        elif mount == "Unmasked" and not own_users:
            out.append(Cause.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    _seccomp(out, f"{path}.seccompProfile", context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        capable = "CAP_SYS_ADMIN" in ((context.get("capabilities") or EMPTY).get("add") or ())
        wrong = [
            *(["`privileged` to true"] if context.get("privileged") else []),
            *(["`capabilities.Add` CAP_SYS_ADMIN"] if capable else []),
        ]
        for what in wrong:
            detail = f"cannot set `allowPrivilegeEscalation` to false and {what}"
            out.append(Cause.invalid(path, internal.shown(context, internal.SECURITY_CONTEXT), detail))
    _apparmor(out, f"{path}.appArmorProfile", context.get("appArmorProfile"))


def host_users(out: Causes, path: str, spec: Object) -> None:
    """A pod with users of its own has namespaces of its own."""
    if spec.get("hostUsers") is not False:
        return
    for field, told in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            out.append(Cause.forbidden(f"{path}.{told}", "when `hostUsers` is false"))
    for at, container in _containers(path, spec):
        if container.get("volumeDevices"):
            out.append(Cause.forbidden(f"{at}.volumeDevices", "when `hostUsers` is false"))


def operating_system(out: Causes, path: str, spec: Object) -> None:
    """What a pod's spec says of its operating system, and what that one does not have."""
    found = spec.get("os")
    if found is None:
        return
    name = found.get("name")
    if not name:
        out.append(Cause.required(f"{path}.os.name"))
    elif name not in OPERATING_SYSTEMS:
        out.append(Cause.unsupported(f"{path}.os", name, OPERATING_SYSTEMS))
    elif name == "linux":
        _linux(out, path, spec)
    else:
        _windows(out, path, spec)


def _linux(out: Causes, path: str, spec: Object) -> None:
    for at, holder in ((path, spec), *_containers(path, spec)):
        if "windowsOptions" in (holder.get("securityContext") or EMPTY):
            detail = "windows options cannot be set for a linux pod"
            out.append(Cause.forbidden(f"{at}.securityContext.windowsOptions", detail))


def _windows(out: Causes, path: str, spec: Object) -> None:
    own = spec.get("securityContext") or EMPTY
    wrong = [f"securityContext.{field}" for field in _POD_LINUX[:2] if field in own]
    wrong += [field for field in ("hostUsers",) if field in spec]
    wrong += [field for field in ("hostPID", "hostIPC") if spec.get(field)]
    wrong += [f"securityContext.{field}" for field in _POD_LINUX[2:6] if field in own]
    wrong += [field for field in ("shareProcessNamespace",) if field in spec]
    wrong += [f"securityContext.{field}" for field in _POD_LINUX[6:] if field in own]
    out.extend(Cause.forbidden(f"{path}.{field}", NO_WINDOWS) for field in wrong)
    for at, container in _containers(path, spec):
        context = container.get("securityContext") or EMPTY
        fields = [field for field in _CONTAINER_LINUX if field in context]
        out.extend(Cause.forbidden(f"{at}.securityContext.{field}", NO_WINDOWS) for field in fields)


def _containers(path: str, spec: Object) -> Iterator[tuple[str, Object]]:
    for group in CONTAINERS:
        for index, container in enumerate(spec.get(group) or ()):
            yield f"{path}.{group}[{index}]", container


def _ids(out: Causes, path: str, context: Object, fields: tuple[str, ...]) -> None:
    for field in fields:
        if context.get(field) is not None:
            _id(out, f"{path}.{field}", context[field])


def _id(out: Causes, path: str, number: int) -> None:
    """Users and groups are numbers of 31 bits."""
    if not 0 <= number <= rules.MAX_INT32:
        out.append(Cause.invalid(path, number, f"must be between 0 and {rules.MAX_INT32}, inclusive"))


def _sysctls(out: Causes, path: str, found: Any) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(found):
        at, name = f"{path}[{index}].name", sysctl.get("name") or ""
        if not name:
            out.append(Cause.required(at))
        elif len(name) > MAX_SYSCTL or not _SYSCTL.fullmatch(name):
            detail = f"must have at most {MAX_SYSCTL} characters and match regex {_SYSCTL_TOLD}"
            out.append(Cause.invalid(at, name, detail))
        elif name in seen:
            out.append(Cause.duplicate(at, name))
        seen.add(name)


def _profiles(out: Causes, path: str, context: Object) -> None:
    _seccomp(out, f"{path}.seccompProfile", context.get("seccompProfile"))
    _apparmor(out, f"{path}.appArmorProfile", context.get("appArmorProfile"))


def _seccomp(out: Causes, path: str, profile: Any) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        out.append(Cause.required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILES:
        out.append(Cause.unsupported(f"{path}.type", kind, PROFILES))
    at = f"{path}.localhostProfile"
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            out.append(Cause.invalid(at, internal.shown(profile, internal.SECCOMP), detail))
    elif local is None:
        out.append(Cause.required(at, "must be set when seccomp type is Localhost"))
    else:
        rules.descending_path(out, at, local)


def _apparmor(out: Causes, path: str, profile: Any) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    at = f"{path}.localhostProfile"
    if not kind:
        out.append(Cause.required(f"{path}.type", "type is required when appArmorProfile is set"))
    elif kind not in PROFILES:
        out.append(Cause.unsupported(f"{path}.type", kind, PROFILES))
    elif kind != "Localhost":
        if local is not None:
            out.append(Cause.invalid(at, local, "can only be set when AppArmor type is Localhost"))
    elif not local:
        out.append(Cause.required(at, "must be set when AppArmor type is Localhost"))
    elif local != local.strip():
        out.append(Cause.invalid(at, local, "must not be padded with whitespace"))
    if kind == "Localhost" and local and len(local.encode("utf-8", "surrogatepass")) > MAX_PATH:
        out.append(Cause.too_long(at, MAX_PATH))
