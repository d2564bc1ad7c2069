"""The request machine: one API request against a store, without input or output.

`begin(store, request)` validates, authenticates nothing (the actor already is), and answers a `Reply`, a `Commit` or a
`Call` (see `kernel.effect`). It raises `ApiError` for everything a client did wrong. The same machine serves check,
simulate and run; only who performs calls and commits differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from steersman.api import deletion, errors, eviction, go_json, names, preconditions, taking, versions
from steersman.api.access.authz import Rbac
from steersman.api.admission.chain import NONE, Chain, Then
from steersman.api.admission.plugin import CONNECT, CREATE, DELETE, UPDATE, Attempt, part_of
from steersman.api.bind import bind
from steersman.api.by import Written
from steersman.api.continuing import read_token, write_token
from steersman.api.crd import conversion, crd
from steersman.api.crd.custom_rules import answered
from steersman.api.crd.definition import CRD, declared_kinds
from steersman.api.guards import FILLED, GUARDS
from steersman.api.kinds import Kind, Kinds, UnknownKind
from steersman.api.patching.patched import check_form
from steersman.api.preconditions import NAMESPACE
from steersman.api.select import FieldSelector, LabelSelector
from steersman.api.selectable import selectable, selected
from steersman.api.sent import meta_of
from steersman.api.times import time_text
from steersman.api.writer import Writer, by_of
from steersman.kernel.effect import MICRO, Call, Commit, ListQuery, Outcome, Reply, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store
from steersman.kernel.value import EMPTY

MAX_LIST_PAGE: Final = 100_000
"""Most objects in one page: a bound on what one request can make the server hold."""
POD: Final = ("", "Pod")
TYPE_AND_META: Final = frozenset({"apiVersion", "kind", "metadata"})
GENERATE_TRIES: Final = 8
"""Names drawn for one generateName before the create fails (kube-apiserver's number)."""
MAX_VERSION: Final = 19
"""Digits of a resourceVersion, which is a number of 64 bits."""
MAX_REGISTRIES: Final = 64
"""Sets of definitions whose registry is remembered: check goes to and fro between those of its states."""


class Api:
    """The request machine over a registry of kinds, and those that a store's definitions declare (`at`), with a chain
    of admission. Immutable."""

    __slots__ = ("_registries", "_verbs", "admission", "kinds", "rbac", "writer")

    def __init__(self, kinds: Kinds, writer: Writer | None = None, admission: Chain = NONE) -> None:
        self.kinds = kinds
        """The kinds there are without any definition in the store."""
        self._registries: dict[tuple[Kind, ...], Kinds] = {}
        self.writer = writer or Writer()
        self.admission = admission
        self.rbac = Rbac()
        self._verbs: dict[str, Callable[[Store, Request, Kind], Outcome]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "apply": self._apply,
            "delete": self._delete,
            "connect": self._connect,
        }

    def begin(self, store: Store, request: Request) -> Outcome:
        """The outcome of a request on this store. Raises `ApiError`."""
        try:
            kind = self.kinds.builtin_of(request.key.group, request.key.kind)
            if kind is None:
                kind = self.at(store).get(request.key.group, request.key.kind)
        except UnknownKind as unknown:
            raise errors.NotFound(404, "NotFound", str(unknown), errors.Details()) from None
        handler = self._verbs.get(request.verb)
        if handler is None:
            raise errors.method_not_allowed(kind.plural, request.verb, kind.group)
        if request.key.namespace and not kind.namespaced:
            raise errors.bad_request(f"{kind.plural} are not in namespaces; leave the namespace out")
        if kind.custom:
            kind = _asked_version(kind, request)
            versions.check(store, kind, request)
            return answered(kind, lambda: self._custom(store, request, kind, handler))
        outcome = handler(store, request, kind)
        if kind.gk == CRD:
            return crd.settle(store, request, outcome)
        guard = GUARDS.get(kind.gk)
        return outcome if guard is None else guard(self.rbac, store, request, outcome)

    def _custom(
        self, store: Store, request: Request, kind: Kind, handler: Callable[[Store, Request, Kind], Outcome]
    ) -> Outcome:
        if kind.origin is not None and kind.origin.webhook is not None:
            return conversion.asking(
                store, kind, lambda k: versions.settle(store, k, request, handler(store, request, k))
            )
        return versions.settle(store, kind, request, handler(store, request, kind))

    def at(self, store: Store) -> Kinds:
        """The kinds that can be written to a store: a pure function of the definitions in it."""
        found: tuple[Kind, ...] | None = store.derived(CRD, declared_kinds)
        return self.declaring(found) if found else self.kinds

    def declaring(self, found: tuple[Kind, ...]) -> Kinds:
        """The kinds there are with these, which definitions declare."""
        if not found:
            return self.kinds
        made = self._registries.get(found)
        if made is None:
            if len(self._registries) >= MAX_REGISTRIES:
                self._registries.clear()
            made = self._registries[found] = self.kinds.with_stored(found)
        return made

    # -- reads ---------------------------------------------------------------------------------------------

    def _get(self, store: Store, request: Request, kind: Kind) -> Reply:
        preconditions.check_subresource(request, kind)
        return Reply(200, obj=preconditions.existing(store, request.key, kind), rev=store.rev)

    def _list(self, store: Store, request: Request, kind: Kind) -> Reply:
        options = request.options
        query = self.query(kind, request.key.namespace or None, options.get("labels", ""), options.get("fields", ""))
        limit = min(preconditions.whole(options, "limit") or MAX_LIST_PAGE, MAX_LIST_PAGE)
        after, rev = read_token(options["continue"]) if options.get("continue") else (None, store.rev)
        items = tuple(islice(store.query(query, after), limit + 1))
        if kind.custom:
            items = tuple([versions.shown(kind, obj) for obj in items])
        if len(items) <= limit:
            return Reply(200, items=items, rev=rev)
        items = items[:limit]
        last = items[-1].key
        remaining = 0
        if query.matches is None and not query.by:  # with a selector nobody knows, and Kubernetes does not say
            remaining = store.count_after(kind.gk, query.namespace, (last.namespace, last.name))
        token = write_token(last.namespace, last.name, rev)
        return Reply(200, items=items, rev=rev, token=token, remaining=remaining)

    def query(self, kind: Kind, namespace: str | None, labels: Any = "", fields: str = "") -> ListQuery:
        """A list of one kind, narrowed by the indexes there are. Raises `ApiError` 400 for a wrong selector."""
        if not isinstance(fields, str):
            raise errors.bad_request("a field selector is text, such as metadata.name=web")
        selector = LabelSelector.parse(labels) if isinstance(labels, str) else LabelSelector.compile(labels)
        by_field = FieldSelector.parse(fields, selectable(kind)) if fields else None
        node = by_field.required("spec.nodeName") if by_field is not None and kind.gk == ("", "Pod") else None
        text = str(selector) + (f" fields {by_field}" if by_field else "")
        if selector.empty and by_field is None:
            return ListQuery(kind.gk, namespace)

        def matches(obj: Object) -> bool:
            if not selector.matches(obj.meta.value.get("labels")):
                return False
            if by_field is None:
                return True
            seen = versions.shown(kind, obj) if kind.custom else obj
            return by_field.matches(lambda path: selected(seen, path))

        return ListQuery(kind.gk, namespace, "node" if node else "", node or "", text, matches)

    # -- writes --------------------------------------------------------------------------------------------

    def _create(self, store: Store, request: Request, kind: Kind) -> Outcome:
        if request.subresource == "binding":
            return self._bind(store, request, kind)
        fill = FILLED.get((kind.gk, request.subresource))
        if fill is not None:
            return fill(self, store, request, kind)
        if request.subresource == eviction.SUBRESOURCE and kind.gk == POD:
            if request.body:  # the Eviction: it is judged before anything happens
                attempt = Attempt(store, request, kind, request.key, CREATE, None, request.body)
                return self.admitted(attempt, lambda after: Reply(201, status=after.body, warnings=after.warnings))
            old = preconditions.existing(store, request.key, kind)
            preconditions.check_rv(old, kind, request.options.get("rv"))
            marked = eviction.mark(old, time_text(request.now // MICRO))
            return Reply(200, obj=old) if marked is old else _committed(request, old.key, old, marked, 200)
        if request.subresource:
            raise errors.method_not_allowed(f"{kind.plural}/{request.subresource}", "create", kind.group)
        body = preconditions.body(request, kind)
        meta = body.get("metadata") or EMPTY
        base = meta.get("generateName") or ""
        name = meta.get("name") or request.key.name
        if request.key.name and name != request.key.name:
            preconditions.check_name(request, kind, meta)
        preconditions.check_namespace(store, request, kind, meta)
        if name:
            return self._create_named(store, request, kind, name)
        if not base and kind.gk == ("", "LimitRange"):  # which need not be named: a uid is its name then
            return Call("random", ("uid", request.key), lambda uid: self._create_named(store, request, kind, uid))
        if not base or not isinstance(base, str):
            return self._create_named(store, request, kind, "")  # which is refused, with all that is wrong
        return self._generate(store, request, kind, base, GENERATE_TRIES)

    def _generate(self, store: Store, request: Request, kind: Kind, base: str, tries: int) -> Call:
        """A create under a name that somebody else draws; again when the name is taken."""

        def named(suffix: Any) -> Outcome:
            name = names.generate_name(base, suffix)
            if store.get(Key(kind.group, kind.kind, request.key.namespace, name)) is None:
                return self._create_named(store, request, kind, name)
            if tries > 1:
                return self._generate(store, request, kind, base, tries - 1)
            raise errors.generate_name_conflict(kind.plural, name, kind.group)

        return Call("random", ("name", request.key, base), named)

    def _create_named(self, store: Store, request: Request, kind: Kind, name: str) -> Outcome:
        if not isinstance(name, str):
            problem = go_json.complaint(
                "ObjectMeta", kind.schema.fields["metadata"].fields["name"], "metadata.name", name
            )
            raise errors.bad_request(f"{preconditions.handled(kind)}: {problem}")
        key = Key(kind.group, kind.kind, request.key.namespace, name)
        return self._identify(store, request, kind, key)

    def _update(self, store: Store, request: Request, kind: Kind) -> Outcome:
        body = preconditions.body(request, kind)
        meta = body.get("metadata") or EMPTY
        if meta:
            preconditions.check_name(request, kind, meta)
        wanted = meta.get("resourceVersion") or request.options.get("rv")
        old = preconditions.found(store, request.key, kind)
        if old is None:
            if kind.gk in preconditions.MADE_BY_UPDATE and not request.subresource:
                return self._create_at(store, request, kind, meta)
            raise errors.not_found(kind.plural, request.key.name, kind.group)
        preconditions.check_version_given(kind, old.key.name, wanted)
        preconditions.check_rv(old, kind, wanted)
        if meta:
            preconditions.check_uid(old, kind, meta.get("uid"))
        return self._write(store, request, kind, old)

    def _patch(self, store: Store, request: Request, kind: Kind) -> Outcome:
        old = preconditions.existing(store, request.key, kind)
        options = request.options
        check_form(kind, options.get("patch", "merge"))
        preconditions.check_rv(old, kind, options.get("rv"))
        if isinstance(request.body, dict) and request.body.keys() & TYPE_AND_META:
            meta = preconditions.patch_meta(request, kind)
            preconditions.check_name(request, kind, meta)
            preconditions.check_rv(old, kind, meta.get("resourceVersion"))
        return self._write(store, request, kind, old)

    def _create_at(self, store: Store, request: Request, kind: Kind, meta: Mapping[str, Any]) -> Outcome:
        """What is not there yet is made, by an apply or a PUT: that needs leave to create, and asks for no version."""
        if request.options.get("no_create"):
            raise request.options["no_create"]
        if meta.get("resourceVersion"):
            raise errors.conflict(kind.plural, request.key.name, group=kind.group)
        preconditions.check_namespace(store, request, kind, meta)
        return self._identify(store, request, kind, request.key)

    def _write(self, store: Store, request: Request, kind: Kind, old: Object) -> Outcome:
        preconditions.check_subresource(request, kind)
        plan = self.admission.plan(store, kind.gk, UPDATE, part_of(request), request.options.get("user"))
        if plan is None:
            return _finish(request, old, self.writer.write(kind, request.key, old, request))
        attempt = Attempt(store, request, kind, request.key, UPDATE, old, None)
        return plan.write(self.writer, attempt, "", lambda written: _finish(request, old, written))

    def _apply(self, store: Store, request: Request, kind: Kind) -> Outcome:
        if not request.manager:
            cause = errors.Cause.required("fieldManager", "is required for apply patch")
            raise errors.invalid("PatchOptions", "", [cause], "meta.k8s.io")
        body = preconditions.body(request, kind)
        meta = preconditions.applied_meta(body)
        preconditions.check_name(request, kind, meta)
        preconditions.check_subresource(request, kind)
        old = preconditions.found(store, request.key, kind)
        if old is not None:
            preconditions.check_rv(old, kind, meta.get("resourceVersion"))
            preconditions.check_uid(old, kind, meta.get("uid"))
            return self._write(store, request, kind, old)
        if request.subresource:
            raise errors.not_found(kind.plural, request.key.name, kind.group)
        preconditions.check_no_uid(kind, request.key.name, meta.get("uid"))
        return self._create_at(store, request, kind, {**meta, "resourceVersion": ""})

    def _identify(self, store: Store, request: Request, kind: Kind, key: Key) -> Outcome:
        """A create, once somebody has drawn the uid. That a name is taken is said last, as in kube-apiserver: of what
        is not valid, or not admitted, one hears that."""
        taken = store.get(key)
        hopeless = not key.name or taken is not None

        def created(written: Written) -> Outcome:
            if hopeless:
                deleting = taken is not None and "deletionTimestamp" in taken.meta.value
                refused = errors.already_exists(kind.plural, key.name, kind.group, deleting)
                refused.warnings = written.warnings
                raise refused
            made = written.obj
            sent = meta_of(request.body).get("resourceVersion") if request.options.get("dry_run") else None
            if isinstance(sent, str) and sent.isdecimal() and len(sent) <= MAX_VERSION:
                made = made.at(int(sent))  # which nobody looks at then
            return _committed(request, key, None, made, 201, written.warnings)

        def identified(uid: Any) -> Outcome:
            plan = self.admission.plan(store, kind.gk, CREATE, "", request.options.get("user"))
            if plan is None:
                return created(self.writer.write(kind, key, None, request, uid))
            return plan.write(self.writer, Attempt(store, request, kind, key, CREATE, None, None), uid, created)

        return identified("") if hopeless else Call("random", ("uid", key), identified)

    def _bind(self, store: Store, request: Request, kind: Kind) -> Outcome:
        old = preconditions.existing(store, request.key, kind)
        body = request.body if isinstance(request.body, dict) else EMPTY
        target = body.get("target")
        name = target.get("name") if isinstance(target, dict) else None
        if kind.gk != POD or not isinstance(name, str) or not name:
            raise errors.bad_request("a Binding needs target.name, the node of the pod")
        if isinstance(target, dict) and target.get("kind") not in (None, "", "Node"):
            raise errors.bad_request("target.kind of a Binding must be Node")
        given = meta_of(body)
        if body.get("metadata") not in (None, given):
            raise errors.bad_request("metadata must be an object")
        preconditions.check_uid(old, kind, given.get("uid") or request.options.get("uid"))
        preconditions.check_rv(old, kind, given.get("resourceVersion"))
        problem = ""
        if "deletionTimestamp" in old.meta.value:
            problem = f"pod {old.key.name} is being deleted, cannot be assigned to a host"
        elif old.node:
            problem = f"pod {old.key.name} is already assigned to node {errors.quote(old.node)}"
        elif old.spec is not None and old.spec.peek().get("schedulingGates"):
            problem = f"pod {old.key.name} has non-empty .spec.schedulingGates"
        if problem:
            raise errors.conflict("pods/binding", old.key.name, problem)

        def bound(given: Mapping[str, Any], warnings: tuple[str, ...]) -> Outcome:
            opened: dict[str, Any] = {}
            if given and given.keys() & {"labels", "annotations"}:
                opened = taking.open_meta(kind, given, old.key.name, by_of(request), [])
            new = bind(old, name, time_text(request.now // MICRO), opened)
            return _committed(request, old.key, old, new, 201, warnings)

        plan = self.admission.plan(store, POD, CREATE, "binding", request.options.get("user"))
        if plan is None:
            return bound(given, ())
        attempt = Attempt(store, request, kind, old.key, CREATE, old, body)
        return plan.run(attempt, lambda after: bound((after.body or EMPTY).get("metadata") or EMPTY, after.warnings))

    def admitted(self, attempt: Attempt, then: Then) -> Outcome:
        """What `then` makes of a delete or of a write to a subresource, once the chain has let it pass."""
        user = attempt.request.options.get("user")
        plan = self.admission.plan(attempt.store, attempt.kind.gk, attempt.operation, attempt.subresource, user)
        return then(attempt) if plan is None else plan.run(attempt, then)

    def _connect(self, store: Store, request: Request, kind: Kind) -> Outcome:
        """What admission makes of the options of a connection, as the reply's `status`; nothing is looked up."""
        attempt = Attempt(store, request, kind, request.key, CONNECT, None, request.body)
        return self.admitted(attempt, lambda after: Reply(200, status=after.body, warnings=after.warnings))

    def _delete(self, store: Store, request: Request, kind: Kind) -> Outcome:
        preconditions.check_mortal(request.key, kind)
        old = preconditions.existing(store, request.key, kind)
        options = request.options
        try:
            deletion.check(old, kind, options)
        except errors.ApiError as refused:
            refused.warnings = deletion.warnings(kind, options)
            raise
        plan = self.admission.plan(store, kind.gk, DELETE, "", request.options.get("user"))
        if plan is None:
            return self._delete_now(request, kind, old)
        attempt = Attempt(store, request, kind, old.key, DELETE, old, None)
        return plan.run(attempt, lambda after: self._delete_now(request, kind, old, after.warnings))

    def _delete_now(self, request: Request, kind: Kind, old: Object, told: tuple[str, ...] = ()) -> Outcome:
        warnings = (*deletion.warnings(kind, request.options), *told)
        new = deletion.after(kind, old, request.options, request.now)
        if new is old:
            return Reply(200, obj=old, warnings=warnings)
        if new is None:
            seen = deletion.last_seen(kind, request.now)
            if not request.options.get("dry_run"):
                return Commit(old.key, old, None, 200, warnings, seen)
            return Reply(200, obj=old if seen is None else seen(old).at(old.rv), warnings=warnings)
        return _committed(request, old.key, old, new, 200, warnings)


def _asked_version(kind: Kind, request: Request) -> Kind:
    """The kind in the version that a request is made in: as its options say, else its body; stored if neither does."""
    version = request.options.get("version")
    if version is None and isinstance(request.body, dict):
        group, _, version = str(request.body.get("apiVersion") or "").rpartition("/")
        if group != kind.group:
            return kind
    return (kind.in_version(version) or kind) if version else kind


def _finish(request: Request, old: Object, written: Written) -> Outcome:
    new = written.obj
    if new is old:
        return Reply(200, obj=old, warnings=written.warnings)
    meta = new.meta.value
    if "deletionTimestamp" in meta and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds"):
        held = old.key.gk == NAMESPACE and (new.spec_value or EMPTY).finalizers
        if not held:
            outcome = _committed(request, old.key, old, None, 200, written.warnings)
            return outcome._replace(last=lambda old: new.at(old.rv)) if isinstance(outcome, Commit) else outcome
    return _committed(request, old.key, old, new, 200, written.warnings)


def _committed(
    request: Request, key: Key, old: Object | None, new: Object | None, code: int, warnings: tuple[str, ...] = ()
) -> Outcome:
    if request.options.get("dry_run"):
        if new is not None and old is not None:
            new = new.at(old.rv)
        return Reply(code, obj=old if new is None else new, warnings=warnings)
    return Commit(key, old, new, code, warnings)
