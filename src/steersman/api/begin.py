"""The request machine: one API request against a store, without input or output.

`begin(store, request)` validates, authenticates nothing (the actor already is), and answers a `Reply`, a `Commit` or a
`Call` (see `kernel.effect`). It raises `ApiError` for everything a client did wrong. The same machine serves check,
simulate and run; only who performs calls and commits differs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

import orjson

from steersman.api import apply, errors, names, patch, write
from steersman.api.kinds import Kind, Kinds
from steersman.api.select import METADATA, FieldSelector, LabelSelector
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO, Call, Commit, ListQuery, Outcome, Reply, Request
from steersman.kernel.object import Key, Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY, Frozen

MAX_LIST_PAGE: Final = 100_000
"""Objects in one page when the client names no limit: a bound on what one request can make the server hold."""
POD_FIELDS: Final = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "status.podIP")
SELECTABLE: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): POD_FIELDS,
    ("", "Event"): ("involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid",
                    "reason", "type"),
    ("", "Namespace"): ("status.phase",),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Secret"): ("type",),
    ("apps", "ReplicaSet"): ("status.replicas",),
}  # fmt: skip
"""Fields beside name and namespace by which kube-apiserver lets a kind be selected."""
NAMESPACE: Final = ("", "Namespace")


class Api:
    """The request machine over a registry of kinds. Immutable; `with_kinds` makes another."""

    __slots__ = ("_verbs", "kinds", "writer")

    def __init__(self, kinds: Kinds, writer: Writer | None = None) -> None:
        self.kinds = kinds
        self.writer = writer or Writer()
        self._verbs: dict[str, Callable[[Store, Request, Kind], Outcome]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "apply": self._apply,
            "delete": self._delete,
        }

    def begin(self, store: Store, request: Request) -> Outcome:
        """The outcome of a request on this store. Raises `ApiError`."""
        kind = self.kinds.get(request.key.group, request.key.kind)
        handler = self._verbs.get(request.verb)
        if handler is None:
            raise errors.method_not_allowed(kind.plural, request.verb, kind.group)
        return handler(store, request, kind)

    # -- reads ---------------------------------------------------------------------------------------------

    def _get(self, store: Store, request: Request, kind: Kind) -> Reply:
        return Reply(200, obj=_existing(store, request.key, kind), rev=store.rev)

    def _list(self, store: Store, request: Request, kind: Kind) -> Reply:
        options = request.options
        query = self.query(kind, request.key.namespace or None, options.get("labels", ""), options.get("fields", ""))
        limit = int(options.get("limit") or 0) or MAX_LIST_PAGE
        after = _read_token(options["continue"]) if options.get("continue") else None
        found = store.query(query, after)
        items = tuple(islice(found, limit + 1))
        token, remaining = "", 0
        if len(items) > limit:
            remaining = 1 + sum(1 for _ in found)
            items = items[:limit]
            last = items[-1].key
            token = _write_token(last.namespace, last.name)
        return Reply(200, items=items, rev=store.rev, token=token, remaining=remaining)

    def query(self, kind: Kind, namespace: str | None, labels: Any = "", fields: str = "") -> ListQuery:
        """A list of one kind, narrowed by the indexes there are. Raises `ApiError` 400 for a wrong selector."""
        selector = LabelSelector.parse(labels) if isinstance(labels, str) else LabelSelector.compile(labels)
        by_field = FieldSelector.parse(fields, (*METADATA, *SELECTABLE.get(kind.gk, ()))) if fields else None
        node = by_field.required("spec.nodeName") if by_field is not None and kind.gk == ("", "Pod") else None
        text = str(selector) + (f" fields {by_field}" if by_field else "")
        if selector.empty and by_field is None:
            return ListQuery(kind.gk, namespace)

        def matches(obj: Object) -> bool:
            if not selector.matches(obj.meta.value.get("labels")):
                return False
            return by_field is None or by_field.matches(lambda path: field_of(obj, path))

        return ListQuery(kind.gk, namespace, "node" if node else "", node or "", text, matches)

    # -- writes --------------------------------------------------------------------------------------------

    def _create(self, store: Store, request: Request, kind: Kind) -> Outcome:
        if request.subresource == "binding":
            return self._bind(store, request, kind)
        if request.subresource:
            raise errors.method_not_allowed(f"{kind.plural}/{request.subresource}", "create", kind.group)
        body = _body(request, kind)
        meta = body.get("metadata") or EMPTY
        base = meta.get("generateName") or ""
        name = meta.get("name") or request.key.name
        _check_namespace(store, request, kind, meta)
        if name:
            return self._create_named(store, request, kind, name)
        if not base or not isinstance(base, str):
            cause = errors.Cause.required("metadata.name", "name or generateName is required")
            raise errors.invalid(kind.kind, "", [cause], kind.group)

        def named(suffix: Any) -> Outcome:
            return self._create_named(store, request, kind, names.generate_name(base, suffix))

        return Call("random", ("name", request.key, base), named)

    def _create_named(self, store: Store, request: Request, kind: Kind, name: str) -> Outcome:
        if not isinstance(name, str):
            cause = errors.Cause.type_invalid("metadata.name", name, "must be a string")
            raise errors.invalid(kind.kind, "", [cause], kind.group)
        key = Key(kind.group, kind.kind, request.key.namespace, name)
        if store.get(key) is not None:
            raise errors.already_exists(kind.plural, name, kind.group)
        return self._identify(request, kind, key)

    def _update(self, store: Store, request: Request, kind: Kind) -> Outcome:
        body = _body(request, kind)
        old = _existing(store, request.key, kind)
        meta = body.get("metadata") or EMPTY
        _check_name(request, kind, meta)
        _check_rv(old, kind, meta.get("resourceVersion") or request.options.get("rv"))
        _check_uid(old, kind, meta.get("uid"))
        return self._write(request, kind, old)

    def _patch(self, store: Store, request: Request, kind: Kind) -> Outcome:
        old = _existing(store, request.key, kind)
        options = request.options
        if options.get("patch", "merge") not in ("merge", "json"):
            raise errors.unsupported_media_type(PATCH_TYPES)
        _check_rv(old, kind, options.get("rv"))
        if isinstance(request.body, dict) and isinstance(request.body.get("metadata"), dict):
            meta = request.body["metadata"]
            _check_name(request, kind, meta)
            _check_rv(old, kind, meta.get("resourceVersion"))
            _check_uid(old, kind, meta.get("uid"))
        return self._write(request, kind, old)

    def _write(self, request: Request, kind: Kind, old: Object) -> Outcome:
        _check_subresource(request, kind)
        return _finish(request, old, self.writer.write(kind, request.key, old, request))

    def _apply(self, store: Store, request: Request, kind: Kind) -> Outcome:
        body = _body(request, kind)
        meta = body.get("metadata") or EMPTY
        _check_name(request, kind, meta)
        _check_subresource(request, kind)
        old = store.get(request.key)
        if old is not None:
            _check_rv(old, kind, meta.get("resourceVersion"))
            _check_uid(old, kind, meta.get("uid"))
            return self._write(request, kind, old)
        if request.subresource:
            raise errors.not_found(kind.plural, request.key.name, kind.group)
        if meta.get("resourceVersion"):
            raise errors.conflict(kind.plural, request.key.name, group=kind.group)
        _check_namespace(store, request, kind, meta)
        return self._identify(request, kind, request.key)

    def _identify(self, request: Request, kind: Kind, key: Key) -> Outcome:
        """A create, once somebody has drawn the uid."""

        def identified(uid: Any) -> Outcome:
            written = self.writer.write(kind, key, None, request, uid)
            return _committed(request, key, None, written.obj, 201, written.warnings)

        return Call("random", ("uid", key), identified)

    def _bind(self, store: Store, request: Request, kind: Kind) -> Outcome:
        old = _existing(store, request.key, kind)
        target = (request.body.get("target") or EMPTY).get("name") if isinstance(request.body, dict) else None
        if kind.gk != ("", "Pod") or not isinstance(target, str) or not target:
            raise errors.bad_request("a Binding needs target.name, the node of the pod")
        if old.node:
            detail = f"pod {old.key.name} is already assigned to node {errors.quote(old.node)}"
            raise errors.conflict("pods/binding", old.key.name, detail)
        if "deletionTimestamp" in old.meta.value:
            detail = f"pod {old.key.name} is being deleted, cannot be assigned to a host"
            raise errors.conflict("pods/binding", old.key.name, detail)
        _check_uid(old, kind, request.options.get("uid"))
        return _committed(request, old.key, old, write.bind(old, target), 201)

    def _delete(self, store: Store, request: Request, kind: Kind) -> Outcome:
        old = _existing(store, request.key, kind)
        options = request.options
        propagation = options.get("propagation") or "Background"
        if propagation != "Background":
            raise errors.bad_request(
                f"propagationPolicy {propagation} is not supported by this version; use Background, the default"
            )
        _check_uid(old, kind, options.get("uid"))
        _check_rv(old, kind, options.get("rv"))
        return self._delete_now(request, kind, old)

    def _delete_now(self, request: Request, kind: Kind, old: Object) -> Outcome:
        meta = old.meta.value
        grace = _grace(kind, old, request.options.get("grace"))
        begun = "deletionTimestamp" in meta
        held = bool(meta.get("finalizers")) or (kind.gk == NAMESPACE and bool((old.spec_value or EMPTY).finalizers))
        if grace == 0 and not held:
            return _committed(request, old.key, old, None, 200)
        if begun and grace >= meta.get("deletionGracePeriodSeconds", 0):
            return Reply(200, obj=old)
        new = write.mark_deleted(old, time_text(request.now // MICRO + grace), grace)
        if kind.gk == NAMESPACE:
            new.status = Section(Frozen({**(old.status_value or EMPTY), "phase": "Terminating"}))
        return _committed(request, old.key, old, new, 200)


class Writer:
    """The object-local part of a request, as one seam: check replaces it by a memo over the same function."""

    __slots__ = ()

    def write(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str = "") -> write.Written:
        """The next version of one slot. Depends on the old version (but not on its revision), the request and uid."""
        by = by_of(request)
        if request.verb == "apply":
            return apply.apply(kind, key, old, request.body, uid, by, bool(request.options.get("force")))
        if old is None:
            return write.create(kind, key, request.body, uid, by)
        body = request.body if request.verb == "update" else patched(old, request)
        return write.update(kind, old, body, by)


def patched(old: Object, request: Request) -> dict[str, Any]:
    """The body a merge or JSON patch makes of the old version."""
    if request.options.get("patch", "merge") == "json":
        body = patch.json_patch(old.value, request.body)
    elif request.subresource == "status":
        body = _merge_status(old, request.body)
    else:
        body = patch.merge_patch(old.value, request.body)
    if not isinstance(body, dict):
        raise errors.bad_request("the patch does not leave an object; patch fields of it instead")
    return body


PATCH_TYPES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)


def by_of(request: Request) -> write.By:
    """Who writes, for managedFields: the claimed manager, else the actor."""
    manager = request.manager or request.actor or "unknown"
    validation = request.options.get("validation") or "Warn"
    return write.By(manager, time_text(request.now // MICRO), validation, request.subresource)


def _check_subresource(request: Request, kind: Kind) -> None:
    if request.subresource not in ("", "status") or (request.subresource == "status" and not kind.has_status):
        raise errors.method_not_allowed(f"{kind.plural}/{request.subresource}", request.verb, kind.group)


def _existing(store: Store, key: Key, kind: Kind) -> Object:
    obj = store.get(key)
    if obj is None:
        raise errors.not_found(kind.plural, key.name, kind.group)
    return obj


def _body(request: Request, kind: Kind) -> Mapping[str, Any]:
    body = request.body
    if not isinstance(body, dict):
        raise errors.bad_request(f"the body must be a {kind.kind} object, not {type(body).__name__}")
    for field, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = body.get(field)
        if given is not None and given != wanted:
            raise errors.bad_request(f"{field} in the body is {given!r}, but the request is for {wanted}")
    meta = body.get("metadata")
    if meta is not None and not isinstance(meta, dict):
        raise errors.bad_request("metadata must be an object")
    return body


def _check_name(request: Request, kind: Kind, meta: Mapping[str, Any]) -> None:
    name = meta.get("name")
    if name and name != request.key.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({request.key.name})"
        )
    namespace = meta.get("namespace")
    if namespace and namespace != request.key.namespace:
        raise errors.bad_request(
            f"the namespace of the provided object ({namespace}) does not match the request ({request.key.namespace})"
        )


def _check_namespace(store: Store, request: Request, kind: Kind, meta: Mapping[str, Any]) -> None:
    if not kind.namespaced:
        return
    namespace = meta.get("namespace")
    if namespace and namespace != request.key.namespace:
        raise errors.bad_request(
            f"the namespace of the provided object ({namespace}) does not match the request ({request.key.namespace})"
        )
    found = store.get(Key("", "Namespace", "", request.key.namespace))
    if found is None:
        raise errors.not_found("namespaces", request.key.namespace)
    if "deletionTimestamp" in found.meta.value:
        detail = f"unable to create new content in namespace {request.key.namespace} because it is being terminated"
        raise errors.forbidden(kind.plural, str(meta.get("name") or ""), detail, kind.group)


def _check_rv(old: Object, kind: Kind, wanted: Any) -> None:
    if wanted and str(wanted) != str(old.rv):
        raise errors.conflict(kind.plural, old.key.name, group=kind.group)


def _check_uid(old: Object, kind: Kind, wanted: Any) -> None:
    if wanted and wanted != old.uid:
        detail = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {old.uid}"
        raise errors.conflict(kind.plural, old.key.name, detail, kind.group)


def _merge_status(old: Object, body: Any) -> dict[str, Any]:
    """A merge patch of status only: the rest of the object need not be read for it."""
    given = body.get("status") if isinstance(body, dict) else None
    before = old.status_value
    out: dict[str, Any] = {"status": before if given is None else patch.merge_patch(before or EMPTY, given)}
    if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
        out["metadata"] = body["metadata"]
    return out


def _grace(kind: Kind, old: Object, asked: Any) -> int:
    """Seconds until the object goes. Only pods die slowly, and only where somebody runs them."""
    if kind.gk != ("", "Pod"):
        return 0
    if asked == 0 or not old.node:
        return 0
    if old.status is not None and old.status.peek().get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return max(0, int(asked))
    configured = (old.spec_value or EMPTY).get("terminationGracePeriodSeconds")
    return 30 if configured is None else int(configured)


def _finish(request: Request, old: Object, written: write.Written) -> Outcome:
    new = written.obj
    if new is old:
        return Reply(200, obj=old, warnings=written.warnings)
    meta = new.meta.value
    if "deletionTimestamp" in meta and not meta.get("finalizers") and old.meta.value.get("finalizers"):
        spec = new.spec_value or EMPTY
        if not meta.get("deletionGracePeriodSeconds") and not (old.key.gk == NAMESPACE and spec.finalizers):
            return _committed(request, old.key, old, None, 200, written.warnings)
    ending = old.key.gk == NAMESPACE and "deletionTimestamp" in meta and not meta.get("finalizers")
    if ending and not (new.spec_value or EMPTY).finalizers:
        return _committed(request, old.key, old, None, 200, written.warnings)
    return _committed(request, old.key, old, new, 200, written.warnings)


def _committed(
    request: Request, key: Key, old: Object | None, new: Object | None, code: int, warnings: tuple[str, ...] = ()
) -> Outcome:
    if request.options.get("dry_run"):
        return Reply(code, obj=old if new is None else new, warnings=warnings)
    return Commit(key, old, new, code, warnings)


def field_of(obj: Object, path: str) -> Any:
    """The value at a dotted path, for field selectors; "" where there is none."""
    if path == "spec.nodeName":
        return obj.node or ""
    value: Any = obj.value
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else value


def _write_token(namespace: str, name: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([1, namespace, name])).decode().rstrip("=")


def _read_token(token: Any) -> tuple[str, str]:
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(str(token) + "=" * (-len(str(token)) % 4)))
        if version == 1 and isinstance(namespace, str) and isinstance(name, str):
            return namespace, name
    except (ValueError, binascii.Error, TypeError):
        pass
    raise errors.bad_request("the continue token is not one of this server; start the list again without it")
