"""Writes: from an HTTP request to a request of the machine, and back to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from steersman.api import aliases, errors, eviction, refusal
from steersman.api.access.user import User
from steersman.api.kinds import Kind
from steersman.api.patching.patched import accepted, patched
from steersman.api.preconditions import nameless
from steersman.api.sent import meta_of
from steersman.kernel import effect
from steersman.kernel.effect import Reply
from steersman.kernel.object import Key, Object
from steersman.serve import message
from steersman.serve.aside import LARGE, aside
from steersman.serve.backend import Backend
from steersman.serve.body import APPLY_PATCH, Body, media_type, read_object, read_patch
from steersman.serve.converting import Converter
from steersman.serve.evict import evict, options_of
from steersman.serve.listing import Page, list_page
from steersman.serve.options import delete_options, list_options, manager_of, write_options
from steersman.serve.route import Route

Made = TypeVar("Made")
RETURNED_WHEN_GONE: Final = frozenset(
    {
        ("", "Pod"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("", "PodTemplate"),
        ("", "ResourceQuota"),
        ("", "Service"),
        ("", "ServiceAccount"),
        *[("resource.k8s.io", f"Resource{name}") for name in ("Claim", "ClaimTemplate", "Slice")],
        ("resource.k8s.io", "DeviceClass"),
        *[("storage.k8s.io", name) for name in ("CSIDriver", "CSINode", "StorageClass")],
        *[("storage.k8s.io", f"Volume{name}") for name in ("Attachment", "AttributesClass")],
    }
)
"""Kinds whose deletion answers with the object even when it is gone at once (ReturnDeletedObject in Kubernetes)."""
PATCH_TRIES: Final = 5
"""Times a patch is worked out anew when somebody else's write came in between, as in kube-apiserver."""
DELETED_AT_ONCE: Final = 64
"""Deletes of a collection that are in flight together: one group of the journal."""


class Changed(NamedTuple):
    """What a write came to: an object to be shown, several of them, or a document of another kind (a Status, a
    Scale); and warnings for the client."""

    code: int
    obj: Object | None = None
    objs: list[Object] | None = None
    document: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()


