"""/openapi/v3: an index of documents, one for each group version, rendered when first asked for.

kubectl needs them: `explain` reads them, and `apply` and `create` look for the `fieldValidation` parameter on PATCH
before they leave validation to the server. The bytes are kept, and clients keep them for ever by their hash; the hash
is that of the document without its texts (`overlay`), so that the index, which names all hashes, needs none of them.
Format: OpenAPI 3.0 with the extensions named in the Kubernetes documentation ("OpenAPI V3").
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from steersman.api import errors
from steersman.api.kinds import Kind, Kinds
from steersman.api.patching.patched import accepted
from steersman.api.schema import SchemaError
from steersman.serve.aside import aside
from steersman.serve.documents.openapi_schema import Components, name_of, ref
from steersman.serve.documents.overlay import laid_over, overlays, overlays_digest
from steersman.serve.message import Request, Response
from steersman.serve.served import PROXY, Part, Served, parts_of

INFO: Final = {"title": "Kubernetes", "version": "v1.36.0"}
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
ACTIONS: Final = {
    "get": "get",
    "list": "list",
    "watch": "list",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "deletecollection",
}
"""x-kubernetes-action of each verb."""
CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_POD, _POD_LIST = "io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.PodList"
"""Whose texts of apiVersion, kind and metadata are those of all."""
IMMUTABLE: Final = (("cache-control", "public, immutable, max-age=31536000"),)


def _query(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}


_LIST: Final = [
    *[_query(n, "string") for n in ("continue", "fieldSelector", "labelSelector", "resourceVersion")],
    *[_query(n, "string") for n in ("resourceVersionMatch",)],
    *[_query(n, "integer") for n in ("limit", "timeoutSeconds")],
    *[_query(n, "boolean") for n in ("allowWatchBookmarks", "sendInitialEvents", "watch")],
]
_WRITE: Final = [_query(n, "string") for n in ("dryRun", "fieldManager", "fieldValidation")]
_METHODS: Final = {"create": "post", "update": "put", "get": "get", "patch": "patch", "delete": "delete"}
_OPENED: Final = [
    _query("container", "string"),
    *[_query(n, "boolean") for n in ("stderr", "stdin", "stdout", "tty")],
]
_ANSWERED: Final[dict[str, list[dict[str, Any]]]] = {
    "attach": _OPENED,
    "exec": [*_OPENED, _query("command", "string")],
    "portforward": [_query("ports", "integer")],
    "proxy": [_query("path", "string")],
    "log": [
        *[_query(n, "string") for n in ("container", "sinceTime")],
        *[_query(n, "boolean") for n in ("follow", "previous", "timestamps", "insecureSkipTLSVerifyBackend")],
        *[_query(n, "integer") for n in ("limitBytes", "sinceSeconds", "tailLines")],
    ],
}
"""Subresources that a pod's node answers, and their parameters."""
_PARAMETERS: Final[dict[str, list[dict[str, Any]]]] = {
    "get": [_query("resourceVersion", "string")],
    "list": _LIST,
    "create": _WRITE,
    "update": _WRITE,
    "patch": [*_WRITE, _query("force", "boolean")],
    "delete": [
        *[_query("dryRun", "string"), _query("gracePeriodSeconds", "integer")],
        _query("propagationPolicy", "string"),
    ],
    "deletecollection": _LIST,
}


