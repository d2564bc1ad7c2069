"""/openapi/v2: an OpenAPI 2.0 document without paths.

kubectl falls back to it for a kind that /openapi/v3 does not have, and where it is missing says that openapi cannot be
downloaded instead of what is wrong: that there is no such kind. It asks for protobuf and nothing else.
Format: OpenAPI 2.0; its protobuf form is gnostic's, openapiv2/OpenAPIv2.proto (Document 1 swagger, 2 info, 8 paths;
Info 1 title, 2 version).
"""

from __future__ import annotations

import hashlib
from typing import Final

import orjson

from steersman.api import errors
from steersman.serve.message import Request, Response

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OLD_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The name kubectl asks by; it is no media type (there must be no @ in one), so the answer has the other."""
JSON: Final = "application/json"
TITLE, VERSION = "Kubernetes", "v1.36.0"


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field of protobuf; its length in one byte."""
    assert number < 16 and len(data) < 128
    return bytes((number << 3 | 2, len(data))) + data


BODIES: Final = {
    PROTOBUF: _field(1, b"2.0") + _field(2, _field(1, TITLE.encode()) + _field(2, VERSION.encode())) + _field(8, b""),
    JSON: orjson.dumps({"swagger": "2.0", "info": {"title": TITLE, "version": VERSION}, "paths": {}}),
}


def answer(request: Request) -> Response:
    """The document in the form asked for. Raises ApiError 406."""
    accepted = request.headers.get("accept") or JSON
    for clause in accepted.lower().split(","):
        asked = clause.partition(";")[0].strip()
        media = {OLD_PROTOBUF: PROTOBUF, "*/*": JSON, "application/*": JSON}.get(asked, asked)
        if media in BODIES:
            tag = f'"{hashlib.sha256(BODIES[media]).hexdigest().upper()}"'
            return Response(200, (("content-type", media), ("etag", tag), ("vary", "Accept")), BODIES[media])
    raise errors.not_acceptable([JSON, PROTOBUF])
