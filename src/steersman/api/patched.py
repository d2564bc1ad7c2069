"""What a patch of any form but apply makes of the version there is.

Source of the facts: apiserver `pkg/endpoints/handlers/patch.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from steersman.api import errors, patch, preconditions
from steersman.api.kinds import STATUS_PARTS, Kind
from steersman.api.strategic import strategic_merge
from steersman.kernel.effect import Request
from steersman.kernel.object import Object
from steersman.kernel.value import EMPTY

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
        body = patch.json_patch(old.value, request.body)
    elif form == "strategic":
        body = strategic_merge(old.value, request.body, kind.schema)
    elif request.subresource in STATUS_PARTS:
        body = _merge_status(old, request.body)
    else:
        body = patch.merge_patch(old.value, request.body)
    meta = body.get("metadata", EMPTY) if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(meta, dict):
        raise errors.bad_request("the patch does not leave an object with metadata; patch fields of it instead")
    if form == "merge":
        return body
    before = old.value
    for field in ("apiVersion", "kind"):
        if body.get(field) != before[field]:
            raise errors.bad_request(f"the patch changes {field}; create another object instead")
    if not meta.get("name"):
        raise errors.bad_request("the patch takes the object's name away; patch other fields")
    preconditions.check_name(request, kind, meta)
    if form == "json":
        preconditions.check_rv(old, kind, meta.get("resourceVersion"))
    return body


def _merge_status(old: Object, body: Any) -> Any:
    """A merge patch of status only: the rest of the object need not be read for it."""
    before = old.status_value
    if not isinstance(body, dict):
        return patch.merge_patch(EMPTY, body)  # says what is wrong
    if "status" not in body:
        return {"status": before}
    given = body["status"]
    return {"status": None if given is None else patch.merge_patch(before or EMPTY, given)}