class OpenApi:
    """The documents of one set of kinds."""

    def __init__(self, served: Served, elsewhere: Mapping[tuple[str, str], Mapping[str, Any]] | None = None) -> None:
        """`elsewhere`: what the index says of documents that others serve."""
        self._served = served
        self._elsewhere = {f"apis/{g}/{v}": entry for (g, v), entry in (elsewhere or {}).items() if entry}
        self._digests: dict[str, str] = {}
        self._bodies: dict[str, bytes] = {}
        self._index: bytes | None = None

    async def answer(self, path: str, request: Request) -> Response:
        """`/openapi/v3` and what is below it. What is not made yet is made beside the loop: a definition may have many
        thousand fields. Raises ApiError 404."""
        if not path:
            index = await aside(self.index) if self._index is None else self._index
            return Response(200, (("content-type", "application/json"),), index)
        digest = self._digests.get(path) or await aside(self._digest, path)
        if not digest:
            raise errors.resource_not_found()
        tag = f'"{digest}"'
        asked = request.query.get("hash")
        if asked and asked != digest:  # a client with an old index: it keeps the answer under the new name
            return Response(301, (("location", f"/openapi/v3/{path}?hash={digest}"),))
        caching = IMMUTABLE if asked else (("cache-control", "no-cache, private"),)
        if tag in request.headers.get("if-none-match"):
            return Response(304, (("etag", tag), *caching))
        headers = (("content-type", "application/json"), ("etag", tag), ("vary", "Accept"), *caching)
        body = self._bodies.get(path)
        return Response(200, headers, await aside(self._body, path) if body is None else body)

    def index(self) -> bytes:
        """Where each document is, with its hash."""
        if self._index is None:
            paths = {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._digest(path)}"} for path in self._paths()
            }
            self._index = orjson.dumps({"paths": {**paths, **self._elsewhere}})
        return self._index

    def all(self) -> dict[str, dict[str, Any]]:
        """Every document by its path, texts and all."""
        texts = overlays()
        return {path: document(path, self._kinds(path), texts) for path in self._paths()}

    def _paths(self) -> list[str]:
        groups = self._served.groups
        return [f"apis/{g}/{v}" if g else f"api/{v}" for g, versions in groups.items() for v in versions]

    def _kinds(self, path: str) -> tuple[Kind, ...]:
        """The kinds of `api/v1` or `apis/GROUP/VERSION`; none when there is no such document."""
        root, _, rest = path.partition("/")
        group, _, version = rest.partition("/") if root == "apis" else ("", "", rest)
        if root not in ("api", "apis") or (root == "apis") != bool(group):
            return ()
        return tuple(self._served.kinds_of(group, version))

    def _digest(self, path: str) -> str:
        """The hash of a document; "" when there is none."""
        kinds = self._kinds(path)
        if not kinds:
            return ""
        found = self._digests.get(path)
        if found is None:
            builtin = all(kind.origin is None for kind in kinds)
            found = self._digests[path] = _builtin_digest(path, kinds) if builtin else _hash(path, kinds)
        return found

    def _body(self, path: str) -> bytes:
        found = self._bodies.get(path)
        if found is None:
            found = self._bodies[path] = orjson.dumps(document(path, self._kinds(path), overlays()))
        return found


@lru_cache(maxsize=128)
def _builtin_digest(path: str, kinds: tuple[Kind, ...]) -> str:
    """Known once, however often a definition changes what else is served."""
    return _hash(path, kinds)


def _hash(path: str, kinds: tuple[Kind, ...]) -> str:
    told = hashlib.sha512(orjson.dumps(document(path, kinds, {})))
    told.update(overlays_digest())
    return told.hexdigest().upper()


def document(path: str, kinds: Sequence[Kind], texts: Mapping[str, Any]) -> dict[str, Any]:
    """One document; `texts` are overlays by definition, none for a document without descriptions."""
    components = Components()
    paths: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for kind in kinds:
        name, gvk = name_of(kind), _gvk(kind.group, kind.version, kind.kind)
        if kind.origin is None:
            components.add(name, kind.schema, [gvk])
        else:
            components.add_custom(name, kind.origin.openapi, [gvk])
            own[name] = {"properties": _typed(texts, _POD)}
        if "get" not in kind.verbs:  # a review: it is asked, and there is no list of it
            below = "namespaces/{namespace}/" if kind.namespaced else ""
            collection = _collection(kind, name, with_create=True)
            del collection["get"]
            paths[f"/{path}/{below}{kind.plural}"] = collection
            continue
        own[f"{name}List"] = _add_list(components, kind, name, texts)
        below = "namespaces/{namespace}/" if kind.namespaced else ""
        root = f"/{path}/{below}{kind.plural}"
        paths[root] = _collection(kind, name, with_create=True)
        if kind.namespaced:
            paths[f"/{path}/{kind.plural}"] = _collection(kind, name, with_create=False)
        paths[root + "/{name}"] = _item(kind, name)
        for part in parts_of(kind):
            paths[f"{root}/{{name}}/{part.name}"] = answered = _part(kind, part, components)
            if part.name == PROXY:
                below_it = [*answered["parameters"], {**answered["parameters"][0], "name": "path"}]
                paths[f"{root}/{{name}}/{part.name}/{{path}}"] = {**answered, "parameters": below_it}
    for definition in ("DeleteOptions", "ListMeta", "Patch", "Status"):
        schema = Kinds.definition(META + definition)
        components.add(META + definition, schema, _meta_kinds(definition, kinds[0]))
    schemas = {
        name: laid_over(schema, own.get(name) or texts.get(name, {}))
        for name, schema in sorted(components.schemas.items())
    }
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas},
    }


def _gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _meta_kinds(definition: str, kind: Kind) -> list[dict[str, str]]:
    if definition == "DeleteOptions":
        return [_gvk(kind.group, kind.version, definition)]
    return [_gvk("", "v1", definition)] if definition == "Status" else []


def _add_list(components: Components, kind: Kind, name: str, texts: Mapping[str, Any]) -> dict[str, Any]:
    """The list of a kind. Those of custom kinds have no definition, so the overlay of theirs is the answer."""
    gvk = _gvk(kind.group, kind.version, kind.list_kind)
    if kind.origin is None:
        with contextlib.suppress(SchemaError):
            components.add(f"{name}List", Kinds.definition(f"{name}List"), [gvk])
            return dict(texts.get(f"{name}List", {}))
    components.schemas[f"{name}List"] = _list_schema(kind, name)
    typed, items = _typed(texts, _POD_LIST), f"List of {kind.plural}. More info: {CONVENTIONS}"
    return (
        {
            "description": f"{kind.list_kind} is a list of {kind.kind}",
            "properties": {**typed, "items": {"description": items}},
        }
        if typed
        else {}
    )


