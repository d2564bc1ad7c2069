"""The versions of a custom kind: stored in one, read and written in any.

Objects stay as they were stored; whoever reads one in a version gets it `shown`: with the defaults of the version it
is stored in, apiVersion rewritten, and without the fields its own version does not declare. Writes are worked out on
that form and turned back into the storage version at the end (`settle`). So a definition may change under objects that
nobody touches. Source of the facts: apiextensions-apiserver 0.36, pkg/apiserver/customresource_handler.go,
pkg/apiserver/schema/pruning, pkg/apiserver/schema/defaulting.

Where a definition has a conversion webhook, its word stands for the rewriting of apiVersion (`conversion`);
`needs_webhook` says when.
"""

from __future__ import annotations

from typing import Final

from steersman.api import aliases, defaults, errors
from steersman.api.crd import conversion
from steersman.api.crd.pruning import prune
from steersman.api.kinds import Kind
from steersman.api.rules import instance_rules
from steersman.api.schema import Schema
from steersman.api.sent import meta_of
from steersman.kernel.effect import Call, Commit, Outcome, Request
from steersman.kernel.object import EMPTY_SECTION, Object, Section
from steersman.kernel.store import Store
from steersman.kernel.value import Frozen

WRITES: Final = ("create", "update", "patch", "apply")
REMEMBERED: Final = 1 << 14
"""Sections whose form under a schema is remembered, a few hundred bytes each; emptied when full."""
_shown: dict[tuple[Schema, Schema, str, int], Section] = {}


def needs_webhook(kind: Kind, obj: Object) -> bool:
    """Whether only the definition's webhook can say what `obj` is in the version of `kind`."""
    return kind.origin is not None and kind.origin.webhook is not None and obj.api_version != kind.api_version


def shown(kind: Kind, obj: Object) -> Object:
    """A stored object in a version of its custom kind; the very object when that is how it is stored.

    Raises `conversion.Unconverted` when its webhook has not been asked, and `ApiError` 500 when it failed.
    """
    if kind.alias is not None:
        return aliases.shown(kind, obj)
    if needs_webhook(kind, obj):
        return _by_webhook(kind, obj)
    stored = _stored_kind(kind, obj)
    spec = _part(kind, stored, "spec", obj.spec)
    status = _part(kind, stored, "status", obj.status)
    rest = _rest(kind, stored, obj.rest)
    if obj.api_version == kind.api_version and spec is obj.spec and status is obj.status and rest is obj.rest:
        return obj
    return Object(obj.key, kind.api_version, obj.rv, obj.meta, spec, rest, status, obj.managers, obj.node)


def _by_webhook(kind: Kind, obj: Object, wanted: Kind | None = None) -> Object:
    """An object in the version `wanted`, or that of `kind`, which has the answers. First it is made complete in its
    own version, unless it was just `wanted` so."""
    own = None if kind.origin is None else kind.origin.siblings.get(obj.api_version.rpartition("/")[2])
    if own is None:
        raise conversion.failed(f"request to convert CR from an invalid group/version: {obj.api_version}")
    complete = obj if wanted is not None else shown(own, obj)
    return conversion.converted(kind.converted or {}, wanted or kind, complete)


def _stored_kind(kind: Kind, obj: Object) -> Kind:
    """The kind in the version an object is stored in, served or not; `kind` when there is no such version any more."""
    if obj.api_version == kind.api_version or kind.origin is None:
        return kind
    found: Kind = kind.origin.siblings.get(obj.api_version.rpartition("/")[2], kind)
    return found


def _part(kind: Kind, stored: Kind, part: str, section: Section | None) -> Section | None:
    """Spec or status; one that was taken in under this very schema is complete and costs one look."""
    schema = kind.schema.fields.get(part)
    if section is None:
        default = defaults.missing_parts(stored).get(part)
        return None if default is None else Section(default)
    if section.valid is kind.schema and stored is kind:
        return section
    if schema is None:
        return section if kind.schema.preserve_unknown else None
    key = (kind.schema, stored.schema, part, section.digest)
    found = _shown.get(key)
    if found is None:
        if len(_shown) >= REMEMBERED:
            _shown.clear()
        value = prune(schema, defaults.fill(stored, part, section.value))
        found = _shown[key] = section if value is section.value else Section(value)
    return section if found.digest == section.digest else found


def _rest(kind: Kind, stored: Kind, section: Section | None) -> Section | None:
    fields = kind.schema.fields
    missing = [part for part in defaults.missing_parts(stored) if part not in ("spec", "status")]
    if section is None and not missing:
        return None
    before = EMPTY_SECTION if section is None else section
    key = (kind.schema, stored.schema, "", before.digest)
    found = _shown.get(key)
    if found is None:
        if len(_shown) >= REMEMBERED:
            _shown.clear()
        value = {part: defaults.missing_parts(stored)[part] for part in missing} | before.value
        kept = {
            part: prune(fields[part], defaults.fill(stored, part, item)) if part in fields else item
            for part, item in value.items()
            if part in fields or kind.schema.preserve_unknown
        }
        found = _shown[key] = Section(Frozen(kept))
    if found.digest == before.digest:
        return section
    return found if found.value else None


def check(store: Store, kind: Kind, request: Request) -> None:
    """Refuses what would make a new object of a kind whose definition is being deleted."""
    if kind.origin is None or not kind.origin.terminating or request.verb not in ("create", "apply"):
        return
    if request.verb == "create" or store.get(request.key) is None:
        detail = "create not allowed while custom resource definition is terminating"
        name = request.key.name or str(meta_of(request.body).get("name") or "")
        raise errors.forbidden(kind.plural, name, detail, kind.group)


def settle(store: Store, kind: Kind, request: Request, outcome: Outcome) -> Outcome:
    """The outcome of a request that was worked out in the version of `kind`, for the store: in the storage version.

    A write that changes nothing is one all the same when the object is stored otherwise than it is shown: in another
    version, or without its defaults. Clients migrate stored objects by such writes.
    """
    if isinstance(outcome, Call):
        resume = outcome.resume
        return outcome._replace(resume=lambda answer: settle(store, kind, request, resume(answer)))
    writes = request.verb in WRITES
    if isinstance(outcome, Commit):
        new, old = outcome.new, outcome.old
        if new is not None and writes:
            instance_rules.judge(kind, old, new)
            told = instance_rules.warnings(old, new)
            outcome = outcome._replace(warnings=(*outcome.warnings, *told)) if told else outcome
        return outcome._replace(old=store.get(outcome.key), new=None if new is None else stored(kind, new))
    if writes and outcome.obj is not None and request.options.get("dry_run"):
        before = store.get(request.key)
        instance_rules.judge(kind, None if before is None else shown(kind, before), outcome.obj)
    if writes and request.verb != "create" and outcome.obj is not None and not request.options.get("dry_run"):
        before = store.get(request.key)
        after = stored(kind, outcome.obj)
        if before is not None and not (before.api_version == after.api_version and before.same_content(after)):
            return Commit(request.key, before, after.replace(rv=0), outcome.code, outcome.warnings)
    return outcome


def stored(kind: Kind, obj: Object) -> Object:
    """An object that was made in the version of `kind`, in the storage version."""
    if kind.origin is None or kind.origin.storage == kind.version:
        return obj
    if kind.origin.webhook is not None:
        return _by_webhook(kind, obj, kind.origin.siblings[kind.origin.storage])
    api_version = f"{kind.group}/{kind.origin.storage}"
    return Object(obj.key, api_version, obj.rv, obj.meta, obj.spec, obj.rest, obj.status, obj.managers, obj.node)
