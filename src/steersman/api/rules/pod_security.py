"""The Pod Security Standards: what the levels baseline and restricted forbid in a pod's spec.

A check answers a (reason, detail) for what it forbids, or None; checks came and changed with releases, and a namespace
can ask for those of an older one. Source of the facts: "Pod Security Standards" in the Kubernetes documentation;
pod-security-admission `policy/`, release 1.36, for the versions and the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from steersman.api.errors import quote
from steersman.api.references import CONTAINERS
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
Forbidden = tuple[str, str]
LATEST: Final = 35
"""The minor version after which no check has changed."""
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
CAPABILITIES: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
"""Those that a container may add: the runtime's defaults."""
SAFE_VOLUMES: Final = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    )
)
"""Sources of volumes that reach no file or device of the node."""
SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
SYSCTLS: Final = (
    (0, "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start"),
    (0, "net.ipv4.ping_group_range net.ipv4.tcp_syncookies"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (32, "net.ipv4.tcp_rmem net.ipv4.tcp_wmem"),
)
"""Since which minor version which sysctls are safe."""
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
PROFILES: Final = ("RuntimeDefault", "Localhost")


class Pod(NamedTuple):
    """What is judged."""

    notes: Json
    """Annotations."""
    spec: Json
    minor: int
    """The version of the standard."""

    @property
    def context(self) -> Json:
        """The security context of the pod."""
        return self.spec.get("securityContext") or EMPTY

    @property
    def containers(self) -> Iterator[tuple[str, Json, Json]]:
        """(name, container, its security context), in Kubernetes' order."""
        for group in CONTAINERS:
            for container in self.spec.get(group) or ():
                yield str(container.get("name", "")), container, container.get("securityContext") or EMPTY

    @property
    def windows(self) -> bool:
        """Whether it says that it runs on Windows."""
        return (self.spec.get("os") or EMPTY).get("name") == "windows"

    @property
    def own_users(self) -> bool:
        """Whether it has a user namespace of its own, which relaxes some checks since 1.35."""
        return self.minor >= 35 and self.spec.get("hostUsers") is False


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _plural(word: str, items: Any) -> str:
    return word if len(items) == 1 else word + "s"


def _named(word: str, items: list[str]) -> str:
    return f"{_plural(word, items)} {_quoted(items)}"


def _setters(pod: bool, containers: list[str]) -> str:
    return " and ".join([*(["pod"] if pod else []), *([_named("container", containers)] if containers else [])])


# -- baseline --------------------------------------------------------------------------------------------------


def _apparmor(pod: Pod) -> Forbidden | None:
    values: set[str] = set()

    def bad(context: Json) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type", "") in PROFILES:
            return False
        values.add(profile.get("type", ""))
        return True

    in_pod = bad(pod.context)
    setters = _setters(in_pod, [name for name, _, context in pod.containers if bad(context)])
    noted = [
        f"{key}={quote(value)}"
        for key, value in sorted(pod.notes.items())
        if key.startswith(APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    ]
    if noted:
        setters = " and ".join([part for part in (setters, _plural("annotation", noted)) if part])
    if not setters:
        return None
    listed = [*sorted(values), *noted]
    detail = f"{setters} must not set AppArmor profile type to {_quoted(listed)}"
    return _plural("forbidden AppArmor profile", listed), detail


def _capabilities(pod: Pod) -> Forbidden | None:
    found: set[str] = set()
    bad = []
    for name, _, context in pod.containers:
        added = set((context.get("capabilities") or EMPTY).get("add") or ()) - CAPABILITIES
        found |= added
        if added:
            bad.append(name)
    if not bad:
        return None
    what = _quoted(sorted(found))
    detail = f"{_named('container', bad)} must not include {what} in securityContext.capabilities.add"
    return "non-default capabilities", detail


def _namespaces(pod: Pod) -> Forbidden | None:
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return ("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: Pod) -> Forbidden | None:
    found = [str(volume.get("name")) for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    return ("hostPath volumes", _named("volume", found)) if found else None


def _host_ports(pod: Pod) -> Forbidden | None:
    ports: set[str] = set()
    bad = []
    for name, container, _ in pod.containers:
        found = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        ports |= found
        if found:
            bad.append(name)
    if not bad:
        return None
    uses = "uses" if len(bad) == 1 else "use"
    return "hostPort", f"{_named('container', bad)} {uses} {_plural('hostPort', ports)} {', '.join(sorted(ports))}"


def _hosts(pod: Pod) -> Forbidden | None:
    if pod.minor < 34:
        return None
    hosts: set[str] = set()
    bad: set[str] = set()
    for name, container, _ in pod.containers:
        lifecycle = container.get("lifecycle") or EMPTY
        actions = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        for action in [*actions, lifecycle.get("postStart"), lifecycle.get("preStop")]:
            for way in ("httpGet", "tcpSocket"):
                host = ((action or EMPTY).get(way) or EMPTY).get("host")
                if host:
                    hosts.add(host)
                    bad.add(name)
    if not bad:
        return None
    uses = "uses" if len(bad) == 1 else "use"
    listed = _named("probe or lifecycle host", sorted(hosts))
    return "probe or lifecycle host", f"{_named('container', sorted(bad))} {uses} {listed}"


def _privileged(pod: Pod) -> Forbidden | None:
    bad = [name for name, _, context in pod.containers if context.get("privileged")]
    return ("privileged", f"{_named('container', bad)} must not set securityContext.privileged=true") if bad else None


def _proc_mount(pod: Pod) -> Forbidden | None:
    types: set[str] = set()
    bad = []
    for name, _, context in pod.containers:
        found = context.get("procMount")
        if found is not None and found != "Default":
            types.add(found)
            bad.append(name)
    if not bad:
        return None
    return "procMount", f"{_named('container', bad)} must not set securityContext.procMount to {_quoted(sorted(types))}"


def _proc_mount_baseline(pod: Pod) -> Forbidden | None:
    return None if pod.own_users else _proc_mount(pod)


def _selinux(pod: Pod) -> Forbidden | None:
    allowed = SELINUX_TYPES | {"container_engine_t"} if pod.minor >= 31 else SELINUX_TYPES
    types: set[str] = set()
    fields: set[str] = set()

    def bad(context: Json) -> bool:
        options = context.get("seLinuxOptions")
        if options is None:
            return False
        wrong = {field for field in ("user", "role") if options.get(field)}
        fields.update(wrong)
        if options.get("type", "") in allowed:
            return bool(wrong)
        types.add(options["type"])
        return True

    in_pod = bad(pod.context)
    setters = _setters(in_pod, [name for name, _, context in pod.containers if bad(context)])
    if not setters:
        return None
    data = [_named("type", sorted(types))] if types else []
    data += [f"{field} may not be set" for field in ("user", "role") if field in fields]
    return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


def _seccomp_bad(context: Json, values: set[str]) -> bool:
    profile = context.get("seccompProfile")
    if profile is None or profile.get("type", "") in PROFILES:
        return False
    values.add(profile.get("type", ""))
    return True


def _seccomp(pod: Pod) -> Forbidden | None:
    if pod.minor < 19:
        return _seccomp_notes(pod)
    values: set[str] = set()
    in_pod = _seccomp_bad(pod.context, values)
    setters = _setters(in_pod, [name for name, _, context in pod.containers if _seccomp_bad(context, values)])
    if not setters:
        return None
    listed = _quoted(sorted(values))
    return "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {listed}"


def _seccomp_notes(pod: Pod) -> Forbidden | None:
    keys = [SECCOMP_POD, *[SECCOMP_CONTAINER + name for name, _, _ in pod.containers]]
    fine = ("runtime/default", "docker/default")
    bad = {
        f"{key}={quote(pod.notes[key])}"
        for key in keys
        if key in pod.notes and pod.notes[key] not in fine and not pod.notes[key].startswith("localhost/")
    }
    if not bad:
        return None
    return "seccompProfile", f"forbidden {_plural('annotation', bad)} {', '.join(sorted(bad))}"


def _sysctls(pod: Pod) -> Forbidden | None:
    safe = {name for minor, names in SYSCTLS if pod.minor >= minor for name in names.split()}
    bad = [one["name"] for one in pod.context.get("sysctls") or () if one.get("name") not in safe]
    return ("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(pod: Pod) -> Forbidden | None:
    def bad(context: Json) -> bool:
        return bool((context.get("windowsOptions") or EMPTY).get("hostProcess"))

    setters = _setters(bad(pod.context), [name for name, _, context in pod.containers if bad(context)])
    if not setters:
        return None
    return "hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true"


# -- restricted ------------------------------------------------------------------------------------------------


def _escalation(pod: Pod) -> Forbidden | None:
    if pod.minor < 8 or (pod.minor >= 25 and pod.windows):
        return None
    bad = [name for name, _, context in pod.containers if context.get("allowPrivilegeEscalation") is not False]
    if not bad:
        return None
    detail = f"{_named('container', bad)} must set securityContext.allowPrivilegeEscalation=false"
    return "allowPrivilegeEscalation != false", detail


def _capabilities_restricted(pod: Pod) -> Forbidden | None:
    if pod.minor >= 25 and pod.windows:
        return None
    keeping: list[str] = []
    adding: list[str] = []
    found: set[str] = set()
    for name, _, context in pod.containers:
        capabilities = context.get("capabilities") or EMPTY
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(name)
        added = set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}
        found |= added
        if added:
            adding.append(name)
    details = []
    if keeping:
        details.append(f'{_named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = _quoted(sorted(found))
        details.append(f"{_named('container', adding)} must not include {what} in securityContext.capabilities.add")
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def _volumes(pod: Pod) -> Forbidden | None:
    types: set[str] = set()
    bad = []
    for volume in pod.spec.get("volumes") or ():
        sources = sorted(field for field, source in volume.items() if field != "name" and source is not None)
        if not SAFE_VOLUMES.intersection(sources):
            bad.append(str(volume.get("name")))
            types.add(sources[0] if sources else "unknown")
    if not bad:
        return None
    uses = "uses" if len(bad) == 1 else "use"
    listed = _named("restricted volume type", sorted(types))
    return "restricted volume types", f"{_named('volume', bad)} {uses} {listed}"


def _non_root(pod: Pod) -> Forbidden | None:
    if pod.own_users:
        return None
    whole = pod.context.get("runAsNonRoot")
    given = [(name, context.get("runAsNonRoot")) for name, _, context in pod.containers]
    setters = _setters(whole is False, [name for name, value in given if value is False])
    if setters:
        return "runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false"
    open_ones = [name for name, value in given if value is None] if not whole else []
    if not open_ones:
        return None
    detail = f"pod or {_named('container', open_ones)} must set securityContext.runAsNonRoot=true"
    return "runAsNonRoot != true", detail


def _run_as_user(pod: Pod) -> Forbidden | None:
    if pod.minor < 23 or pod.own_users:
        return None
    roots = [name for name, _, context in pod.containers if context.get("runAsUser") == 0]
    setters = _setters(pod.context.get("runAsUser") == 0, roots)
    return ("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _seccomp_restricted(pod: Pod) -> Forbidden | None:
    if pod.minor >= 25 and pod.windows:
        return None
    explicit = _seccomp(pod)
    if explicit is not None:
        return explicit
    if pod.context.get("seccompProfile") is not None:
        return None
    unset = [name for name, _, context in pod.containers if context.get("seccompProfile") is None]
    if not unset:
        return None
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return "seccompProfile", f"pod or {_named('container', unset)} {wanted}"


class Check(NamedTuple):
    """One check, the minor version it exists since, and since when a restricted one takes its place."""

    judge: Callable[[Pod], Forbidden | None]
    since: int = 0
    until: int = 1000
    """Of the level restricted only: the minor version from which another check judges it there."""


_BASELINE: Final = (
    Check(_apparmor),
    Check(_capabilities, until=22),
    Check(_namespaces),
    Check(_host_paths, until=0),
    Check(_host_ports),
    Check(_hosts, 34),
    Check(_privileged),
    Check(_proc_mount_baseline, until=35),
    Check(_selinux),
    Check(_seccomp, until=19),
    Check(_sysctls),
    Check(_host_process),
)
_RESTRICTED: Final = (
    Check(_escalation, 8),
    Check(_capabilities_restricted, 22),
    Check(_proc_mount, 35),
    Check(_volumes),
    Check(_non_root),
    Check(_run_as_user, 23),
    Check(_seccomp_restricted, 19),
)


def violations(level: str, minor: int, notes: Json, spec: Json) -> list[Forbidden]:
    """What a level in the version 1.`minor` forbids of a pod with these annotations."""
    if level not in (BASELINE, RESTRICTED):
        return []
    minor = min(minor, LATEST)
    pod = Pod(notes, spec, minor)
    checks = [check for check in _BASELINE if level == BASELINE or minor < check.until]
    checks += _RESTRICTED if level == RESTRICTED else ()
    judged = [check.judge(pod) for check in checks if minor >= check.since]
    return [forbidden for forbidden in judged if forbidden is not None]


def told(found: list[Forbidden]) -> str:
    """All that is forbidden, in one line."""
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in found)
