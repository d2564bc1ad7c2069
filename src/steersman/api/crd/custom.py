"""Custom kinds: what a CustomResourceDefinition says, and the reading of one that comes from a file.

A definition in the store was judged when it was written (`api.crd_rules`); one from a file is judged here, and a
mistake in it is told with place and remedy. Rules and default names: "CustomResourceDefinition" in the Kubernetes API
reference (apiextensions.k8s.io/v1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from steersman.api.crd.structural import from_structural
from steersman.api.schema import Json, Schema, SchemaError

_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_RESOURCE: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_API_VERSION: Final = "apiextensions.k8s.io/v1"


class Column(NamedTuple):
    """An additional printer column."""

    name: str
    type: str
    format: str
    description: str
    priority: int
    path: str
    """A JSONPath such as `.status.phase`."""


class ScalePaths(NamedTuple):
    """Where the numbers of the scale subresource are: field names from the root. No selector: ()."""

    replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...]


class Origin(NamedTuple):
    """What a definition says of one version beside its schema and names."""

    crd: str
    """The definition's name, `widgets.example.com`."""
    storage: str
    """The version in which objects are stored."""
    is_served: bool
    siblings: Mapping[str, Any]
    """Every version of the kind that has a schema: its `Kind`, this one included."""
    openapi: Mapping[str, Json]
    """openAPIV3Schema as written, for documents."""
    columns: tuple[Column, ...]
    selectable: tuple[str, ...]
    """Selectable fields without their first dot."""
    scale: ScalePaths | None
    warning: str
    """What every user of the version is told; "" for one that is not deprecated."""
    webhook: Mapping[str, Json] | None
    """spec.conversion.webhook when versions are converted by a webhook, else None: then only apiVersion differs."""
    terminating: bool
    """The definition is being deleted: nothing new may be created."""


class Declared(NamedTuple):
    """A definition from a file, judged."""

    crd: str
    spec: dict[str, Json]
    names: dict[str, Any]
    """kind, plural, singular, listKind, shortNames and categories, complete."""
    schemas: dict[str, Schema]
    """Version to its schema; a version without one is served by conversion only."""


def declared(doc: Json, where: str) -> Declared:
    """One CustomResourceDefinition document, judged.

    Raises SchemaError: `WHERE: PATH: what is wrong: what to do`.
    """
    reader = _Reader(where)
    if not isinstance(doc, dict):
        reader.fail("(document)", "must be a mapping", "write a CustomResourceDefinition")
    if doc.get("kind") != "CustomResourceDefinition" or doc.get("apiVersion") != _API_VERSION:
        found = f"is {doc.get('apiVersion')}/{doc.get('kind')}"
        remedy = f"write apiVersion: {_API_VERSION} and kind: CustomResourceDefinition"
        reader.fail("apiVersion, kind", found, remedy)
    spec = reader.mapping(doc, "spec", "spec")
    group = reader.text(spec, "group", "spec.group", _GROUP, "a domain name such as example.com")
    names = reader.names(reader.mapping(spec, "names", "spec.names"))
    reader.check_name(doc, names["plural"], group)
    scope = spec.get("scope")
    if scope not in ("Namespaced", "Cluster"):
        reader.fail("spec.scope", f"is {scope!r}", "write Namespaced or Cluster")
    stored = reader.versions(spec)
    schemas = {}
    for index, version in enumerate(spec["versions"]):
        at = f"spec.versions[{index}]"
        reader.check_parts(version, at)
        holder = version.get("schema")
        if index == stored or (isinstance(holder, dict) and holder.get("openAPIV3Schema") is not None):
            schemas[version["name"]] = reader.schema(version, at)
    return Declared(f"{names['plural']}.{group}", spec, names, schemas)


def columns_of(version: Mapping[str, Json]) -> tuple[Column, ...]:
    """The additional printer columns of a version."""
    return tuple(
        Column(
            str(found.get("name", "")),
            str(found.get("type", "")),
            str(found.get("format") or ""),
            str(found.get("description") or ""),
            int(found.get("priority") or 0),
            str(found.get("jsonPath", "")),
        )
        for found in version.get("additionalPrinterColumns") or ()
    )


def scale_of(version: Mapping[str, Json]) -> ScalePaths | None:
    """The paths of a version's scale subresource; None when it has none."""
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return None
    paths = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    replicas, status, selector = [tuple(str(scale.get(path) or "").strip(".").split(".")) for path in paths]
    return ScalePaths(replicas, status, selector if selector != ("",) else ())


