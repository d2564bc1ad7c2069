"""Advice: what the writer of a valid object is warned about. Pure; of built-in kinds only.

Advice about a spec is given once, by the write that brings it: an `Advice` is a warning that a write which leaves the
spec alone does not repeat, and that nobody hears of a pod's update.
Source of the facts: kubernetes `pkg/api/{pod,service,job,node,persistentvolume,persistentvolumeclaim}` and the
WarningsOnCreate of `pkg/registry/*`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final

from steersman.api import names, quantity
from steersman.api.errors import quote
from steersman.api.kinds import GK, Kind
from steersman.api.references import CONTAINERS
from steersman.kernel.value import EMPTY, FrozenList

Json = Mapping[str, Any]

DUPLICATE_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
NODE_LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
VOLUMES: Final[Mapping[str, str]] = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""Sources of volumes that nothing mounts any more."""
POD_NOTES: Final[Mapping[str, str]] = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
VOLUME_NOTES: Final[Mapping[str, str]] = {
    "volume.beta.kubernetes.io/storage-class": 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
MANY_COMPLETIONS: Final = 100_000
MANY_PODS: Final = 10_000
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Advice(str):
    """A warning about a spec."""

    __slots__ = ()


def of_spec(kind: Kind, spec: Json) -> Iterator[Advice]:
    """Advice about the spec of a built-in kind: one look-up for most kinds."""
    tell = None if kind.custom else _SPECS.get(kind.gk)
    if tell is not None:
        yield from map(Advice, tell(spec))


def of_meta(kind: Kind, meta: Json, spec: Json | None) -> tuple[str, ...]:
    """Warnings about the name and the annotations of a new object."""
    tell = _METAS.get(kind.gk)
    name = meta["name"]
    if tell is None or ("." not in name and len(name) <= names.LABEL_MAX and "annotations" not in meta):
        return ()
    return tuple(tell(meta, EMPTY if spec is None else spec))


# -- pods ------------------------------------------------------------------------------------------------------


def _pod(spec: Json, path: str = "spec") -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {NODE_LABELS[key]}"
    affinity = spec.get("affinity") or EMPTY
    if affinity:
        yield from _node_affinity(affinity.get("nodeAffinity") or EMPTY, f"{path}.affinity.nodeAffinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey")
        if key in NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {NODE_LABELS[key]}"
        if "labelSelector" not in constraint:
            yield f"{at}.labelSelector: a null labelSelector results in matching no pod"
    if spec.get("volumes"):
        yield from _volumes(spec["volumes"], f"{path}.volumes")
    yield from _twice(spec.get("hostAliases") or (), "ip", f"{path}.hostAliases")
    secrets = spec.get("imagePullSecrets") or ()
    yield from _twice(secrets, "name", f"{path}.imagePullSecrets")
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from _fractions(spec.get("overhead"), f"{path}.overhead")
    yield from _containers(spec, path)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    for which in ("podAffinity", "podAntiAffinity") if affinity else ():
        yield from _pod_affinity(affinity.get(which) or EMPTY, f"{path}.affinity.{which}")
    for index, server in enumerate((spec.get("dnsConfig") or EMPTY).get("nameservers") or ()):
        yield from _address(server, f"{path}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from _address(alias.get("ip") or "", f"{path}.hostAliases[{index}].ip")


def _node_affinity(found: Json, path: str) -> Iterator[str]:
    for index, term in enumerate((found.get(_REQUIRED) or EMPTY).get("nodeSelectorTerms") or ()):
        yield from _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preferred in enumerate(found.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{index}].preference"
        term = preferred.get("preference") or EMPTY
        yield from _node_term(term, at)
        for number, expression in enumerate(term.get("matchExpressions") or ()):
            for place, value in enumerate(expression.get("values") or ()):
                where = f"{at}.matchExpressions[{number}].values[{place}]"
                for problem in names.label_value(value):
                    yield f"{where}: {value} is invalid, {problem}"


def _node_term(term: Json, path: str) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key")
        if key in NODE_LABELS:
            yield f"{path}.matchExpressions[{index}].key: {key} is {NODE_LABELS[key]}"


def _pod_affinity(found: Json, path: str) -> Iterator[str]:
    for index, term in enumerate(found.get(_REQUIRED) or ()):
        if "labelSelector" not in term:
            yield f"{path}.{_REQUIRED}[{index}].labelSelector: a null labelSelector results in matching no pod"
    for index, weighted in enumerate(found.get(_PREFERRED) or ()):
        if "labelSelector" not in (weighted.get("podAffinityTerm") or EMPTY):
            at = f"{path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector"
            yield f"{at}: a null labelSelector results in matching no pod"


def _volumes(found: Any, path: str) -> Iterator[str]:
    for index, volume in enumerate(found):
        for source, told in VOLUMES.items():
            if source in volume:
                yield f"{path}[{index}].{'storageOS' if source == 'storageos' else source}: {told}"
        claim = (volume.get("ephemeral") or EMPTY).get("volumeClaimTemplate")
        if claim:
            yield from _claim(claim.get("spec") or EMPTY, f"{path}[{index}].ephemeral.volumeClaimTemplate.spec")
    for volume in found:
        yield from _overlaps(volume)


def _overlaps(volume: Json) -> Iterator[str]:
    """Files of one volume that are in each other's way."""
    name = quote(volume.get("name") or "")
    for field, word, named in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(field)
        if source and source.get("items"):
            what = f"{word} {quote(source.get(named) or '')}"
            yield from _colliding([(item.get("path") or "", "") for item in source["items"]], name, what)
    downward = (volume.get("downwardAPI") or EMPTY).get("items") or ()
    yield from _colliding([(item.get("path") or "", "") for item in downward], name, "DownwardAPI")
    if "projected" not in volume:
        return
    files: list[tuple[str, str]] = []
    for projection in volume["projected"].get("sources") or ():
        if not projection:
            yield f"volume {name} (Projected) has no sources provided"
        files += _projected(projection)
    yield from _colliding(files, name, "Projected")


def _projected(source: Json) -> list[tuple[str, str]]:
    """(path, what puts it there) of one source."""
    for field, word in (("configMap", "ConfigMap"), ("secret", "Secret")):
        found = source.get(field)
        if found and found.get("items"):
            told = f"{word} {quote(found.get('name') or '')}"
            return [(item.get("path") or "", told) for item in found["items"]]
    if (source.get("downwardAPI") or EMPTY).get("items"):
        return [(item.get("path") or "", "DownwardAPI") for item in source["downwardAPI"]["items"]]
    if "serviceAccountToken" in source:
        return [(source["serviceAccountToken"].get("path") or "", "ServiceAccountToken")]
    if "clusterTrustBundle" in source:
        bundle = source["clusterTrustBundle"]
        told = f"ClusterTrustBundle {quote(bundle.get('name') or bundle.get('signerName') or '')}"
        return [(bundle.get("path") or "", told)]
    certificate = source.get("podCertificate") or EMPTY
    fields = (("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle"))
    return [(certificate[field], f"PodCertificate {word}") for field, word in fields if certificate.get(field)]


def _colliding(files: list[tuple[str, str]], volume: str, what: str) -> Iterator[str]:
    before: list[tuple[str, str]] = []
    for path, source in files:
        here = (path.rstrip("/"), source)
        for other in before if here[0] else ():
            one, two = f"{here[0]}/", f"{other[0]}/"
            if other[0] and (one.startswith(two) or two.startswith(one)):
                yield f"volume {volume} ({what}): overlapping paths: {_file(here)} with {_file(other)}"
        before.append(here)


def _file(found: tuple[str, str]) -> str:
    return f"{quote(found[0])} ({found[1]})" if found[1] else quote(found[0])


def _twice(items: Any, field: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(field) or ""
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {field} {quote(value)}"
        seen.add(value)


def _fractions(amounts: Any, path: str, resources: tuple[str, ...] = ("memory", "ephemeral-storage")) -> Iterator[str]:
    for name in resources if amounts else ():
        if name in amounts and quantity.parse(amounts[name]).nano % quantity.NANO:
            told = quote(str(amounts[name]))
            yield f"{path}[{name}]: fractional byte value {told} is invalid, must be an integer"


def _containers(spec: Json, path: str) -> Iterator[str]:
    listed = [
        (f"{path}.{group}[{index}]", container)
        for group in CONTAINERS
        for index, container in enumerate(spec.get(group) or ())
    ]
    for at, container in listed:
        resources = container.get("resources") or EMPTY
        for resource in ("memory", "ephemeral-storage") if resources else ():
            for which in ("limits", "requests"):
                yield from _fractions(resources.get(which), f"{at}.resources.{which}", (resource,))
        yield from _variables(container.get("env") or (), f"{at}.env")
    ports = [
        (f"{at}.ports[{index}]", port)
        for at, container in listed
        for index, port in enumerate(container.get("ports") or ())
    ]
    if ports:
        yield from _ports(ports)
        yield from _port_names(ports)


def _variables(found: Any, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(found):
        name, value = variable.get("name") or "", variable.get("value") or ""
        ref = f"$({name})"
        if name in seen and ("valueFrom" in variable or value == ref or ref not in value):
            told = "which may be dropped when using apply"
            yield f"{path}[{index}]: hides previous definition of {quote(name)}, {told}"
        seen.add(name)


def _ports(found: list[tuple[str, Json]]) -> Iterator[str]:
    taken: dict[tuple[int, str], list[tuple[str, str, int]]] = {}
    for at, port in found:
        ip, host = port.get("hostIP") or "", port.get("hostPort") or 0
        if ip and not host:
            name, number, protocol = port.get("name") or "", port.get("containerPort", 0), port.get("protocol")
            told = f"{{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{ip}}}"
            yield f"{at}: hostIP set without hostPort: {told}"
        others = taken.setdefault((port.get("containerPort", 0), port.get("protocol") or ""), [])
        for where, other_ip, other in others:
            if (ip, host) == (other_ip, other):
                yield f"{at}: duplicate port definition with {where}"
            elif not host or not other:
                yield f"{at}: overlapping port definition with {where}"
            elif host == other and (not ip) != (not other_ip):
                yield f"{at}: dangerously ambiguous port definition with {where}"
        others.append((at, ip, host))


def _port_names(found: list[tuple[str, Json]]) -> Iterator[str]:
    taken: dict[str, str] = {}
    for at, port in found:
        name = port.get("name")
        if not name:
            continue
        first = taken.setdefault(name, at)
        if first != at:
            told = f"services and probes that select ports by name will use {first}"
            yield f"{at}: duplicate port name {quote(name)} with {first}, {told}"


def _template(template: Json, path: str) -> Iterator[str]:
    """A pod template, with its annotations."""
    yield from _pod(template.get("spec") or EMPTY, f"{path}.spec")
    yield from _notes((template.get("metadata") or EMPTY).get("annotations"), POD_NOTES, f"{path}.metadata")


def _notes(found: Any, table: Mapping[str, str], path: str = "metadata") -> Iterator[str]:
    for key in table if found else ():
        if key in found:
            yield f"{path}.annotations[{key}]: {table[key]}"


# -- other kinds -----------------------------------------------------------------------------------------------


def _address(text: str, path: str) -> Iterator[str]:
    """An address that Kubernetes reads and would write otherwise."""
    try:
        address = ip_address(text)
    except ValueError:
        return
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        yield f"{path}: non-standard IP address {quote(text)} is invalid: use {quote(str(mapped))}"
    elif str(address) != text:
        told = f"should be in RFC 5952 canonical format ({quote(str(address))})"
        yield f"{path}: IPv6 address {quote(text)} {told}"


def _workload(spec: Json) -> Iterator[str]:
    yield from _template(spec.get("template") or EMPTY, "spec.template")


def _stateful_set(spec: Json) -> Iterator[str]:
    yield from _workload(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from _claim(claim.get("spec") or EMPTY, f"spec.volumeClaimTemplates[{index}]")
    if spec.get("revisionHistoryLimit", 0) < 0:
        told = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {told}"


def _job(spec: Json, path: str = "spec") -> Iterator[str]:
    many = spec.get("completions", 0) > MANY_COMPLETIONS and spec.get("parallelism", 0) > MANY_PODS
    if spec.get("completionMode") == "Indexed" and many:
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from _template(spec.get("template") or EMPTY, f"{path}.template")


def _cron_job(spec: Json) -> Iterator[str]:
    yield from _job((spec.get("jobTemplate") or EMPTY).get("spec") or EMPTY, "spec.jobTemplate.spec")


def _claim(spec: Json, path: str = "spec") -> Iterator[str]:
    resources = spec.get("resources") or EMPTY
    for which in ("requests", "limits"):
        yield from _fractions(resources.get(which), f"{path}.resources.{which}", ("storage",))


def _volume(spec: Json) -> Iterator[str]:
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        told = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use"
        yield f"spec.persistentVolumeReclaimPolicy: {told} dynamic provisioning."
    required = (spec.get("nodeAffinity") or EMPTY).get("required") or EMPTY
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from _node_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for source in ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"):
        if source in spec:
            yield f"spec.{'storageOS' if source == 'storageos' else source}: {VOLUMES[source]}"


def _service(spec: Json) -> Iterator[str]:
    kind, outside = spec.get("type"), spec.get("externalIPs") or ()
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if not headless:
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            yield from _address(address, f"spec.clusterIPs[{index}]")
    else:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if outside:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(outside):
        yield from _address(address, f"spec.externalIPs[{index}]")
    if outside and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from _address(spec.get("loadBalancerIP") or "", "spec.loadBalancerIP")
    if kind == "ExternalName" and outside:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


# -- metadata --------------------------------------------------------------------------------------------------


def _named_pod(meta: Json, spec: Json) -> Iterator[str]:
    yield from _host_name(meta, "the Pod's hostname")
    yield from _notes(meta.get("annotations"), POD_NOTES)


def _named_workload(meta: Json, spec: Json) -> Iterator[str]:
    yield from _host_name(meta, "Pod names and hostnames")


def _host_name(meta: Json, where: str) -> Iterator[str]:
    problems = names.dns1123_label(meta.get("name") or "")
    if problems:
        told = "which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: this is used in {where}, {told}: [{' '.join(problems)}]"


def _noted_volume(meta: Json, spec: Json) -> Iterator[str]:
    yield from _notes(meta.get("annotations"), VOLUME_NOTES)


def _noted_claim(meta: Json, spec: Json) -> Iterator[str]:
    key = "volume.beta.kubernetes.io/storage-class"
    yield from _notes(meta.get("annotations"), {key: VOLUME_NOTES[key]})


def _noted_service(meta: Json, spec: Json) -> Iterator[str]:
    if TOPOLOGY_HINTS in (meta.get("annotations") or EMPTY):
        yield f"annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"


def _noted_ingress(meta: Json, spec: Json) -> Iterator[str]:
    if INGRESS_CLASS in (meta.get("annotations") or EMPTY) and "ingressClassName" not in spec:
        yield f"annotation {quote(INGRESS_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"


_SPECS: Final[Mapping[GK, Callable[[Any], Iterator[str]]]] = {
    ("", "Pod"): _pod,
    ("", "ReplicationController"): _workload,
    ("apps", "Deployment"): _workload,
    ("apps", "ReplicaSet"): _workload,
    ("apps", "DaemonSet"): _workload,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "Service"): _service,
}
_METAS: Final[Mapping[GK, Callable[[Json, Json], Iterator[str]]]] = {
    ("", "Pod"): _named_pod,
    ("", "ReplicationController"): _named_workload,
    ("apps", "Deployment"): _named_workload,
    ("apps", "ReplicaSet"): _named_workload,
    ("batch", "Job"): _named_workload,
    ("batch", "CronJob"): _named_workload,
    ("", "PersistentVolume"): _noted_volume,
    ("", "PersistentVolumeClaim"): _noted_claim,
    ("", "Service"): _noted_service,
    ("networking.k8s.io", "Ingress"): _noted_ingress,
}


def distinct_owners(owners: FrozenList, warnings: list[str]) -> FrozenList:
    """ownerReferences, each once; whoever sent one twice is told."""
    kept: list[Any] = []
    twice = []
    for owner in owners:
        if owner in kept:
            twice.append(owner.get("uid", ""))
        else:
            kept.append(owner)
    if not twice:
        return owners
    warnings.append(f"{DUPLICATE_OWNERS}{', '.join(twice)}")
    return FrozenList(kept)
