"""What a request must say, and what must hold in the store, before anything is written: bodies, names, preconditions.

The texts are kube-apiserver's (apimachinery `pkg/api/errors`, apiserver `pkg/registry/rest`), release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from steersman.api import errors, go_json, pod_parts, versions
from steersman.api.kinds import STATUS_PARTS, Kind, Kinds
from steersman.api.sent import meta_of
from steersman.kernel.effect import Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

NAMESPACE: Final = ("", "Namespace")
IMMORTAL: Final = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that cannot be deleted (kube-apiserver's NamespaceLifecycle; kube-node-lease is not among them)."""
CONDITIONAL: Final = frozenset(
    {("storage.k8s.io", name) for name in ("CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment")}
    | {("admissionregistration.k8s.io", f"{name}WebhookConfiguration") for name in ("Mutating", "Validating")}
    | {("admissionregistration.k8s.io", f"ValidatingAdmissionPolicy{part}") for part in ("", "Binding")}
    | {("coordination.k8s.io", "Lease"), ("policy", "PodDisruptionBudget"), ("node.k8s.io", "RuntimeClass")}
)
"""Kinds that cannot be replaced without saying which version is meant, as custom ones cannot
(AllowUnconditionalUpdate is false in kube-apiserver)."""
MADE_BY_UPDATE: Final = frozenset(
    {("", name) for name in ("Endpoints", "Event", "LimitRange", "Service")}
    | {("rbac.authorization.k8s.io", f"{scope}Role{part}") for scope in ("", "Cluster") for part in ("", "Binding")}
    | {("coordination.k8s.io", "Lease"), ("node.k8s.io", "RuntimeClass")}
)
"""Kinds of which a PUT makes the object that is not there (AllowCreateOnUpdate in kube-apiserver)."""
META_KINDS: Final = frozenset({"Status", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"})
"""Kinds of apimachinery, which are known in every group."""
INTERNAL: Final[Mapping[str, str]] = {"events.k8s.io": "core"}
"""Groups whose Go package of internal types is not named as they are."""
SCHEME: Final = '"pkg/runtime/scheme.go:111"'
"""The line of Kubernetes' source with which its messages name the registry of kinds."""
WRONG_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"


def check_subresource(request: Request, kind: Kind) -> None:
    """Raises 405 for a subresource that this verb does not have."""
    part = request.subresource
    if not part or (part in STATUS_PARTS and part in kind.subresources):
        return
    if part in pod_parts.PARTS and kind.gk == pod_parts.POD:
        return
    if part != "finalize" or kind.gk != NAMESPACE or request.verb != "update":
        raise errors.method_not_allowed(f"{kind.plural}/{part}", request.verb, kind.group)


def existing(store: Store, key: Key, kind: Kind) -> Object:
    """The object of a slot; raises 404."""
    obj = found(store, key, kind)
    if obj is None:
        raise errors.not_found(kind.plural, key.name, kind.group)
    return obj


def referred(store: Store, key: Key, plural: str) -> Object:
    """The object of a slot as it is stored, of a kind that another one refers to; raises 404."""
    obj = store.get(key)
    if obj is None:
        raise errors.not_found(plural, key.name, key.group)
    return obj


def found(store: Store, key: Key, kind: Kind) -> Object | None:
    """The object of a slot, if there is one, in the version of `kind`."""
    obj = store.get(key)
    return versions.shown(kind, obj) if obj is not None and (kind.custom or kind.alias is not None) else obj


def body(request: Request, kind: Kind) -> Mapping[str, Any]:
    """The body as an object of this kind, its metadata an object too; raises 400."""
    body = request.body
    if not isinstance(body, dict):
        raise errors.bad_request(f"the body must be a {kind.kind} object, not {type(body).__name__}")
    if request.verb == "apply" and (body.get("apiVersion"), body.get("kind")) != (kind.api_version, kind.kind):
        group, _, version = _plain_or_none(body.get("apiVersion")).rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{version}, Kind={_plain_or_none(body.get('kind'))}")
    for field, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = body.get(field)
        if given is not None and given != wanted:
            raise _other_kind(request, kind, body, field, wanted)
    meta = body.get("metadata")
    if meta is not None and not isinstance(meta, dict):
        problem = go_json.complaint(kind.kind, kind.schema.fields["metadata"], "metadata", meta)
        raise _undecoded(handled(kind), problem)
    return body


class Undecoded(errors.BadRequest):
    """A body that is of another kind, or of none; `problem` is why."""

    problem = ""


def _undecoded(beginning: str, problem: str) -> Undecoded:
    error = Undecoded(400, "BadRequest", f"{beginning}: {problem}")
    error.problem = problem
    return error


def _plain_or_none(given: Any) -> str:
    return plain(given) if given else ""


def _other_kind(request: Request, kind: Kind, body: Mapping[str, Any], field: str, wanted: str) -> errors.ApiError:
    """The refusal of a body of another kind or version than the path's."""
    api_version, name = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if not isinstance(api_version, str) or not isinstance(name, str):
        told = f"{field} in the body is {errors.show(body[field])}, but the request is for {wanted}"
        return errors.bad_request(told)
    if kind.custom:
        if field == "apiVersion":
            told = f"the API version in the data ({api_version}) does not match the expected API version ({wanted})"
            return errors.bad_request(told)
        cause = errors.Cause.invalid(field, name, f"must be {wanted}")
        return errors.invalid(name, str(meta_of(body).get("name") or ""), [cause], kind.group)
    beginning = f"{name} in version {errors.quote(api_version.rpartition('/')[2])} cannot be handled as a {kind.kind}"
    return _undecoded(beginning, _misplaced(kind, api_version, name))


def _misplaced(kind: Kind, api_version: str, name: str) -> str:
    group, _, version = api_version.rpartition("/")
    known = Kinds.builtin().builtin_of(group, name)
    if (known is not None and known.version == version) or (name in META_KINDS and version == "v1"):
        internal = INTERNAL.get(kind.group) or kind.group.partition(".")[0] or "core"
        return f"converting ({version}.{name}) to ({internal}.{kind.kind}): unknown conversion"
    return f"no kind {errors.quote(name)} is registered for version {errors.quote(api_version)} in scheme {SCHEME}"


def handled(kind: Kind) -> str:
    """The beginning of what is said of a body that cannot be decoded."""
    return f"{kind.kind} in version {errors.quote(kind.version)} cannot be handled as a {kind.kind}"


def patch_meta(request: Request, kind: Kind) -> Mapping[str, Any]:
    """The metadata in a merge patch; raises for one that would make another kind of the object. A strategic one cannot:
    what it makes is of the kind it is read into."""
    if request.options.get("patch") == "strategic":
        request = request._replace(body={"metadata": request.body.get("metadata")})
    try:
        return body(request, kind).get("metadata") or EMPTY
    except Undecoded as refused:
        cause = errors.Cause.invalid("patch", errors.show(request.body), refused.problem)
        raise errors.invalid("", "", [cause]) from None


def applied_meta(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of an applied configuration; raises 400 when it claims to know who owns what."""
    meta: Mapping[str, Any] = body.get("metadata") or EMPTY
    if meta.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    return meta


def check_name(request: Request, kind: Kind, meta: Mapping[str, Any]) -> None:
    """Raises 400 when the body names another object than the request."""
    name = meta.get("name")
    if name and name != request.key.name:
        raise errors.bad_request(
            f"the name of the object ({plain(name)}) does not match the name on the URL ({request.key.name})"
        )
    namespace = meta.get("namespace")
    if namespace and namespace != request.key.namespace and kind.namespaced:
        raise errors.bad_request(f"{WRONG_NAMESPACE} ({errors.show(namespace)}, not {request.key.namespace})")


def nameless(name: str) -> errors.ApiError:
    """What is told of a body that does not say what it is; `name` is that of the URL."""
    return errors.bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def check_namespace(store: Store, request: Request, kind: Kind, meta: Mapping[str, Any]) -> None:
    """Raises 404 when the namespace of a create is not there, 403 when it is going away, 400 when it is unclear."""
    if not kind.namespaced:
        return
    asked, namespace = request.key.namespace, meta.get("namespace")
    if namespace and namespace != asked:
        raise errors.bad_request(f"{WRONG_NAMESPACE} ({errors.show(namespace)}, not {asked})")
    found = store.get(Key("", "Namespace", "", asked))
    if found is None:
        if not asked:
            raise errors.bad_request("an empty namespace may not be set during creation; name one")
        raise errors.not_found("namespaces", asked)
    if "deletionTimestamp" in found.meta.value:
        detail = f"unable to create new content in namespace {asked} because it is being terminated"
        refused = errors.forbidden(kind.plural, str(meta.get("name") or ""), detail, kind.group)
        cause = errors.Cause("NamespaceTerminating", f"namespace {asked} is being terminated", "metadata.namespace")
        if refused.details is not None:
            refused.details = replace(refused.details, causes=(cause,))
        raise refused


def check_mortal(key: Key, kind: Kind) -> None:
    """Raises 403 for the deletion of a namespace that every cluster needs, whether it is there or not."""
    if kind.gk == NAMESPACE and key.name in IMMORTAL:
        raise errors.forbidden(kind.plural, key.name, "this namespace may not be deleted")


def check_rv(old: Object, kind: Kind, wanted: Any) -> None:
    """Raises 409 when a version was asked for and it is not the newest."""
    if wanted and wanted != "0" and str(wanted) != str(old.rv):
        raise errors.conflict(kind.plural, old.key.name, group=kind.group)


def check_version_given(kind: Kind, name: str, wanted: Any) -> None:
    """Raises 422 for a replacement that says no version, of a kind that must not be replaced blindly."""
    if wanted or not (kind.custom or kind.gk in CONDITIONAL):
        return
    cause = errors.Cause.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    raise errors.invalid(kind.plural, name, [cause], kind.group)


def check_uid(old: Object, kind: Kind, wanted: Any) -> None:
    """Raises 409 when an incarnation was asked for and it is another one."""
    if wanted and wanted != old.uid:
        detail = f"Precondition failed: UID in precondition: {plain(wanted)}, UID in object meta: {old.uid}"
        raise errors.conflict(kind.plural, old.key.name, detail, kind.group)


def check_no_uid(kind: Kind, name: str, wanted: Any) -> None:
    """Raises 409 when an incarnation was asked for and there is none."""
    if wanted:
        detail = f"uid mismatch: the provided object specified uid {plain(wanted)}, and no existing object was found"
        raise errors.conflict(kind.plural, name, detail, kind.group)


def plain(given: Any) -> str:
    """A value as a message can repeat it: plain when it is a word, else quoted."""
    return given if isinstance(given, str) and given.isascii() and given.isprintable() else errors.show(given)


def whole(options: Mapping[str, Any], name: str) -> int:
    """A whole number from 0 among a request's options; 0 when it is not given."""
    given = options.get(name)
    try:
        number = int(given or 0)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0:
        raise errors.bad_request(f"{name} must be a whole number from 0, not {errors.show(given)[:40]}")
    return number
