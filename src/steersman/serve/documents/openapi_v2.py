"""/openapi/v2: one document of everything, as OpenAPI 2.0 and made from the documents of /openapi/v3.

kubectl before 1.27 and older helm know nothing else, newer ones fall back to it for a kind that /openapi/v3 does not
have, and client generators read it. Four megabytes are made in a thread when somebody asks, packed, and kept until
other kinds are served. Sources of what differs from version 3: apiextensions-apiserver
pkg/controller/openapi/v2/conversion.go and kube-openapi pkg/openapiconv, release 1.36.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from steersman.api import errors
from steersman.serve.documents.gnostic import METHODS, document_bytes
from steersman.serve.documents.joined import joined
from steersman.serve.documents.openapi import INFO, OpenApi
from steersman.serve.documents.openapi_schema import PREFIX
from steersman.serve.message import Request, Response

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OLD_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The name kubectl asks by; it is no media type (there must be no @ in one), so the answer has the other."""
JSON: Final = "application/json"
Elsewhere = Callable[[], Awaitable[Mapping[tuple[str, str], Any]]]
"""Gives documents by group version."""
log = logging.getLogger("steersman.serve.documents")
_FORMS: Final = {
    JSON: JSON,
    "*/*": JSON,
    "application/*": JSON,
    PROTOBUF: PROTOBUF,
    OLD_PROTOBUF: PROTOBUF,
}
_PRODUCED: Final = [JSON]
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_DROPPED: Final = ("default", "nullable", "allOf", "anyOf", "oneOf", "not")
"""What version 2 has not, or Kubernetes leaves out of it."""
_REFERENCE: Final = "#/definitions/"


class _Packed(NamedTuple):
    body: bytes
    """zlib: a document is asked for rarely, and shrinks to a tenth."""
    tag: str


class OpenApiV2:
    """The document of one set of kinds, in its two forms."""

    def __init__(self, documents: OpenApi, elsewhere: Elsewhere | None = None) -> None:
        """`elsewhere` gives the documents of those who serve group versions in this server's place."""
        self._documents = documents
        self._elsewhere = elsewhere
        self._making = asyncio.Lock()
        self._packed: dict[str, _Packed] = {}

    async def answer(self, request: Request) -> Response:
        """The document in the form asked for. Raises ApiError 406."""
        form = _form(request.headers.get("accept"))
        async with self._making:  # several clients that ask at once share the work
            if not self._packed:
                others = {} if self._elsewhere is None else await self._elsewhere()
                self._packed = await asyncio.to_thread(self._made, others)
        body, tag = self._packed[form]
        headers = (("etag", tag), ("vary", "Accept"), ("cache-control", "no-cache, private"))
        if tag in request.headers.get("if-none-match"):
            return Response(304, headers)
        return Response(200, (("content-type", form), *headers), zlib.decompress(body))

    def _made(self, others: Mapping[tuple[str, str], Any]) -> dict[str, _Packed]:
        made, packed = document(self._documents.all()), b""
        for (group, version), other in sorted(others.items()):
            try:
                with_it = joined(made, other, group, version)
                written = document_bytes(with_it)
            except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
                log.warning("the OpenAPI document of %s/%s cannot be read: %s", group, version, error)
            else:
                made, packed = with_it, written
        text = orjson.dumps(made)
        tag = f'"{hashlib.sha512(text).hexdigest().upper()}"'
        bodies = {JSON: text, PROTOBUF: packed or document_bytes(made)}
        return {form: _Packed(zlib.compress(body, 1), tag) for form, body in bodies.items()}


def _form(accept: str) -> str:
    for clause in (accept.strip() or JSON).lower().split(","):
        form = _FORMS.get(clause.partition(";")[0].strip())
        if form is not None:
            return form
    raise errors.not_acceptable([JSON, PROTOBUF])


def document(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The OpenAPI 2.0 document of these OpenAPI 3.0 documents."""
    definitions: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    kinds: dict[str, list[Any]] = {}
    for each in documents.values():
        for name, schema in each["components"]["schemas"].items():
            listed = kinds.setdefault(name, [])
            listed += [gvk for gvk in schema.get("x-kubernetes-group-version-kind", ()) if gvk not in listed]
            if name not in definitions:
                definitions[name] = converted(schema)
        paths |= {path: _path(item) for path, item in each["paths"].items()}
    for name, listed in kinds.items():
        if listed:
            definitions[name]["x-kubernetes-group-version-kind"] = listed
    token = {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": {"BearerToken": token},
        "security": [{"BearerToken": []}],
    }


def converted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as version 2 has it. kubectl takes a value without a type for anything, and nothing else for that: so
    what may be null, or has unknown fields, loses its type and what is below it."""
    one: Sequence[Mapping[str, Any]] = schema.get("allOf") or ()
    if len(one) == 1 and "$ref" in one[0]:
        schema = {**schema, **one[0]}
    out = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "$ref" in out:
        out["$ref"] = _REFERENCE + out["$ref"].removeprefix(PREFIX)
    if out.pop("x-kubernetes-int-or-string", None) and "type" not in out:
        out |= {"x-kubernetes-int-or-string": True}
    elif "oneOf" in schema and "type" not in out:  # Quantity, IntOrString: texts here
        out["type"] = "string"
    loose = schema.get("nullable") or out.get(_UNKNOWN)
    if loose:
        out = {key: value for key, value in out.items() if key not in ("items", "properties")}
    if schema.get("nullable") or (loose and out.get("type") in ("array", "object")):
        out.pop("type", None)
    if "properties" in out:
        null = {name for name, child in out["properties"].items() if child.get("nullable")}
        out["properties"] = {name: converted(child) for name, child in out["properties"].items()}
        if null and "required" in out:
            out["required"] = [name for name in out["required"] if name not in null]
            if not out["required"]:
                del out["required"]
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), Mapping):
            out[key] = converted(out[key])
    return out


def _path(item: Mapping[str, Any]) -> dict[str, Any]:
    out = {method: _operation(item[method]) for method in METHODS if method in item}
    return {**out, "parameters": _parameters(item.get("parameters", ()))}


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in operation.items() if key not in ("requestBody", "responses", "parameters")}
    parameters = _parameters(operation.get("parameters", ()))
    body = operation.get("requestBody")
    consumes = ["*/*"]
    if body is not None:
        consumes = list(body["content"])
        schema = converted(next(iter(body["content"].values()))["schema"])
        taken: dict[str, Any] = {"name": "body", "in": "body", "schema": schema}
        parameters.insert(0, {**taken, "required": True} if body.get("required") else taken)
    produces: list[str] = []
    responses = {}
    for code, response in operation["responses"].items():
        content = response.get("content", {})
        produces = produces or list(content)
        shown: dict[str, Any] = {"description": response["description"]}
        if content:
            shown["schema"] = converted(next(iter(content.values()))["schema"])
        responses[code] = shown
    return {
        **out,
        "consumes": consumes,
        "produces": produces or _PRODUCED,
        "schemes": ["https"],
        "parameters": parameters,
        "responses": {**responses, "401": {"description": "Unauthorized"}},
    }


def _parameters(parameters: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those in a path or query: their schema's words stand beside their own."""
    return [{**{key: value for key, value in each.items() if key != "schema"}, **each["schema"]} for each in parameters]
