"""What a patch of any form but apply makes of the version there is.

Source of the facts: apiserver `pkg/endpoints/handlers/patch.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from steersman.api import errors, go_unstructured, preconditions, write
from steersman.api.by import By, Written
from steersman.api.kinds import STATUS_PARTS, Kind
from steersman.api.patching import patch
from steersman.api.patching.strategic import strategic_merge
from steersman.kernel.effect import Request
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY

MANAGED_PATH: Final = "/metadata/managedFields"
FORMS: Final[Mapping[str, str]] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
"""The name of a form in `Request.options["patch"]` → its media type, in the order kube-apiserver lists them."""


def accepted(kind: Kind) -> tuple[str, ...]:
    """The media types of patches of this kind: nothing says how lists of custom kinds would be merged."""
    return tuple(media for form, media in FORMS.items() if form != "strategic" or not kind.custom)


def check_form(kind: Kind, form: str) -> None:
    """Raises 415 for a form of patch that this kind does not take."""
    if form == "apply" or FORMS.get(form) not in accepted(kind):
        raise errors.unsupported_media_type(accepted(kind))


def patched(kind: Kind, old: Object, request: Request) -> dict[str, Any]:
    """The body a merge, strategic merge or JSON patch makes of the old version. Raises `ApiError`."""
    form = request.options.get("patch", "merge")
    body: Any
    if form == "json":
        body = patch.json_patch(_document(old, request.body), request.body)
    elif form == "strategic":
        body = strategic_merge(old.value, request.body, kind.schema)
    elif request.subresource in STATUS_PARTS:
        body = _merge_status(old, request.body)
    else:
        body = patch.merge_patch(old.value, request.body)
    meta = body.get("metadata", EMPTY) if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(meta, dict):
        raise errors.bad_request("the patch does not leave an object with metadata; patch fields of it instead")
    if form == "merge" and "metadata" not in request.body:
        return body
    if not meta.get("name"):
        raise preconditions.nameless(request.key.name)
    if form == "merge":
        return body
    before = old.value
    if form == "json":
        for field in ("apiVersion", "kind"):
            if body.get(field) != before[field]:
                raise errors.bad_request(f"the patch changes {field}; create another object instead")
    preconditions.check_name(request, kind, meta)
    if form == "json":
        preconditions.check_rv(old, kind, meta.get("resourceVersion"))
    return body


def write_patched(kind: Kind, old: Object, request: Request, by: By) -> Written:
    """The version after a patch. What its result cannot be decoded for is the patch's fault: 422. Raises `ApiError`."""
    body = patched(kind, old, request)
    try:
        return write.update(kind, old, body, by)
    except errors.BadRequest as refused:
        _, is_decoding, problem = refused.message.partition(f" cannot be handled as a {kind.kind}: ")
        if not is_decoding:
            raise
        shown = orjson.dumps(body, default=str).decode()
        if request.options.get("patch") == "strategic":
            problem = go_unstructured.complaint(kind.schema, body) or problem
            shown = go_unstructured.text(request.body)
        raise errors.invalid("", "", [errors.Cause.invalid("patch", shown, problem)]) from None


def _document(old: Object, operations: Any) -> Mapping[str, Any]:
    """What a JSON patch is applied to; managedFields are in it where the patch speaks of them."""
    for operation in operations if isinstance(operations, list) else ():
        for end in ("path", "from"):
            path = operation.get(end) if isinstance(operation, dict) else None
            if isinstance(path, str) and path.startswith(MANAGED_PATH):
                document: Mapping[str, Any] = orjson.loads(old.to_json())
                return document
    return old.value


def _merge_status(old: Object, body: Any) -> Any:
    """A merge patch of a status: when it says nothing of metadata, the rest of the object need not be read for it."""
    before = old.status_value
    if not isinstance(body, dict):
        return patch.merge_patch(EMPTY, body)  # says what is wrong
    if "metadata" in body:
        return patch.merge_patch(old.value, body)
    if "status" not in body:
        return {"status": before}
    given = body["status"]
    return {"status": None if given is None else patch.merge_patch(before or EMPTY, given)}
