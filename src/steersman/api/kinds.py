"""Kinds: what may be stored, under which names, with which schema.

`Kinds.builtin()` holds every object kind of Kubernetes 1.36; `with_custom` adds kinds made from
CustomResourceDefinitions. A registry is immutable: adding gives a new one that shares the old.

One version of each (group, kind) is stored: the one Kubernetes prefers, or a definition says. Its other versions are
named in `Kind.served`. Those of a built-in kind need conversion, so a lookup by them says which version to write
instead; those of a custom kind are Kinds of their own, found by lookups that name the version (`in_version`).

Sources: see scripts/compile_kinds.py; the forms `find` accepts are those of kubectl ("kubectl get --help").
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from steersman.api.crd.custom import Origin, columns_of, declared, scale_of, version_rank, warning_of
from steersman.api.schema import Json, Schema, compiled_data, definitions

GK = tuple[str, str]
"""(group, kind); the core group is ""."""

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""The verbs of an ordinary stored kind, sorted."""
CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""Those of a custom kind, in the order in which kube-apiserver tells them."""
TERMINATING_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
"""The verbs of a custom kind whose definition is being deleted."""
_PART_VERBS: Final = ("get", "patch", "update")

STATUS_PARTS: Final = frozenset({"status", "approval"})
"""Subresources that write the status; approval is that of a CertificateSigningRequest."""


class UnknownKind(LookupError):
    """No such kind. The text says what was asked, the nearest matches and what to do."""


class Subresource(NamedTuple):
    """A named part of an object's address, such as `scale`, and the kind its bodies have."""

    name: str
    api_version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object, in its stored version. Compared by identity."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[str, ...]
    """Names, sorted; `endpoints` says more about each."""
    schema: Schema
    endpoints: tuple[Subresource, ...] = ()
    served: tuple[str, ...] = ()
    """Other versions of this kind, best first; they need conversion."""
    custom: bool = False
    """Made from a CustomResourceDefinition."""
    origin: Origin | None = None
    """What the definition of a custom kind says beside this."""

    alias: Any = None
    """How a stored kind looks in this version of it (`aliases.Alias`); None: this kind is stored as it is."""
    converted: Any = None
    """What its conversion webhook has said, for the request under way (`conversion.Answers`); None: not asked."""

    api_version: str = field(init=False)
    """`apps/v1`, or `v1` for the core group: the object's apiVersion field."""
    gk: GK = field(init=False)
    resource: str = field(init=False)
    """`deployments.apps`, or `pods` for the core group: the name of a CustomResourceDefinition."""
    has_status: bool = field(init=False)
    """status is written through its own subresource only."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return object.__reduce_ex__(self, protocol) if self.custom else (_builtin_kind, (self.gk,))

    def __post_init__(self) -> None:
        # Facts that every request asks for, worked out once.
        facts = {
            "api_version": f"{self.group}/{self.version}" if self.group else self.version,
            "gk": (self.group, self.kind),
            "resource": f"{self.plural}.{self.group}" if self.group else self.plural,
            "has_status": "status" in self.subresources,
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"

    def in_version(self, version: str) -> Kind | None:
        """This kind in another of its versions; None when that cannot be served."""
        if version == self.version:
            return self
        found: Kind | None = None if self.origin is None else self.origin.siblings.get(version)
        return found if found is not None and found.origin is not None and found.origin.is_served else None


class Kinds:
    """An immutable registry of kinds. Every lookup raises UnknownKind when it finds nothing.

    In another process it is made of that process's built-in kinds, and the custom ones.
    """

    __slots__ = ("_by_gk", "_by_resource", "_by_word", "_virtual")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_with, (tuple([kind for kind in self.all() if kind.custom]),))

    def __init__(self, kinds: Iterable[Kind], virtual: Iterable[Kind] = ()) -> None:
        self._by_gk = {k.gk: k for k in sorted(kinds, key=lambda k: k.gk)}
        self._virtual = tuple(virtual)
        self._by_resource = {(k.group, k.plural): k for k in self._by_gk.values()}
        self._by_word: dict[str, list[Kind]] = {}
        for kind in self._by_gk.values():
            for word in sorted({kind.kind.lower(), kind.plural, kind.singular, *kind.short_names}):
                self._by_word.setdefault(word, []).append(kind)

    @staticmethod
    def builtin() -> Kinds:
        """The object kinds of Kubernetes 1.36, one registry per process."""
        return _builtin()

    def all(self) -> tuple[Kind, ...]:
        """Every kind, sorted by (group, kind)."""
        return tuple(self._by_gk.values())

    def virtual(self) -> tuple[Kind, ...]:
        """Kinds that are only ever created and never stored (reviews, bindings); no lookup finds them."""
        return self._virtual

    @staticmethod
    def custom_from_yaml_dict(doc: Json, where: str) -> Kind:
        """The Kind of a CustomResourceDefinition document, for `with_custom`.

        `doc` is the parsed document; `where` (a file, say) begins every error. Raises SchemaError, which
        names the field, the fault and the remedy.
        """
        return custom_kind(*declared(doc, where))

    @staticmethod
    def definition(name: str) -> Schema:
        """A definition that is no kind of its own, by full name: `io.k8s.api.policy.v1.Eviction`,
        `io.k8s.api.autoscaling.v1.Scale`, `io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions`, …
        Raises SchemaError with the nearest names.
        """
        return definitions().get(name)

    def builtin_of(self, group: str, kind: str) -> Kind | None:
        """The built-in kind of that group and name, if it is one: no definition can take its place."""
        found = self._by_gk.get((group, kind))
        return None if found is None or found.custom else found

    def get(self, group: str, kind: str) -> Kind:
        """The kind of that group ("" is the core group) and exact name."""
        found = self._by_gk.get((group, kind))
        if found is None:
            raise self._unknown(f"{group}/{kind}" if group else kind, kind)
        return found

    def by_api_version(self, api_version: str, kind: str) -> Kind:
        """The kind an object's apiVersion and kind fields name."""
        group, version = _split(api_version)
        found = self._by_gk.get((group, kind))
        if found is None:
            raise self._unknown(f"{api_version}/{kind}", kind)
        return self._in_version(found, version)

    def by_plural(self, group: str, version: str, plural: str) -> Kind:
        """The kind served under /apis/GROUP/VERSION/…/PLURAL (/api/VERSION for the core group)."""
        found = self._by_resource.get((group, plural))
        if found is None:
            raise self._unknown(f"{group}/{version}/{plural}" if group else f"{version}/{plural}", plural)
        return self._in_version(found, version)

    def find(self, text: str) -> Kind:
        """The kind a person means by `deploy`, `Deployment`, `deployments.apps`, `deployments.v1.apps` or
        `apps/v1/Deployment`; upper and lower case are one.

        The core group goes before other built-in groups, and these before custom ones, as kubectl does it;
        a word that still means several kinds is refused.
        """
        word = text.strip().lower()
        if "/" in word:
            return self._find_exact(text.strip())
        name, _, rest = word.partition(".")
        rest = rest.rstrip(".")
        found = [k for k in self._by_word.get(name, ()) if not rest or rest in _suffixes(k)]
        if not found:
            raise self._unknown(text, word)
        best = min(_rank(k) for k in found)
        found = [k for k in found if _rank(k) == best]
        if len(found) > 1:
            raise UnknownKind(f"{text!r} may mean {_either(k.resource for k in found)}: write one of these")
        return found[0]

    def with_custom(self, kind: Kind) -> Kinds:
        """A registry that also has this kind; it takes the place of a custom kind of the same (group, kind).

        Raises ValueError when a built-in kind has the name, or another kind has the plural.
        """
        old = self._by_gk.get(kind.gk)
        if old is not None and not old.custom:
            raise ValueError(f"{old} is built in and cannot be replaced: choose another group or kind")
        other = self._by_resource.get((kind.group, kind.plural))
        if other is not None and other.gk != kind.gk:
            raise ValueError(f"{kind}: {kind.resource} already names {other}: choose another plural")
        return Kinds([*(k for k in self.all() if k.gk != kind.gk), kind], self._virtual)

    def with_stored(self, kinds: Iterable[Kind]) -> Kinds:
        """A registry that also has the kinds whose definitions are in a store. They take the place of custom kinds of
        the same name; built-in kinds go before them, as their paths do in Kubernetes."""
        found = {gk: kind for gk, kind in self._by_gk.items() if kind.custom}
        resources = {resource for resource, kind in self._by_resource.items() if not kind.custom}
        for kind in kinds:
            builtin = self._by_gk.get(kind.gk)
            if (builtin is None or builtin.custom) and (kind.group, kind.plural) not in resources:
                found[kind.gk] = kind
        return Kinds([*(k for k in self.all() if not k.custom), *found.values()], self._virtual)

    def _find_exact(self, text: str) -> Kind:
        api_version, _, name = text.rpartition("/")
        group, version = _split(api_version.lower())
        for kind in self._by_word.get(name.lower(), ()):
            if kind.group == group:
                return self._in_version(kind, version)
        raise self._unknown(text, name)

    def _in_version(self, kind: Kind, version: str) -> Kind:
        found = kind.in_version(version)
        if found is not None:
            return found
        asked = f"{kind.group}/{version}" if kind.group else version
        why = "is served by conversion only" if version in kind.served else "does not exist"
        raise UnknownKind(f"{kind.kind} in {asked} {why}: write apiVersion {kind.api_version}")

    def _unknown(self, asked: str, word: str) -> UnknownKind:
        word = word.lower().partition(".")[0]
        near = difflib.get_close_matches(word, sorted(self._by_word), 5)
        exact = self._by_word.get(word, [])
        likely = list(dict.fromkeys([*exact, *(k for w in near for k in self._by_word[w])]))[:3]
        if likely:
            return UnknownKind(f"no kind {asked!r}: did you mean {_either(str(k) for k in likely)}?")
        return UnknownKind(
            f"no kind {asked!r}: write VERSION/Kind or GROUP/VERSION/Kind of a built-in kind, "
            "or register its CustomResourceDefinition first"
        )


