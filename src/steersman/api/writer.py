"""The object-local part of a request, as one seam: check replaces it by a memo over the same functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from steersman.api import born, errors, refusal, validate, write
from steersman.api.by import By, Written
from steersman.api.crd.custom_rules import judged as custom_judged
from steersman.api.kinds import Kind
from steersman.api.managed import same_owners
from steersman.api.patching import apply
from steersman.api.patching.patched import patched, write_patched
from steersman.api.prepare import PREPARED
from steersman.api.times import time_text
from steersman.kernel.effect import MICRO, Request
from steersman.kernel.object import Key, Object, Section

MAX_MANAGER: Final = 128
"""Characters of a fieldManager (kube-apiserver's limit)."""
MAX_WRITERS: Final = 1 << 10
"""Writers remembered, each with the second in which it wrote: a burst comes from few."""


class Writer:
    """See the module's text. Immutable."""

    __slots__ = ()

    def write(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str = "") -> Written:
        """The next version of one slot. Depends on the old version (but not on its revision), the request and uid."""
        by = by_of(request)
        try:
            written = self._write(kind, key, old, request, uid, by)
        except errors.Invalid as first:
            body = _whole_body(kind, old, request)
            if body is not None and first.details is not None and first.details.kind:
                raise refusal.complete(kind, key, old, body, by, first) from None
            raise
        except errors.BadRequest as first:
            raise refusal.strictly(kind, request, first) from None
        return custom_judged(kind, old, written) if kind.custom else written

    def draft(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str = "") -> Written:
        """The same, not judged: what admission plugins see of a write that is not valid, or not yet."""
        return self._write(kind, key, old, request, uid, by_of(request)._replace(judge=False))

    def settle(
        self,
        kind: Kind,
        key: Key,
        old: Object | None,
        request: Request,
        draft: Object,
        body: Mapping[str, Any],
        judged: bool = False,
    ) -> Object:
        """The next version when admission made `body` of a draft: complete and valid, owned as the draft is. `judged`:
        the draft was found valid itself."""
        if judged and old is None and (known := _with_spec(kind, draft, body)) is not None:
            return known
        by = by_of(request)._replace(validation="Ignore")
        try:
            new = (
                write.create(kind, key, body, draft.uid, by).obj
                if old is None
                else write.update(kind, old, body, by).obj
            )
        except errors.Invalid as first:
            if request.verb == "apply" or request.subresource:
                raise
            raise refusal.complete(kind, key, old, body, by, first) from None
        if old is not None and new is old:
            return old if same_owners(draft.managers, old.managers) else old.replace(managers=draft.managers, rv=0)
        new.managers = draft.managers
        return custom_judged(kind, old, Written(new)).obj if kind.custom else new

    def _write(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str, by: By) -> Written:
        if request.verb == "apply":
            return apply.apply(kind, key, old, request.body, uid, by, bool(request.options.get("force")))
        if old is None:
            return write.create(kind, key, request.body, uid, by)
        if request.verb == "patch":
            return write_patched(kind, old, request, by)
        return write.update(kind, old, request.body, by)


def _with_spec(kind: Kind, draft: Object, body: Mapping[str, Any]) -> Object | None:
    """A new, valid object whose `body` has become another one, when all that differs is a spec that another object was
    born with: nothing is left to judge. None: `write.create` has to say."""
    spec = body.get("spec")
    section = getattr(spec, "mark", None)
    if type(section) is not Section or section.valid is not kind.schema or section.born is None:
        return None
    if body["metadata"] is not draft.meta.value or draft.rest is not None or "nodeName" in section.value:
        return None
    if draft.node or draft.spec is None or draft.status is not draft.spec.born:
        return None
    if kind.gk in PREPARED or kind.gk in validate.TOGETHER or kind.gk in born.META:
        return None
    return draft.replace(spec=section, status=section.born)


def _whole_body(kind: Kind, old: Object | None, request: Request) -> Any:
    """The object that a refused request would have made, as it was sent or patched; None where that is no whole one."""
    if request.subresource or request.verb not in ("create", "update", "patch"):
        return None
    body = patched(kind, old, request) if request.verb == "patch" and old is not None else request.body
    return body if isinstance(body, dict) else None


def by_of(request: Request) -> By:
    """Who writes, for managedFields: the claimed manager, else the actor. Raises `ApiError` 422."""
    manager, options = request.manager or request.actor or "unknown", request.options
    by = _by(manager, request.now // MICRO, request.subresource)
    if not options:
        return by
    part, served = options.get("part") or "", options.get("served") or ""
    return By(manager, by.time, options.get("validation") or "Warn", request.subresource, part, served=served)


@lru_cache(maxsize=MAX_WRITERS)
def _by(manager: str, second: int, subresource: str) -> By:
    if len(manager) > MAX_MANAGER or not manager.isprintable():
        cause = errors.Cause.invalid("fieldManager", manager, f"must be at most {MAX_MANAGER} printable characters")
        raise errors.invalid("PatchOptions", "", [cause], "meta.k8s.io")
    return By(manager, time_text(second), "Warn", subresource)