def _typed(texts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The overlays of apiVersion, kind and metadata, as every object and every list has them."""
    fields = texts.get(name, {}).get("properties", {})
    return {
        field: {"description": fields[field]["description"]} for field in ("apiVersion", "kind", "metadata") if fields
    }


def _list_schema(kind: Kind, name: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": ref(META + "ListMeta"),
            "items": {"type": "array", "items": ref(name)},
        },
        "x-kubernetes-group-version-kind": [_gvk(kind.group, kind.version, kind.list_kind)],
    }


def _collection(kind: Kind, name: str, with_create: bool) -> dict[str, Any]:
    out = {"get": _operation(kind, "list", f"{name}List")}
    if with_create:
        if "create" in kind.verbs:
            out["post"] = _operation(kind, "create", name)
        if "deletecollection" in kind.verbs:
            out["delete"] = _operation(kind, "deletecollection", META + "Status")
    return {**out, "parameters": _path_parameters(kind, ["namespace"] if with_create else [])}


def _item(kind: Kind, name: str) -> dict[str, Any]:
    verbs = [verb for verb in ("get", "update", "patch", "delete") if verb in kind.verbs]
    operations = {
        method: _operation(kind, verb, META + "Status" if verb == "delete" else name)
        for verb in verbs
        if (method := {"update": "put"}.get(verb, verb))
    }
    return {**operations, "parameters": _path_parameters(kind, ["name", "namespace"])}


def _part(kind: Kind, part: Part, components: Components) -> dict[str, Any]:
    if part.name in _ANSWERED:
        answered = {_METHODS[verb]: _answered(kind, verb, part) for verb in part.verbs}
        return {**answered, "parameters": _path_parameters(kind, ["name", "namespace"])}
    name = name_of(kind) if part.kind == kind.kind else _definition(part)
    if part.kind != kind.kind:
        components.add(name, Kinds.definition(name), [_gvk(part.group, part.version, part.kind)])
    operations = {_METHODS.get(verb, verb): _operation(kind, verb, name, part) for verb in part.verbs}
    return {**operations, "parameters": _path_parameters(kind, ["name", "namespace"])}


def _answered(kind: Kind, verb: str, part: Part) -> dict[str, Any]:
    """One way to ask a pod's node: the answer is text, or another protocol."""
    media = "text/plain" if part.name == "log" else "*/*"
    action = "get" if part.name == "log" else "connect"
    return {
        "tags": [f"core_{kind.version}"],
        "operationId": f"{action}{verb.title()}{kind.version.title()}{kind.kind}{part.name.title()}",
        "parameters": _ANSWERED[part.name],
        "responses": {"200": {"description": "OK", "content": {media: {"schema": {"type": "string"}}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(part.group, part.version, part.kind),
    }


def _definition(part: Part) -> str:
    return f"io.k8s.api.{part.group.partition('.')[0] or 'core'}.{part.version}.{part.kind}"


def _path_parameters(kind: Kind, names: list[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
        if name == "name" or kind.namespaced
    ]


def _operation(kind: Kind, verb: str, answers: str, part: Part | None = None) -> dict[str, Any]:
    """One operation: enough for kubectl's checks and for a generated client."""
    gvk = _gvk(part.group, part.version, part.kind) if part else _gvk(kind.group, kind.version, kind.kind)
    codes = {"create": ("200", "201"), "patch": ("200", "201"), "update": ("200", "201")}.get(verb, ("200",))
    content = {"application/json": {"schema": ref(answers)}}
    out: dict[str, Any] = {
        "tags": [f"{kind.group.partition('.')[0] or 'core'}_{kind.version}"],
        "operationId": f"{verb}{kind.version.title()}{kind.kind}{part.name.title() if part else ''}",
        "parameters": _PARAMETERS[verb],
        "responses": {code: {"description": "OK", "content": content} for code in codes},
        "x-kubernetes-action": ACTIONS[verb],
        "x-kubernetes-group-version-kind": gvk,
    }
    if verb == "patch":
        types = {media: {"schema": ref(META + "Patch")} for media in sorted(accepted(kind))}
        out["requestBody"] = {"content": types, "required": True}
    elif verb in ("create", "update"):
        out["requestBody"] = {"content": {"*/*": {"schema": ref(answers)}}, "required": True}
    elif verb in ("delete", "deletecollection"):
        out["requestBody"] = {"content": {"*/*": {"schema": ref(META + "DeleteOptions")}}}
    return out