@cache
def _builtin() -> Kinds:
    kinds = [_compiled_kind(entry) for entry in compiled_data()["kinds"]]
    return Kinds((k for k in kinds if "get" in k.verbs), (k for k in kinds if "get" not in k.verbs))


def _compiled_kind(entry: Mapping[str, Any]) -> Kind:
    """A Kind from its line in data/kinds.json.z; its schema stays unbuilt until somebody looks at it."""
    name: str = entry["kind"]
    parts = sorted(entry["subresources"].items())
    return Kind(
        group=entry["group"],
        version=entry["version"],
        kind=name,
        plural=entry["plural"],
        singular=name.lower(),
        list_kind=name + "List",
        short_names=tuple(entry["short_names"]),
        categories=tuple(entry["categories"]),
        namespaced=entry["namespaced"],
        verbs=tuple(entry["verbs"]),
        subresources=tuple(part for part, _ in parts),
        schema=definitions().get(entry["schema"]),
        endpoints=tuple(Subresource(n, p["api_version"], p["kind"], tuple(p["verbs"])) for n, p in parts),
        served=tuple(entry["served"]),
    )


BODIES: Final[Mapping[str, tuple[str, str]]] = {"scale": ("autoscaling/v1", "Scale")}


def custom_kind(
    crd: str,
    spec: Mapping[str, Any],
    names: Mapping[str, Any],
    schemas: Mapping[str, Schema],
    terminating: bool = False,
) -> Kind:
    """The stored version of the kind that a definition's spec declares under these names, with its siblings: the
    versions that `schemas` has."""
    siblings: dict[str, Kind] = {}
    group, entries = spec["group"], spec["versions"]
    storage = next(version["name"] for version in entries if version["storage"])
    served = sorted((v["name"] for v in entries if v["served"]), key=version_rank, reverse=True)
    conversion = spec.get("conversion") or {}
    for version in entries:
        name = version["name"]
        if name not in schemas:
            continue
        parts = tuple(sorted(version.get("subresources") or ()))
        own: tuple[str, str] = (f"{group}/{name}", names["kind"])
        bodies = [(part, BODIES.get(part, own)) for part in parts]
        origin = Origin(
            crd=crd,
            storage=storage,
            is_served=version["served"],
            siblings=siblings,
            openapi=version["schema"]["openAPIV3Schema"],
            columns=columns_of(version),
            selectable=tuple([field["jsonPath"][1:] for field in version.get("selectableFields") or ()]),
            scale=scale_of(version),
            warning=warning_of(version, spec, names["kind"]),
            webhook=(conversion.get("webhook") or {}) if conversion.get("strategy") == "Webhook" else None,
            terminating=terminating,
        )
        siblings[name] = Kind(
            group=group,
            version=name,
            kind=names["kind"],
            plural=names["plural"],
            singular=names["singular"],
            list_kind=names["listKind"],
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            namespaced=spec["scope"] == "Namespaced",
            verbs=TERMINATING_VERBS if terminating else CUSTOM_VERBS,
            subresources=parts,
            schema=schemas[name],
            endpoints=tuple([Subresource(part, *body, verbs=_PART_VERBS) for part, body in bodies]),
            served=tuple([other for other in served if other != name]),
            custom=True,
            origin=origin,
        )
    return siblings[storage]


def _split(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def _suffixes(kind: Kind) -> tuple[str, ...]:
    """What may follow the first dot in `deployments.apps`, `deployments.v1.apps` or `pods.v1.`"""
    return (kind.group, f"{kind.version}.{kind.group}".rstrip("."))


def _rank(kind: Kind) -> int:
    if kind.custom:
        return 2
    return 1 if kind.group else 0


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)


def _with(customs: Iterable[Kind]) -> Kinds:
    """The built-in kinds and others."""
    kinds = Kinds.builtin()
    for kind in customs:
        kinds = kinds.with_custom(kind)
    return kinds


def _builtin_kind(gk: tuple[str, str]) -> Kind:
    every = Kinds.builtin()
    return next(kind for kind in (*every.all(), *every.virtual()) if kind.gk == gk)
