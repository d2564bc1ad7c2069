"""What metadata must look like, and what of it an update may change.

Checking runs on every write, so names, keys and values are remembered once found fine.
Source of the facts: apimachinery `pkg/api/validation/objectmeta.go` and `path`, the name functions of
kubernetes `pkg/apis/*/validation`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.api import names
from steersman.api.errors import Cause, quote
from steersman.api.kinds import Kind
from steersman.api.rules import internal, registration_rules, rules
from steersman.api.rules.rules import IMMUTABLE, NEGATIVE, Causes
from steersman.api.times import MICRO, parse_time
from steersman.kernel.store import FOREGROUND
from steersman.kernel.value import Frozen, FrozenList

ANNOTATIONS_MAX: Final = 256 * 1024
"""Bytes of all annotation keys and values together."""
CRON_JOB_NAME_MAX: Final = 52  # the controller appends 11 characters to make the name of a Job
UTF8_MAX: Final = 4  # bytes of one character

ORPHAN: Final = "orphan"
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", ORPHAN, FOREGROUND})

Check = Callable[[str], Iterable[str]]


def _cron_job_name(text: str) -> list[str]:
    problems = names.dns1123_subdomain(text)
    if len(text) > CRON_JOB_NAME_MAX:
        problems.append(f"must be no more than {CRON_JOB_NAME_MAX} characters")
    return problems


_RBAC: Final = "rbac.authorization.k8s.io"
_SEGMENTS: Final = frozenset(
    {("", "Event"), ("certificates.k8s.io", "CertificateSigningRequest"), ("policy", "PodDisruptionBudget")}
)
_NAMES: Final[Mapping[tuple[str, str], Check]] = {
    ("", "Namespace"): names.dns1123_label,
    ("", "Service"): names.dns1123_label,
    ("apps", "StatefulSet"): names.dns1123_label,
    ("batch", "CronJob"): _cron_job_name,
    **dict.fromkeys(_SEGMENTS, names.path_segment),
    registration_rules.GK: names.path_segment,
    ("networking.k8s.io", "IPAddress"): names.canonical_ip,
    (_RBAC, "Role"): names.path_segment,
    (_RBAC, "ClusterRole"): names.path_segment,
    (_RBAC, "RoleBinding"): names.path_segment,
    (_RBAC, "ClusterRoleBinding"): names.path_segment,
}


def _name(check: Check, text: str) -> tuple[Cause, ...]:
    problems = check(text)  # most names are new, so remembering does not help
    return tuple([Cause.invalid("metadata.name", text, problem) for problem in problems]) if problems else ()


REMEMBERED: Final = 1 << 12
MAX_REMEMBERED_LABELS: Final = 16
"""Together they bound what `_fine` keeps alive to some 20 MB: valid keys and values are short."""
MAX_REMEMBERED_OWNER: Final = 1 << 10
"""Characters."""
_fine: dict[int, Frozen | FrozenList] = {}
"""Labels and owners with which nothing is wrong: the pods of one template share them. They are kept alive, so that an
id stays its own."""


def _remember(found: Frozen | FrozenList) -> None:
    if len(_fine) >= REMEMBERED:
        _fine.clear()
    _fine[id(found)] = found


@lru_cache(rules.CHECKED)
def _generate_name(check: Check, text: str) -> tuple[Cause, ...]:
    judged = text if check is names.path_segment else names.as_prefix(text)
    return tuple(Cause.invalid("metadata.generateName", text, problem) for problem in check(judged))


@lru_cache(rules.CHECKED)
def _namespace(text: str) -> tuple[Cause, ...]:
    return tuple(Cause.invalid("metadata.namespace", text, problem) for problem in names.dns1123_label(text))


@lru_cache(rules.CHECKED)
def _label(key: str, value: str) -> tuple[Cause, ...]:
    path = "metadata.labels"
    problems = [Cause.invalid(path, key, problem) for problem in names.qualified_name(key)]
    return (*problems, *(Cause.invalid(path, value, problem) for problem in names.label_value(value)))


@lru_cache(rules.CHECKED)
def _annotation(key: str) -> tuple[Cause, ...]:
    # Upper case is allowed in the prefix of an annotation, unlike in that of a label.
    problems = names.qualified_name(key.lower())
    return tuple(Cause.invalid("metadata.annotations", key, problem) for problem in problems)


_GENERIC: Final = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"})
"""Groups whose kinds, like custom ones, are validated by apimachinery alone, which knows no standard finalizers."""


NO_STANDARD: Final = "name is neither a standard finalizer name nor is it fully qualified"


_GENERIC_KINDS: Final = frozenset(
    {
        ("", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("policy", "PodDisruptionBudget"),
        ("node.k8s.io", "RuntimeClass"),
    }
)
"""Other kinds of which that holds."""


@lru_cache(rules.CHECKED)
def _finalizer(text: str) -> tuple[Cause, ...]:
    return tuple(Cause.invalid("metadata.finalizers", text, problem) for problem in names.qualified_name(text))


def metadata(kind: Kind, meta: Mapping[str, Any]) -> Causes:
    """What is wrong with the metadata of an object of that kind.

    A missing name passes when there is a generateName, from which it is to be made. The values must have been
    taken in, so that their types are right.
    """
    out: Causes = []
    check = _NAMES.get((kind.group, kind.kind), names.dns1123_subdomain)
    name, prefix = meta.get("name"), meta.get("generateName")
    if prefix:
        out += _generate_name(check, prefix)
    if name:
        out += _name(check, name)
    elif not prefix:
        out.append(Cause.required("metadata.name", "name or generateName is required"))
    namespace = meta.get("namespace")
    if kind.namespaced:
        out += _namespace(namespace) if namespace else (Cause.required("metadata.namespace"),)
    elif namespace:
        out.append(Cause.forbidden("metadata.namespace", "not allowed on this type"))
    if meta.get("generation", 0) < 0:
        out.append(Cause.invalid("metadata.generation", meta["generation"], NEGATIVE))
    if (found := meta.get("labels")) and _fine.get(id(found)) is not found:
        for key, value in found.items():
            if causes := _label(key, value):
                out += causes
        if type(found) is Frozen and not out and len(found) <= MAX_REMEMBERED_LABELS:
            _remember(found)
    if found := meta.get("annotations"):
        _annotations(out, found)
    if (found := meta.get("ownerReferences")) and _fine.get(id(found)) is not found:
        _owners(out, found)
        if type(found) is FrozenList and not out and len(found) == 1 and len(str(found)) <= MAX_REMEMBERED_OWNER:
            _remember(found)
    if found := meta.get("finalizers"):
        _finalizers(out, found, kind.custom or kind.group in _GENERIC or kind.gk in _GENERIC_KINDS)
    return out


def _annotations(out: Causes, found: Mapping[str, str]) -> None:
    size = 0
    for key, value in found.items():
        size += len(key) + len(value)
        if causes := _annotation(key):
            out += causes
    if size * UTF8_MAX > ANNOTATIONS_MAX:  # only then is it worth counting bytes
        size = sum(len(text.encode("utf-8", "surrogatepass")) for pair in found.items() for text in pair)
        if size > ANNOTATIONS_MAX:
            out.append(Cause.too_long("metadata.annotations", ANNOTATIONS_MAX))


def _owners(out: Causes, owners: list[Mapping[str, Any]]) -> None:
    controller = ""
    path = "metadata.ownerReferences"  # Kubernetes does not say which of them
    for owner in owners:
        version, kind, name = owner.get("apiVersion") or "", owner.get("kind"), owner.get("name")
        if version.count("/") > 1 or not version.rpartition("/")[2]:
            out.append(Cause.invalid(f"{path}.apiVersion", version, "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                out.append(Cause.invalid(f"{path}.{field}", "", "must not be empty"))
        if kind == "Event" and version == "v1":
            detail = "/v1, Kind=Event is disallowed from being an owner"
            out.append(Cause.invalid(path, owner, detail))
        if owner.get("controller"):
            this = f"{kind}/{name}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references '
                    f"for {controller} and {this}"
                )
                fields = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
                out.append(Cause.invalid(path, [internal.ordered(each, *fields) for each in owners], detail))
            controller = controller or this


def _finalizers(out: Causes, found: list[str], custom: bool) -> None:
    for text in found:
        if causes := _finalizer(text):
            out += causes
    if ORPHAN in found and FOREGROUND in found:
        detail = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        out.append(Cause.invalid("metadata.finalizers", found, detail))
    for index, text in enumerate(() if custom else found):
        if "/" not in text and text not in STANDARD_FINALIZERS:
            out.append(Cause.invalid(f"metadata.finalizers[{index}]", text, NO_STANDARD))


FIXED: Final = (
    "name",
    "namespace",
    "uid",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that stays as it is; a change of the time of creation is passed over."""
