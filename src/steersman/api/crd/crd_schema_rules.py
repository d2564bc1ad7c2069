"""Rules of the schemas in a CustomResourceDefinition: structural, complete, with sound defaults, in OpenAPI's words.

Three passes, as kube-apiserver makes them: the schema is structural (`_structural`), its defaults fit it
(`_defaults`), and each node uses OpenAPI as Kubernetes allows (`_openapi`). CEL rules are judged
for their form, and last for what they say. Source of the facts: apiextensions-apiserver 0.36,
pkg/apis/apiextensions/validation, pkg/apiserver/schema/validation.go and complete.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from steersman.api.crd.custom_rules import expressions
from steersman.api.crd.structural import MAX_DEPTH, from_trusted, node_from_trusted
from steersman.api.errors import Cause
from steersman.api.explain import Finding, explain, explain_custom
from steersman.api.pattern import PatternError, compile_pattern
from steersman.api.schema import SchemaError, definitions
from steersman.kernel.value import EMPTY

Json = Any
Causes = list[Cause]
PROPS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META: Final = ("metadata", "kind", "apiVersion")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_ROOT: Final = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum"),
    *("MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items"),
    *("Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)
"""What may stand at the root when there is a status subresource, by the names Kubernetes gives them."""
_ROOT_NAMES: Final = {"x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
                      "x-kubernetes-validations": "XValidations"}  # fmt: skip
_FORBIDDEN_INSIDE: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
"""Keywords that junctors may not use: they say what a value is, not which values are good."""


def schema(out: Causes, path: str, root: Mapping[str, Json], has_status: bool) -> None:
    """One version's openAPIV3Schema."""
    before = len(out)
    if too_deep(root):
        out.append(Cause.invalid(path, "", f"must not be nested deeper than {MAX_DEPTH} levels"))
        return
    _shapes(out, path, root)
    if len(out) > before:
        return
    if has_status:
        _root(out, path, root)
    if root.get("nullable"):
        out.append(Cause.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    if not any(_is_unsupported(node) for node in nodes(root)):
        found: Causes = []
        _structural(found, path, root, "root")
        _complete(found, path, root)
        out += sorted(found, key=str)
        if not found:
            _defaults(out, path, root, root)
    _openapi(out, path, root, _Place())
    if len(out) == before:
        try:
            compiled = from_trusted(root)
        except (SchemaError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            out.append(Cause.invalid(path, "", f"error building validator: {str(problem).removeprefix(': ')}"))
            return
        out += expressions(compiled, path)


def too_deep(root: Json) -> bool:
    """Whether a schema is nested beyond what is compiled."""
    level: list[Json] = [root]
    for _ in range(2 * MAX_DEPTH):  # a property is two levels of JSON below its object
        level = [item for part in level for item in (part.values() if isinstance(part, dict) else part)
                 if isinstance(item, dict | list)]  # fmt: skip
        if not level:
            return False
    return True


def _shapes(out: Causes, path: str, node: Mapping[str, Json]) -> None:
    """The shapes of schemas inside `items` and `additionalProperties`, which may be other things: so the definition of
    a schema says nothing of what is in them."""
    for name, child in _properties(node).items():
        _shape(out, f"{path}.properties[{name}]", child)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(node.get(keyword) or ()):
            _shape(out, f"{path}.{keyword}[{index}]", child)
    if node.get("not") is not None:
        _shape(out, f"{path}.not", node["not"])
    for keyword in ("items", "additionalProperties"):
        value = node.get(keyword)
        listed = isinstance(value, list) and keyword == "items"
        if value is None or listed or (isinstance(value, bool) and keyword == "additionalProperties"):
            continue
        finding = Finding()
        if isinstance(value, dict):
            explain(definitions().get(PROPS), value, f"{path}.{keyword}", finding, False)
            out += finding.causes
        if not finding.causes:
            _shape(out, f"{path}.{keyword}", value)


def _shape(out: Causes, path: str, node: Json) -> None:
    if isinstance(node, dict):
        _shapes(out, path, node)
    else:
        out.append(Cause.type_invalid(path, node, "must be an object"))


def _child(node: Mapping[str, Json], keyword: str) -> Mapping[str, Json] | None:
    found = node.get(keyword)
    return found if isinstance(found, dict) else None


def _properties(node: Mapping[str, Json]) -> Mapping[str, Mapping[str, Json]]:
    found: Mapping[str, Mapping[str, Json]] = node.get("properties") or EMPTY
    return found


def nodes(node: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """A schema and all inside it."""
    yield node
    for keyword in ("items", "additionalProperties", "not"):
        child = _child(node, keyword)
        if child is not None:
            yield from nodes(child)
    for child in _properties(node).values():
        yield from nodes(child)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for child in node.get(keyword) or ():
            yield from nodes(child)


def _is_unsupported(node: Mapping[str, Json]) -> bool:
    listed = isinstance(node.get("items"), list)
    return listed or node.get("x-kubernetes-preserve-unknown-fields") is False or any(node.get(k) for k in _UNSUPPORTED)


def _root(out: Causes, path: str, root: Mapping[str, Json]) -> None:
    if root.get("type") not in (None, "", "object"):
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        out.append(Cause.invalid(f"{path}.type", root["type"], detail))
        return
    for keyword, value in root.items():
        name = _ROOT_NAMES.get(keyword) or keyword[:1].upper() + keyword[1:]
        if name not in _ROOT and value not in (None, False, "", [], {}):
            allowed = " ".join(_ROOT)
            detail = (
                f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            out.append(Cause.invalid(path, root, detail))
            return


# -- structural ------------------------------------------------------------------------------------------------


def _structural(out: Causes, path: str, node: Mapping[str, Json], level: str) -> None:
    kind, items, values = node.get("type") or "", _child(node, "items"), node.get("additionalProperties")
    embedded, unknown = node.get("x-kubernetes-embedded-resource"), node.get("x-kubernetes-preserve-unknown-fields")
    loose = node.get("x-kubernetes-int-or-string")
    if kind == "array" and items is None:
        out.append(Cause.required(f"{path}.items", "must be specified"))
    if items is not None:
        _structural(out, f"{path}.items", items, "items")
    for name, child in _properties(node).items():
        _structural(out, f"{path}.properties[{name}]", child, "field")
    if values is not None:
        if level == "root":
            out.append(Cause.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(values, dict):
            _structural(out, f"{path}.additionalProperties", values, "field")
    for keyword, given in (("x-kubernetes-preserve-unknown-fields", unknown),
                           ("x-kubernetes-embedded-resource", embedded)):  # fmt: skip
        if loose and given:
            detail = "must be false if x-kubernetes-int-or-string is true"
            out.append(Cause.invalid(f"{path}.{keyword}", True, detail))
    _junctors(out, path, node)
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        out.append(Cause.invalid(f"{path}.type", kind, detail) if kind else Cause.required(f"{path}.type", detail))
    elif not kind and not loose and not unknown:
        where = {"root": "at the root", "items": "for specified array items"}.get(level, "for specified object fields")
        out.append(Cause.required(f"{path}.type", f"must not be empty {where}"))
    if embedded and values is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        out.append(Cause.forbidden(f"{path}.additionalProperties", detail))
    if level == "root" and kind not in ("", "object"):
        out.append(Cause.invalid(f"{path}.type", kind, "must be object at the root"))
    _metadata(out, path, node, level == "root", bool(embedded))
    if embedded and not unknown and not _properties(node):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        out.append(Cause.required(f"{path}.properties", detail))


def _metadata(out: Causes, path: str, node: Mapping[str, Json], root: bool, embedded: bool) -> None:
    """What a schema may say of apiVersion, kind and metadata."""
    properties = _properties(node)
    if not root and not embedded:
        return
    for name in ("kind", "apiVersion"):
        if name in properties and properties[name].get("type") != "string":
            at = f"{path}.properties[{name}].type"
            out.append(Cause.invalid(at, properties[name].get("type", ""), "must be string"))
    if "metadata" not in properties:
        return
    metadata, at = properties["metadata"], f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        out.append(Cause.invalid(f"{at}.type", metadata.get("type", ""), "must be object"))
    others = [
        k for k, v in metadata.items() if k not in ("type", "properties", "default") and v not in (None, "", [], {})
    ]
    if root and (others or not set(_properties(metadata)) <= {"name", "generateName"}):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        out.append(Cause.forbidden(at, detail))


def _junctors(out: Causes, path: str, node: Mapping[str, Json]) -> None:
    """The value validations of a node: what stands in allOf, anyOf, oneOf and not, and its pattern."""
    all_of, any_of = node.get("allOf") or (), node.get("anyOf") or ()
    if any_of != _INT_OR_STRING:
        for index, part in enumerate(any_of):
            _nested(out, f"{path}.anyOf[{index}]", part)
    for index, part in enumerate(all_of):
        first = index == 0 and (part.get("anyOf") or ()) == _INT_OR_STRING
        _nested(out, f"{path}.allOf[{index}]", {k: v for k, v in part.items() if k != "anyOf"} if first else part)
    for index, part in enumerate(node.get("oneOf") or ()):
        _nested(out, f"{path}.oneOf[{index}]", part)
    negated = _child(node, "not")
    if negated is not None:
        _nested(out, f"{path}.not", negated)
    if node.get("pattern"):
        try:
            compile_pattern(node["pattern"])
        except PatternError as problem:
            detail = f"must be a valid regular expression, but isn't: {problem}"
            out.append(Cause.invalid(f"{path}.pattern", node["pattern"], detail))


def _nested(out: Causes, path: str, node: Mapping[str, Json]) -> None:
    _junctors(out, path, node)
    items = _child(node, "items")
    if items is not None:
        _nested(out, f"{path}.items", items)
    for name, child in _properties(node).items():
        _nested(out, f"{path}.properties[{name}]", child)
    for keyword, detail in _FORBIDDEN_INSIDE:
        if node.get(keyword) not in (None, False, "", []):
            out.append(Cause.forbidden(f"{path}.{keyword}", detail))
    if "metadata" in _properties(node):
        out.append(Cause.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))


def _complete(out: Causes, path: str, root: Mapping[str, Json]) -> None:
    """What the root's junctors speak of must be declared outside of them."""

    def inside(node: Mapping[str, Json], outer: Mapping[str, Json] | None, at: str, where: str) -> None:
        if outer is None:
            out.append(Cause.required(at, f"because it is defined in {where}"))
            return
        clauses(node, outer, at, where)
        if (items := _child(node, "items")) is not None:
            inside(items, _child(outer, "items"), f"{at}.items", f"{where}.items")
        for name, child in _properties(node).items():
            below = f"properties[{name}]"
            inside(child, _properties(outer).get(name), f"{at}.{below}", f"{where}.{below}")

    def clauses(node: Mapping[str, Json], outer: Mapping[str, Json], at: str, where: str) -> None:
        if (negated := _child(node, "not")) is not None:
            inside(negated, outer, at, f"{where}.not")
        for keyword in ("allOf", "anyOf", "oneOf"):
            for index, part in enumerate(node.get(keyword) or ()):
                inside(part, outer, at, f"{where}.{keyword}[{index}]")

    clauses(root, root, path, path)


# -- defaults --------------------------------------------------------------------------------------------------


def _defaults(out: Causes, path: str, node: Mapping[str, Json], root: Mapping[str, Json]) -> None:
    """Defaults must have no unknown fields and be valid. (Those inside additionalProperties are forbidden.)"""
    default = node.get("default")
    if default is not None:
        at = f"{path}.default"
        finding = Finding()
        with suppress(SchemaError):  # told by the other passes, or when the whole is compiled
            explain_custom(node_from_trusted(node), default, at, finding, True, alone=True)
        if finding.unknown:
            out.append(Cause.invalid(at, default, "must not have unknown fields"))
        out += finding.causes
    items = _child(node, "items")
    if items is not None:
        _defaults(out, f"{path}.items", items, root)
    for name, child in _properties(node).items():
        if not (node is root and name in _META):
            _defaults(out, f"{path}.properties[{name}]", child, root)


# -- OpenAPI ---------------------------------------------------------------------------------------------------


class _Place:
    """Where a node is: whether defaults are forbidden there, and why; whether inside of a resource's metadata."""

    def __init__(self, reason: str = "", in_meta: bool = False, root: bool = True) -> None:
        self.reason = reason
        self.in_meta = in_meta
        self.root = root

    def below(self, reason: str = "", in_meta: bool = False) -> _Place:
        return _Place(reason or self.reason, in_meta or self.in_meta, False)


def _openapi(out: Causes, path: str, node: Mapping[str, Json], place: _Place) -> None:
    _standard(out, path, node, place)
    if node.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        out.append(Cause.forbidden(f"{path}.uniqueItems", detail))
    values = node.get("additionalProperties")
    if values is not None:
        if _properties(node) and values is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            out.append(Cause.forbidden(f"{path}.additionalProperties", detail))
        if isinstance(values, dict):
            reason = "inside additionalProperties applying to object metadata" if place.in_meta else ""
            _openapi(out, f"{path}.additionalProperties", values, place.below(reason))
    for name, child in _properties(node).items():
        below = place.below()
        if (place.root or node.get("x-kubernetes-embedded-resource")) and name in _META:
            below = place.below(f"in top-level {name}" if place.root else "", True)
        _openapi(out, f"{path}.properties[{name}]", child, below)
    for keyword in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(node.get(keyword) or ()):
            _openapi(out, f"{path}.{keyword}[{index}]", part, place.below())
    for keyword in ("not", "items"):
        inner = _child(node, keyword)
        if inner is not None:
            _openapi(out, f"{path}.{keyword}", inner, place.below())
    if node.get("x-kubernetes-preserve-unknown-fields") is False:
        at = f"{path}.x-kubernetes-preserve-unknown-fields"
        out.append(Cause.invalid(at, False, "must be true or undefined"))
    _map_type(out, path, node)
    _list_type(out, path, node)
    _map_keys(out, path, node)
    for index, rule in enumerate(node.get("x-kubernetes-validations") or ()):
        _rule(out, f"{path}.x-kubernetes-validations[{index}]", rule)


def _standard(out: Causes, path: str, node: Mapping[str, Json], place: _Place) -> None:
    kind = node.get("type") or ""
    if kind and kind not in TYPES:
        out.append(Cause.unsupported(f"{path}.type", kind, TYPES))
    if node.get("default") is not None and place.reason:
        out.append(Cause.forbidden(f"{path}.default", f"must not be set {place.reason}"))
    for keyword in _UNSUPPORTED:
        if node.get(keyword) not in (None, "", {}, []):
            out.append(Cause.forbidden(f"{path}.{keyword}", f"{keyword} is not supported"))
    if kind == "null":
        out.append(Cause.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if isinstance(node.get("items"), list):
        out.append(Cause.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_meta and node.get("x-kubernetes-embedded-resource"):
        at = f"{path}.x-kubernetes-embedded-resource"
        out.append(Cause.forbidden(at, "must not be used inside of resource meta"))


def _needs_type(out: Causes, path: str, node: Mapping[str, Json], wanted: str, keyword: str) -> bool:
    kind = node.get("type") or ""
    if kind == wanted:
        return True
    detail = f"must be {wanted} if {keyword} is specified"
    out.append(Cause.invalid(f"{path}.type", kind, detail) if kind else Cause.required(f"{path}.type", detail))
    return False


def _map_type(out: Causes, path: str, node: Mapping[str, Json]) -> None:
    keyword = "x-kubernetes-map-type"
    if keyword not in node:
        return
    _needs_type(out, path, node, "object", keyword)
    if node[keyword] not in ("atomic", "granular"):
        out.append(Cause.unsupported(f"{path}.{keyword}", node[keyword], ("atomic", "granular")))


def _list_type(out: Causes, path: str, node: Mapping[str, Json]) -> None:
    keyword, at = "x-kubernetes-list-type", f"{path}.items"
    given = node.get(keyword)
    if given is None:
        return
    items = _child(node, "items")
    if _needs_type(out, path, node, "array", keyword) and given == "set" and items is not None:
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get(keyword) not in (None, "atomic"):
            out.append(Cause.invalid(f"{at}.{keyword}", items.get(keyword), detail))
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            out.append(Cause.invalid(f"{at}.x-kubernetes-map-type", items.get(keyword), detail))
    if given not in ("atomic", "set", "map"):
        out.append(Cause.unsupported(f"{path}.{keyword}", given, ("atomic", "set", "map")))
    if given in ("set", "map") and items is not None and items.get("nullable"):
        out.append(Cause.forbidden(f"{at}.nullable", f"cannot be nullable when {keyword} is {given}"))


def _map_keys(out: Causes, path: str, node: Mapping[str, Json]) -> None:
    keyword, at = "x-kubernetes-list-map-keys", f"{path}.items"
    keys, given = list(node.get(keyword) or ()), node.get("x-kubernetes-list-type")
    if keys and given != "map":
        where, detail = f"{path}.x-kubernetes-list-type", f"must be map if {keyword} is non-empty"
        out.append(Cause.required(where, detail) if given is None else Cause.invalid(where, given, detail))
    if given != "map":
        return
    if not keys:
        out.append(Cause.required(f"{path}.{keyword}", "must not be empty if x-kubernetes-list-type is map"))
    items = _child(node, "items")
    if items is None:
        if not isinstance(node.get("items"), list):
            out.append(Cause.required(at, "must have a schema if x-kubernetes-list-type is map"))
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        out.append(Cause.invalid(f"{at}.type", items.get("type") or "", detail))
        return
    needed = items.get("required") or ()
    for index, key in enumerate(keys):
        field = _properties(items).get(key)
        if field is None:
            out.append(Cause.invalid(f"{path}.{keyword}", keys, "entries must all be names of item properties"))
        elif field.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            out.append(Cause.invalid(f"{at}.properties[{key}].type", items.get("type"), detail))
        if key in keys[:index]:
            out.append(Cause.invalid(f"{path}.{keyword}", keys, "must not contain duplicate entries"))
        if field is None:
            continue
        if key not in needed and field.get("default") is None:
            detail = f"this property is in {keyword}, so it must have a default or be a required property"
            out.append(Cause.required(f"{at}.properties[{key}].default", detail))
        if field.get("nullable"):
            detail = f"this property is in {keyword}, so it cannot be nullable"
            out.append(Cause.forbidden(f"{at}.properties[{key}].nullable", detail))


def _rule(out: Causes, path: str, rule: Mapping[str, Json]) -> None:
    """The form of a CEL rule."""

    def text(field: str) -> str:
        return str(rule.get(field) or "")

    blank: Callable[[str], bool] = lambda field: bool(text(field)) and not text(field).strip()  # noqa: E731
    lines = "must not contain line breaks"
    if not text("rule").strip():
        out.append(Cause.required(f"{path}.rule", "rule is not specified"))
    elif blank("message"):
        out.append(Cause.invalid(f"{path}.message", text("message"), "must be non-empty if specified"))
    elif "\n" in text("message").strip():
        out.append(Cause.invalid(f"{path}.message", text("message"), lines))
    elif "\n" in text("rule").strip() and not text("message").strip():
        detail = "message must be specified if rule contains line breaks"
        out.append(Cause.required(f"{path}.message", detail))
    if blank("messageExpression"):
        detail = "messageExpression must be non-empty if specified"
        out.append(Cause.required(f"{path}.messageExpression", detail))
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        out.append(Cause.unsupported(f"{path}.reason", rule["reason"], REASONS))
    if blank("fieldPath"):
        out.append(Cause.invalid(f"{path}.fieldPath", text("fieldPath"), "must be non-empty if specified"))
    if "\n" in text("fieldPath"):
        out.append(Cause.invalid(f"{path}.fieldPath", text("fieldPath"), lines))