class Change(NamedTuple):
    """One write by one actor."""

    backend: Backend
    route: Route
    http: message.Request
    actor: str
    user: User | None = None
    """Who `actor` is, for what has to be decided about the object itself."""
    no_create: errors.ApiError | None = None
    """Why an apply or an update must not create what is not there."""
    converter: Converter | None = None
    """Who has objects converted, for a kind that needs it."""

    # -- create, update, patch ---------------------------------------------------------------------------------

    async def create(self) -> Changed:
        """POST to a collection."""
        options = write_options(self.http.query, "CreateOptions")
        body = await self._body()
        warnings = duplicates(body, options, self.route.kind)
        return _shown(await self.send("create", "", self._stored(body.value), options), warnings)

    async def create_part(self) -> Changed:
        """POST to a subresource: a pod's binding or eviction, a service account's token."""
        options = write_options(self.http.query, "CreateOptions")
        body = (await self._body()).value
        if self._part == "token":
            return _shown(await self.send("create", "token", body, options), ())
        if self._part == eviction.SUBRESOURCE:
            options_of(body, self.route.name, options, self.http.query)
            admitted = await self.send("create", self._part, body, options)
            wanted = options_of(admitted.status, self.route.name, options, self.http.query)
            manager = manager_of(self.http.query, self.http.headers.get("user-agent"))
            await evict(self.backend, self._key, wanted, self.actor, manager)
            return Changed(201, document={**_success(), "code": 201}, warnings=admitted.warnings)
        named = meta_of(body)
        if named.get("name", self.route.name) != self.route.name:
            raise errors.bad_request("name in URL does not match name in Binding object")
        options["uid"] = named.get("uid") or ""
        await self.send("create", self._part, body, options)
        return Changed(201, document={**_success(), "code": 201})

    async def update(self) -> Changed:
        """PUT of an object, of its status, or of the finalizers of a namespace."""
        options = write_options(self.http.query, "UpdateOptions")
        body = await self._body()
        warnings = duplicates(body, options, self.route.kind)
        if not meta_of(body.value).get("name") and body.value.get("kind") in (None, "", self.route.kind.kind):
            raise nameless(self.route.name)  # what is of another kind is refused for that
        old = self.backend.store.get(self._key) if self.route.kind.alias is not None else None
        return _shown(await self.send("update", self._part, self._stored(body.value, old), options), warnings)

    async def patch(self) -> Changed:
        """PATCH of an object or of its status; by server-side apply it may also be created."""
        query = self.http.query
        content_type = self.http.headers.get("content-type")
        options = write_options(query, "PatchOptions")
        if media_type(content_type) == APPLY_PATCH and not query.get("fieldManager"):
            cause = errors.Cause.required("fieldManager", "is required for apply patch")
            raise errors.invalid("PatchOptions", "", [cause], "meta.k8s.io")
        forms, data = accepted(self.route.kind), self.http.body
        if len(data) > LARGE:
            form, body = await aside(read_patch, content_type, data, forms)
        else:
            form, body = read_patch(content_type, data, forms)
        warnings = duplicates(body, options)
        if form == "apply":
            options["force"] = query.flag("force")
            kind = self.route.kind
            value = body.value if kind.alias is None else aliases.applied(kind, body.value)
            return _shown(await self.send("apply", self._part, value, options), warnings)
        if "force" in query:
            cause = errors.Cause.forbidden("force", "may not be specified for non-apply patch")
            raise errors.invalid("PatchOptions", "", [cause], "meta.k8s.io")
        options["patch"] = form
        if self.route.kind.alias is not None:
            return _shown(await self._patch_alias(body.value, options), warnings)
        return _shown(await self.send("patch", self._part, body.value, options), warnings)

    def _stored(self, body: Any, old: Object | None = None) -> Any:
        """What was sent, in the shape in which its kind is stored."""
        kind = self.route.kind
        return body if kind.alias is None else aliases.stored(kind, body, old)

    async def _patch_alias(self, given: Any, options: dict[str, Any]) -> Reply:
        """A patch of an object in a shape it is not stored in: an update that begins again when it came too late."""
        kind, key = self.route.kind, self._key
        for tries_left in reversed(range(PATCH_TRIES)):
            old = self.backend.store.get(key)
            if old is None:
                raise errors.not_found(kind.plural, key.name, kind.group)
            request = effect.Request("patch", key, given, self._part, self.actor, options=options)
            body = self._stored(patched(kind, aliases.shown(kind, old), request), old)
            version = meta_of(given).get("resourceVersion")
            body["metadata"] = {**body["metadata"], "resourceVersion": version or str(old.rv)}
            try:
                return await self.send("update", self._part, body, dict(options))
            except errors.ApiError as error:
                if error.code != 409 or version or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _body(self) -> Body:
        """The object that was sent. Raises ApiError 400, 415."""
        kind, part = self.route.kind, self.route.part
        named = (part.api_version, part.kind) if part else (kind.api_version, kind.kind)
        sent, data = self.http.headers.get("content-type"), self.http.body
        default = None if kind.custom else named
        return await aside(read_object, sent, data, default) if len(data) > LARGE else read_object(sent, data, default)

    @property
    def _key(self) -> Key:
        return Key(*self.route.kind.gk, self.route.namespace, self.route.name)

    @property
    def _part(self) -> str:
        return self.route.part.name if self.route.part else ""

    async def send(self, verb: str, part: str, body: Any, options: dict[str, Any]) -> Reply:
        """Hands a request for the object of the route to the machine."""
        manager = manager_of(self.http.query, self.http.headers.get("user-agent"))
        now = self.backend.now()
        options["user"] = self.user
        if self.http.trail is not None:
            options["audit"] = self.http.trail.notes
        if self.no_create is not None:
            options["no_create"] = self.no_create
        if self.route.kind.alias is not None:
            options["served"] = self.route.kind.api_version
        if self.route.kind.custom:
            options["version"] = self.route.kind.version
        request = effect.Request(verb, self._key, body, part, self.actor, manager, now, options)
        return await self.backend.write(request, len(self.http.body) > LARGE)

    # -- delete ------------------------------------------------------------------------------------------------

    async def delete(self) -> Changed:
        """DELETE of one object."""
        options = self._delete_options()
        reply = await self.send("delete", "", None, options)
        obj = reply.obj
        if obj is None:
            return Changed(reply.code, document=reply.status or _success())
        kind = self.route.kind
        left = self.backend.store.get(obj.key)
        gone = left is None or left.uid != obj.uid
        if options.get("dry_run") and "deletionTimestamp" not in obj.meta.value:
            gone = True  # it would be
        if gone and kind.gk not in RETURNED_WHEN_GONE:
            details = {"name": obj.key.name, "group": kind.group, "kind": kind.plural, "uid": obj.uid}
            done = _success({name: text for name, text in details.items() if text})
            return Changed(200, document=done, warnings=reply.warnings)
        return Changed(reply.code, obj, warnings=reply.warnings)

    async def delete_collection(self) -> Changed:
        """DELETE of every object a list would give. One that somebody else deletes meanwhile is no error."""
        options = self._delete_options()
        found = (await self.read(self._page)).items
        for start in range(0, len(found), DELETED_AT_ONCE):
            batch = found[start : start + DELETED_AT_ONCE]
            done = await asyncio.gather(*[self._delete_one(obj, options) for obj in batch], return_exceptions=True)
            for outcome in done:
                if isinstance(outcome, BaseException) and not isinstance(outcome, errors.NotFound):
                    raise outcome
        return Changed(200, objs=found)

    def _page(self, kind: Kind) -> Page:
        return list_page(self.backend, kind, self.route.namespace, list_options(self.http.query))

    async def read(self, act: Callable[[Kind], Made]) -> Made:
        """`Converter.read` of the route's kind."""
        kind = self.route.kind
        return act(kind) if self.converter is None else await self.converter.read(kind, act)

    async def _delete_one(self, obj: Object, options: dict[str, Any]) -> Reply:
        manager = manager_of(self.http.query, self.http.headers.get("user-agent"))
        now = self.backend.now()
        told = {**options, "uid": options["uid"] or obj.uid, "user": self.user}
        if self.http.trail is not None:
            told["audit"] = self.http.trail.notes
        return await self.backend.write(effect.Request("delete", obj.key, None, "", self.actor, manager, now, told))

    def _delete_options(self) -> dict[str, Any]:
        data = self.http.body
        named = ("meta.k8s.io/v1", "DeleteOptions")
        body = read_object(self.http.headers.get("content-type"), data, named).value if data.strip() else None
        return delete_options(self.http.query, body)


def _shown(reply: Reply, warnings: tuple[str, ...]) -> Changed:
    return Changed(reply.code, reply.obj, document=reply.status, warnings=(*warnings, *reply.warnings))


def _success(details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status


def duplicates(body: Body, options: Mapping[str, Any], kind: Kind | None = None) -> tuple[str, ...]:
    """Warnings about fields that are there twice; refused under strict validation, of a `kind` with all that is."""
    if not body.duplicates or options["validation"] == "Ignore":
        return ()
    if options["validation"] == "Strict":
        if kind is not None:
            raise refusal.strict(kind, body.value, body.strictly)
        raise errors.bad_request(f"strict decoding error: {', '.join(body.strictly)}")
    return body.duplicates