UNTIMED: Final = ("name", "namespace", "uid", "deletionGracePeriodSeconds")


JUDGED_ONCE: Final = frozenset(
    {("", name) for name in ("Event", "LimitRange", "PersistentVolume")}
    | {("storage.k8s.io", "CSINode"), ("storage.k8s.io", "VolumeAttachment")}
    | {("discovery.k8s.io", "EndpointSlice"), ("policy", "PodDisruptionBudget")}
)
"""Kinds whose own rules do not look at changes of metadata."""


def metadata_change(kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Causes:
    """What of the metadata may not change so. A field that `new` leaves out counts as kept.

    `metadata` judges the new values by themselves.
    """
    out: Causes = []
    if "deletionTimestamp" in old:
        before = old.get("finalizers") or ()
        added = sorted({text for text in new.get("finalizers") or () if text not in before})
        if added:
            listed = ", ".join(quote(text) for text in added)
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
            out.append(Cause.forbidden("metadata.finalizers", f"{detail}[]string{{{listed}}}"))
    if new.get("generation", old.get("generation", 0)) < old.get("generation", 0):
        out.append(Cause.invalid("metadata.generation", new["generation"], "must not be decremented"))
    for field in FIXED:
        after = new.get(field)
        if after is not None and after != old.get(field) and not _same_time(field, after, old.get(field)):
            out.append(Cause.invalid(f"metadata.{field}", after, IMMUTABLE))
    return out


def _same_time(field: str, one: Any, other: Any) -> bool:
    """Whether a field is a time, and both texts are that time: Python's clients write +00:00 where Go's write Z."""
    if not field.endswith("Timestamp") or not isinstance(one, str) or not isinstance(other, str):
        return False
    try:
        return parse_time(one) // MICRO == parse_time(other) // MICRO
    except ValueError:
        return False
