"""Request bodies: from bytes and a Content-Type to a JSON value, with limits and duplicate fields told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors
from steersman.api.go_json import unmarshal
from steersman.serve.depth import MAX_DEPTH, deeper_than
from steersman.serve.go_syntax import syntax_error
from steersman.serve.protobuf import read_protobuf
from steersman.serve.yaml_body import MAX_DUPLICATES, read_lines, read_yaml

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


SUMMARY: Final = 30
"""Bytes of a body that messages show (kube-apiserver's number)."""


class Body(NamedTuple):
    """A decoded body."""

    value: Any
    duplicates: tuple[str, ...] = ()
    """What is told of fields that are there twice; the last one counts."""
    is_yaml: bool = False

    @property
    def strictly(self) -> tuple[str, ...]:
        """The same where it is refused: the reader of YAML says it all at once."""
        if not self.is_yaml or not self.duplicates:
            return self.duplicates
        return ("yaml: unmarshal errors:\n  " + "\n  ".join(self.duplicates),)


def media_type(content_type: str) -> str:
    """The type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def read_object(content_type: str, data: bytes, default: tuple[str, str] | None = ("", "")) -> Body:
    """The object of a create, update or delete. Raises ApiError 400, 415.

    `default` is the (apiVersion, kind) of a body that does not name its own; None where bodies of custom kinds are
    read, which have no protobuf encoding.
    """
    media = media_type(content_type) or JSON
    try:
        if media == JSON:
            return _object(read_json(data), default)
        if media in (YAML, "application/x-yaml", "text/yaml"):
            return _object(_from_yaml(data), default)
        if media == PROTOBUF and default is not None:
            return Body(read_protobuf(data, default))
    except errors.BadRequest as unread:
        if default is None or not default[1]:
            raise
        said = "couldn't get version/kind; json parse error: " if media == JSON else ""
        what = f"the object provided is unrecognized (must be of type {default[1]})"
        raise errors.bad_request(f"{what}: {said}{unread.message} ({_summary(data)})") from None
    raise _unsupported(media, (JSON, YAML) if default is None else (JSON, YAML, PROTOBUF))


def _object(body: Body, default: tuple[str, str] | None) -> Body:
    """A body that is an object; null is an empty one, as in Go."""
    if isinstance(body.value, dict):
        return body
    if body.value is None and default is not None:
        return Body({})
    named = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    raise errors.bad_request(unmarshal(body.value, named))


def _summary(data: bytes) -> str:
    """A body as messages show it: its beginning, as text if it might be JSON, else in hexadecimal digits."""
    if not data:
        return "<empty>"
    more = " ..." if len(data) > SUMMARY else ""
    head = data[:SUMMARY]
    return (head.decode("utf-8", "replace") if head[:1] == b"{" else head.hex()) + more


def read_patch(content_type: str, data: bytes, accepted: Sequence[str] = PATCHES) -> tuple[str, Body]:
    """The form of a patch ("merge", "strategic", "json", "apply") and its body. Raises ApiError 400, 415.

    `accepted`: the media types that what is patched takes.
    """
    media = media_type(content_type)
    if media not in accepted or media not in _READERS:
        refused = _unsupported(media, accepted)
        if media not in _READERS:  # which is refused before anybody looks at the kind
            refused.details = errors.Details()
        raise refused
    form, said, read = _READERS[media]
    try:
        return form, read(data)
    except errors.BadRequest as unread:
        raise errors.bad_request(said + unread.message) from None


def _configuration(data: bytes) -> Body:
    """What is applied: JSON or YAML."""
    if data.lstrip()[:1] == b"{":
        try:
            return read_json(data)
        except errors.ApiError:
            pass  # flow style YAML begins like JSON
    return _from_yaml(data)


def read_json(data: bytes) -> Body:
    """A JSON body. Raises ApiError 400."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise errors.bad_request(syntax_error(data)) from None
    except RecursionError:
        raise errors.bad_request(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and deeper_than(value, MAX_DEPTH):
        raise errors.bad_request(f"the body is nested deeper than {MAX_DEPTH} levels")
    return Body(value, tuple([f'duplicate field "{path}"' for path in _duplicates(data, value)]))


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
    if not found:
        return ()
    try:
        return tuple(read_yaml(data)[1]) or tuple(found[:MAX_DUPLICATES])  # which knows where they are
    except errors.ApiError:
        return tuple(found[:MAX_DUPLICATES])


def _from_yaml(data: bytes) -> Body:
    read = read_lines(data)
    if read.value is None:
        raise errors.bad_request("the body is empty; send an object")
    told = [f"line {line}: key {errors.quote(key)} already set in map" for _, key, line in read.duplicates]
    return Body(read.value, tuple(told), True)


def _unsupported(media: str, accepted: Sequence[str]) -> errors.ApiError:
    error = errors.unsupported_media_type(accepted)
    if media == PROTOBUF:
        error.message += "; send JSON"
    return error


_READERS: Final[dict[str, tuple[str, str, Callable[[bytes], Body]]]] = {
    MERGE_PATCH: ("merge", "error decoding patch: ", read_json),
    STRATEGIC_PATCH: ("strategic", "", read_json),
    JSON_PATCH: ("json", "error decoding patch: ", read_json),
    APPLY_PATCH: ("apply", "error decoding YAML: error converting YAML to JSON: ", _configuration),
}
"""Media type → the form of patch, what is said before what is wrong with a body, and who reads it."""