def warning_of(version: Mapping[str, Json], spec: Mapping[str, Json], kind: str) -> str:
    """What users of a deprecated version are told; "" for others."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, told = spec["group"], f"{spec['group']}/{version['name']} {kind} is deprecated"
    rank = version_rank(version["name"])
    newer = [other["name"] for other in spec["versions"] if other.get("served") and not other.get("deprecated")]
    best = max((name for name in newer if version_rank(name) > rank), key=version_rank, default="")
    return f"{told}; use {group}/{best} {kind}" if best else told


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions, best last: foo < v1alpha1 < v1beta1 < v1 < v2."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, version
    stage = {"alpha": 0, "beta": 1}.get(match[2], 2)
    return stage, int(match[1]), int(match[3] or 0), version


class _Reader:
    """Reads the parts of one document; every method raises SchemaError at the first fault."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, path: str, fault: str, remedy: str) -> NoReturn:
        raise SchemaError(f"{self.where}: {path}: {fault}: {remedy}")

    def mapping(self, holder: Mapping[str, Json], field: str, path: str) -> dict[str, Json]:
        value = holder.get(field)
        if not isinstance(value, dict):
            fault = "is missing" if value is None else "must be a mapping"
            self.fail(path, fault, f"write {field}: and its fields")
        return value

    def text(self, holder: Mapping[str, Json], field: str, path: str, form: re.Pattern[str], what: str) -> str:
        value = holder.get(field)
        if value is None:
            self.fail(path, "is missing", f"write {what}")
        if not isinstance(value, str) or not form.fullmatch(value):
            self.fail(path, f"{value!r} cannot be used", f"write {what}")
        return value

    def texts(self, holder: Mapping[str, Json], field: str, path: str) -> tuple[str, ...]:
        value = holder.get(field, [])
        words = "a list of lower-case words"
        if not isinstance(value, list):
            self.fail(path, "must be a list", f"write {words}")
        for word in value:
            if not isinstance(word, str) or not _RESOURCE.fullmatch(word):
                self.fail(path, f"{word!r} cannot be used", f"write {words}")
        return tuple(value)

    def names(self, names: Mapping[str, Json]) -> dict[str, Any]:
        """kind, plural, singular, listKind, shortNames and categories, with Kubernetes' defaults."""
        at = "spec.names"
        kind = self.text(names, "kind", f"{at}.kind", _KIND, "a word such as Widget")
        plural = self.text(names, "plural", f"{at}.plural", _RESOURCE, "a lower-case word such as widgets")
        given = {"singular": kind.lower(), "listKind": kind + "List", **names}
        singular = self.text(given, "singular", f"{at}.singular", _RESOURCE, "a word such as widget")
        return {
            "kind": kind,
            "plural": plural,
            "singular": singular,
            "listKind": self.text(given, "listKind", f"{at}.listKind", _KIND, "a word such as WidgetList"),
            "shortNames": self.texts(names, "shortNames", f"{at}.shortNames"),
            "categories": self.texts(names, "categories", f"{at}.categories"),
        }

    def check_name(self, doc: Mapping[str, Json], plural: str, group: str) -> None:
        name = self.mapping(doc, "metadata", "metadata").get("name")
        if name != f"{plural}.{group}":
            fault = f"is {name!r}, not spec.names.plural and spec.group"
            self.fail("metadata.name", fault, f"write {plural}.{group}")

    def versions(self, spec: Mapping[str, Json]) -> int:
        """The index of the stored version; the list is one of well-named versions."""
        entries = spec.get("versions")
        if not isinstance(entries, list) or not entries:
            self.fail("spec.versions", "must be a list of versions", "write one, served and stored")
        names: list[str] = []
        stored: list[int] = []
        for index, entry in enumerate(entries):
            at = f"spec.versions[{index}]"
            if not isinstance(entry, dict):
                self.fail(at, "must be a mapping", "write name, served, storage and schema")
            names.append(self.text(entry, "name", f"{at}.name", _RESOURCE, "a version such as v1"))
            for flag in ("served", "storage"):
                if not isinstance(entry.get(flag), bool):
                    self.fail(f"{at}.{flag}", "must be given", "write true or false")
            if entry["storage"]:
                stored.append(index)
        if len(set(names)) < len(names):
            self.fail("spec.versions", "names a version twice", "write each version once")
        if len(stored) != 1:
            self.fail("spec.versions", f"{len(stored)} versions have storage: true", "write it in one of them")
        (index,) = stored
        if not entries[index]["served"]:
            remedy = "write served: true, or store a version that is served"
            self.fail(f"spec.versions[{index}].served", "the stored version must be served here", remedy)
        return index

    def check_parts(self, version: Mapping[str, Json], at: str) -> None:
        """The forms of what a version may have beside its schema."""
        for field, inner, remedy in (
            ("additionalPrinterColumns", dict, "write a list of columns: name, type and jsonPath"),
            ("selectableFields", dict, "write a list of fields: jsonPath"),
        ):
            found = version.get(field) or []
            if not isinstance(found, list) or not all(isinstance(item, inner) for item in found):
                self.fail(f"{at}.{field}", "must be a list of mappings", remedy)
            for index, item in enumerate(found):
                if not str(item.get("jsonPath", "")).startswith("."):
                    self.fail(
                        f"{at}.{field}[{index}].jsonPath", "is missing or no path", "write a path such as .spec.x"
                    )
                if type(item.get("priority", 0)) is not int:
                    self.fail(f"{at}.{field}[{index}].priority", "must be a number", "write 0, or 1 for wide output")
        self.subresources(version, at)

    def schema(self, version: Mapping[str, Json], at: str) -> Schema:
        holder = self.mapping(version, "schema", f"{at}.schema")
        openapi = self.mapping(holder, "openAPIV3Schema", f"{at}.schema.openAPIV3Schema")
        return from_structural(openapi, f"{self.where}: {at}.schema")

    def subresources(self, version: Mapping[str, Json], at: str) -> None:
        """status and scale, as far as the version declares them."""
        declared = version.get("subresources") or {}
        if not isinstance(declared, dict):
            self.fail(f"{at}.subresources", "must be a mapping", "write status: {} or scale: and its paths")
        for name, value in declared.items():
            if name not in ("scale", "status"):
                self.fail(f"{at}.subresources.{name}", "is no subresource", "write status or scale")
            if not isinstance(value, dict):
                self.fail(f"{at}.subresources.{name}", "must be a mapping", f"write {name}: {{}}")
        for path in ("specReplicasPath", "statusReplicasPath") if "scale" in declared else ():
            if not str(declared["scale"].get(path, "")).startswith("."):
                section = path.removesuffix("ReplicasPath")
                remedy = f"write a path such as .{section}.replicas"
                self.fail(f"{at}.subresources.scale.{path}", "is missing or no path", remedy)
