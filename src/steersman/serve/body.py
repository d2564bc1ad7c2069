"""Request bodies: from bytes and a Content-Type to a JSON value, with limits and duplicate fields told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors
from steersman.serve.depth import MAX_DEPTH, deeper_than
from steersman.serve.protobuf import read_protobuf
from steersman.serve.yaml_body import MAX_DUPLICATES, read_yaml

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Body(NamedTuple):
    """A decoded body."""

    value: Any
    duplicates: tuple[str, ...] = ()
    """Paths of fields that are there twice; the last one counts."""


def media_type(content_type: str) -> str:
    """The type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def read_object(content_type: str, data: bytes, default: tuple[str, str] | None = ("", "")) -> Body:
    """The object of a create, update or delete. Raises ApiError 400, 415.

    `default` is the (apiVersion, kind) of a protobuf body that does not name its own; None where bodies of custom
    kinds are read, which have no such encoding.
    """
    media = media_type(content_type) or JSON
    if media == JSON:
        return read_json(data)
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return _from_yaml(data)
    if media == PROTOBUF and default is not None:
        return Body(read_protobuf(data, default))
    raise _unsupported(media, (JSON, YAML) if default is None else (JSON, YAML, PROTOBUF))


def read_patch(content_type: str, data: bytes, accepted: Sequence[str] = PATCHES) -> tuple[str, Body]:
    """The form of a patch ("merge", "strategic", "json", "apply") and its body. Raises ApiError 400, 415.

    `accepted`: the media types that what is patched takes.
    """
    media = media_type(content_type)
    if media not in accepted:
        raise _unsupported(media, accepted)
    if media == MERGE_PATCH:
        return "merge", read_json(data)
    if media == STRATEGIC_PATCH:
        return "strategic", read_json(data)
    if media == JSON_PATCH:
        return "json", read_json(data)
    if media == APPLY_PATCH:
        start = data.lstrip()[:1]
        if start == b"{":
            try:
                return "apply", read_json(data)
            except errors.ApiError:
                pass  # flow style YAML begins like JSON
        return "apply", _from_yaml(data)
    raise _unsupported(media, accepted)


def read_json(data: bytes) -> Body:
    """A JSON body. Raises ApiError 400."""
    if not data.strip():
        raise errors.bad_request("the body is empty; send an object")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        where = f" (line {error.lineno}, column {error.colno})"
        raise errors.bad_request(f"the body is not JSON: {error.msg}{where}") from None
    except RecursionError:
        raise errors.bad_request(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and deeper_than(value, MAX_DEPTH):
        raise errors.bad_request(f"the body is nested deeper than {MAX_DEPTH} levels")
    return Body(value, _duplicates(data, value))


def _duplicates(data: bytes, value: Any) -> tuple[str, ...]:
    """Fields that are there twice.

    A compact body without any is as long as its value written again; only others are read a second, slower time.
    """
    if not isinstance(value, dict) or len(orjson.dumps(value)) == len(data.strip()):
        return ()
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs) and len(found) < MAX_DUPLICATES:
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    found.append(name)
                seen.add(name)
        return out

    try:
        json.loads(data, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return ()
    return tuple(found[:MAX_DUPLICATES])


def _from_yaml(data: bytes) -> Body:
    value, duplicates = read_yaml(data)
    if value is None:
        raise errors.bad_request("the body is empty; send an object")
    return Body(value, tuple(duplicates))


def _unsupported(media: str, accepted: Sequence[str]) -> errors.ApiError:
    error = errors.unsupported_media_type(accepted)
    if media == PROTOBUF:
        error.message += "; send JSON"
    return error
