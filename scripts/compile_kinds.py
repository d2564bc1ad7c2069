"""Compile the Kubernetes 1.36 kinds into src/steersman/api/data/kinds.json.z.

    python scripts/compile_kinds.py            write the file
    python scripts/compile_kinds.py --check    exit 1 when the committed file is not a fresh compile

Sources, both pinned in the `dev` extra and read from the installed packages:

- `kubernetes-validate` 1.36.0 (Apache-2.0): the OpenAPI definitions of Kubernetes 1.36 (Apache-2.0),
  with the x-kubernetes-* extensions. Descriptions are left out, and so are the `enum`s on `apiVersion`
  and `kind`, which that package adds and Kubernetes has not.
- `lightkube-models` 1.36.3.8 (MIT): plurals, scope, verbs and subresources, read from its source with
  `ast`, since importing it would need the `lightkube` package.
- The tables below: what neither package holds (short names, categories, connect-only subresources,
  defaults of list map keys), as `kubectl api-resources` of a 1.36 server and the API reference state it.

The shape of the file is described in src/steersman/api/data/README.md.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Gvks = dict[tuple[str, str, str], Json]  # (group, version, kind) -> facts

OUTPUT = Path(__file__).resolve().parent.parent / "src/steersman/api/data/kinds.json.z"
KUBERNETES = "1.36"
PINNED = {"kubernetes-validate": "1.36.0", "lightkube-models": "1.36.3.8"}

SHORT_NAMES: dict[str, tuple[str, ...]] = {  # "plural.group" (core: "plural") -> short names
    "componentstatuses": ("cs",),
    "configmaps": ("cm",),
    "endpoints": ("ep",),
    "events": ("ev",),
    "limitranges": ("limits",),
    "namespaces": ("ns",),
    "nodes": ("no",),
    "persistentvolumeclaims": ("pvc",),
    "persistentvolumes": ("pv",),
    "pods": ("po",),
    "replicationcontrollers": ("rc",),
    "resourcequotas": ("quota",),
    "serviceaccounts": ("sa",),
    "services": ("svc",),
    "customresourcedefinitions.apiextensions.k8s.io": ("crd", "crds"),
    "daemonsets.apps": ("ds",),
    "deployments.apps": ("deploy",),
    "replicasets.apps": ("rs",),
    "statefulsets.apps": ("sts",),
    "horizontalpodautoscalers.autoscaling": ("hpa",),
    "cronjobs.batch": ("cj",),
    "certificatesigningrequests.certificates.k8s.io": ("csr",),
    "events.events.k8s.io": ("ev",),
    "ingresses.networking.k8s.io": ("ing",),
    "ipaddresses.networking.k8s.io": ("ip",),
    "networkpolicies.networking.k8s.io": ("netpol",),
    "poddisruptionbudgets.policy": ("pdb",),
    "priorityclasses.scheduling.k8s.io": ("pc",),
    "storageclasses.storage.k8s.io": ("sc",),
    "volumeattributesclasses.storage.k8s.io": ("vac",),
}

CATEGORIES: dict[str, tuple[str, ...]] = {  # category -> "plural.group"
    "all": (
        "pods",
        "replicationcontrollers",
        "services",
        "daemonsets.apps",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "horizontalpodautoscalers.autoscaling",
        "cronjobs.batch",
        "jobs.batch",
    ),
    "api-extensions": (
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiservices.apiregistration.k8s.io",
    ),
}

# Subresources that speak another protocol than JSON verbs; lightkube-models leaves them out.
CONNECT_SUBRESOURCES: dict[str, dict[str, tuple[str, str]]] = {  # plural -> name -> (apiVersion, kind)
    "pods": {
        "attach": ("v1", "PodAttachOptions"),
        "exec": ("v1", "PodExecOptions"),
        "portforward": ("v1", "PodPortForwardOptions"),
        "proxy": ("v1", "PodProxyOptions"),
    },
    "services": {"proxy": ("v1", "ServiceProxyOptions")},
    "nodes": {"proxy": ("v1", "NodeProxyOptions")},
}

# Defaults of fields that key a list map: without them two spellings of one element get two keys.
KEY_DEFAULTS: dict[tuple[str, str], Json] = {  # (definition, list field) -> key field -> default
    ("io.k8s.api.core.v1.Container", "ports"): {"protocol": "TCP"},
    ("io.k8s.api.core.v1.EphemeralContainer", "ports"): {"protocol": "TCP"},
    ("io.k8s.api.core.v1.ServiceSpec", "ports"): {"protocol": "TCP"},
}

APIMACHINERY = "io.k8s.apimachinery.pkg."
APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
OPAQUE_MAP: Json = {"type": "object", "preserve_unknown": True, "nullable": True}
OPAQUE: Json = {"type": "any", "preserve_unknown": True, "atomic": True, "nullable": True}
SPECIAL: dict[str, Json] = {  # definitions whose JSON form their OpenAPI text does not tell
    APIMACHINERY + "api.resource.Quantity": {"type": "quantity", "nullable": True},
    APIMACHINERY + "util.intstr.IntOrString": {"type": "int-or-string", "nullable": True},
    APIMACHINERY + "apis.meta.v1.FieldsV1": OPAQUE_MAP,
    APIMACHINERY + "apis.meta.v1.Patch": OPAQUE_MAP,
    APIMACHINERY + "runtime.RawExtension": {**OPAQUE_MAP, "embedded": True},
    APIEXTENSIONS + "JSON": OPAQUE,
    APIEXTENSIONS + "JSONSchemaPropsOrArray": OPAQUE,
    APIEXTENSIONS + "JSONSchemaPropsOrBool": OPAQUE,
    APIEXTENSIONS + "JSONSchemaPropsOrStringArray": OPAQUE,
}

SCALARS = {"string", "integer", "number", "boolean"}
RENAMED = {  # OpenAPI keyword -> Schema attribute
    "format": "format",
    "pattern": "pattern",
    "enum": "enum",
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "default": "default",
    "x-kubernetes-patch-merge-key": "merge_key",
    "x-kubernetes-patch-strategy": "merge_strategy",
}
HANDLED = {
    *RENAMED,
    *("type", "$ref", "description", "properties", "required", "additionalProperties", "items"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
    *("x-kubernetes-group-version-kind", "x-kubernetes-unions"),
}
OPTION_KINDS = {"Binding", "Eviction", "Scale", "TokenRequest"}  # bodies of subresources, never stored
VERBS = {"post": "create", "put": "update"}  # lightkube-models' name -> the verb of RBAC and discovery
VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def package_file(package: str, ending: str) -> Path:
    """The one file of an installed package whose path ends so; SystemExit when it is not the pinned version."""
    found = importlib.metadata.version(package)
    if found != PINNED[package]:
        sys.exit(f"{package} is {found}, this script reads {PINNED[package]}: pip install -e '.[dev]'")
    files = [f for f in importlib.metadata.files(package) or () if str(f).endswith(ending)]
    if len(files) != 1:
        sys.exit(f"{package} {found}: expected one file *{ending}, found {len(files)}")
    return Path(str(files[0].locate()))


def node(openapi: Json, where: str) -> Json:
    """One OpenAPI node as a Schema node (the attribute names of steersman.api.schema.Schema)."""
    unknown = sorted(set(openapi) - HANDLED)
    if unknown:
        sys.exit(f"{where}: keywords {unknown} are not handled; teach scripts/compile_kinds.py about them")
    out: Json = {RENAMED[k]: v for k, v in openapi.items() if k in RENAMED}
    if "x-kubernetes-map-type" in openapi:
        out["atomic"] = openapi["x-kubernetes-map-type"] == "atomic"
    if "$ref" in openapi:
        return {**out, "ref": openapi["$ref"].removeprefix("#/$defs/")}
    types = [openapi["type"]] if isinstance(openapi["type"], str) else list(openapi["type"])
    if "null" in types:
        types.remove("null")
        out["nullable"] = True
    (kind,) = types
    if kind == "array":
        out.update(list_node(openapi, where))
    elif kind == "object" and "additionalProperties" in openapi:
        out.update(type="map", values=node(openapi["additionalProperties"], where + "{}"))
    elif kind == "object":
        out.update(type="object", fields=fields(openapi, where))
        if openapi.get("required"):
            out["required"] = sorted(openapi["required"])
    elif kind in SCALARS:
        out["type"] = kind
    else:
        sys.exit(f"{where}: type {kind!r} is not handled")
    return out


def fields(openapi: Json, where: str) -> Json:
    """The compiled properties of an object, without the `enum`s that kubernetes-validate adds."""
    out = {}
    for name, child in sorted(openapi.get("properties", {}).items()):
        if name in ("apiVersion", "kind"):
            child = {k: v for k, v in child.items() if k != "enum"}
        out[name] = node(child, f"{where}.{name}")
    return out


def list_node(openapi: Json, where: str) -> Json:
    """The list part of a node: items, list type (atomic unless said otherwise) and keys."""
    list_type = openapi.get("x-kubernetes-list-type", "atomic")
    out: Json = {"type": "list", "list_type": list_type, "items": node(openapi["items"], where + "[]")}
    if list_type == "map":
        out["keys"] = openapi["x-kubernetes-list-map-keys"]
        definition, _, field = where.rpartition(".")
        if (definition, field) in KEY_DEFAULTS:
            out["key_defaults"] = KEY_DEFAULTS[definition, field]
    return out


def definitions(openapi: Json) -> Json:
    """Every definition, compiled. Scalar aliases (Time, MicroTime) are ordinary nodes with a name."""
    return {name: SPECIAL.get(name) or node(d, name) for name, d in sorted(openapi.items())}


def resources() -> Iterator[Json]:
    """Every resource and subresource of lightkube-models: group, version, kind, plural, action, verbs, …"""
    folder = package_file("lightkube-models", "lightkube/resources/core_v1.py").parent
    for path in sorted(folder.glob("*_v*.py")):
        for cls in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(cls, ast.ClassDef):
                yield resource(cls)


def resource(cls: ast.ClassDef) -> Json:
    """One class of lightkube-models: its `_api_info = ApiInfo(resource=ResourceDef(g, v, k), …)`."""
    calls = [s.value for s in cls.body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)]
    facts = {k.arg: k.value for k in calls[0].keywords}

    def gvk(name: str) -> tuple[str, ...] | None:
        call = facts.get(name)
        return tuple(ast.literal_eval(a) for a in call.args) if isinstance(call, ast.Call) else None

    base = cls.bases[0]
    assert isinstance(base, ast.Attribute)
    verbs = {VERBS.get(v, v) for v in ast.literal_eval(facts["verbs"]) if not v.startswith("global_")}
    return {
        "own": gvk("resource"),
        "parent": gvk("parent"),
        "plural": ast.literal_eval(facts["plural"]),
        "action": ast.literal_eval(facts["action"]) if "action" in facts else "",
        "namespaced": base.attr.startswith("Namespaced"),
        "verbs": sorted(verbs),
    }


def version_rank(version: str) -> tuple[int, int, int]:
    """Kubernetes' order of versions, best last: v1alpha1 < v1beta1 < v1 < v2."""
    match = VERSION.fullmatch(version)
    assert match, version
    stage = {"alpha": 0, "beta": 1, None: 2}[match[2]]
    return stage, int(match[1]), int(match[3] or 0)


def api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def kinds(openapi: Json) -> list[Json]:
    """One entry per (group, kind), of its preferred version; the other versions are `served`."""
    by_gvk = {}
    for name, definition in openapi.items():
        for g in definition.get("x-kubernetes-group-version-kind", ()):
            by_gvk[g["group"], g["version"], g["kind"]] = name
    whole: Gvks = {}
    parts: Gvks = {}
    for r in resources():
        if r["action"]:
            group, version, kind = r["own"]
            body = {"kind": kind, "api_version": api_version(group, version), "verbs": r["verbs"]}
            parts.setdefault(r["parent"], {})[r["action"]] = body
        else:
            whole[r["own"]] = r
    versions: dict[tuple[str, str], list[str]] = {}
    for group, version, kind in whole:
        versions.setdefault((group, kind), []).append(version)
    out = []
    for (group, kind), served in sorted(versions.items()):
        best, *others = sorted(served, key=version_rank, reverse=True)
        gvk = (group, best, kind)
        out.append(entry(whole[gvk], by_gvk[gvk], parts.get(gvk, {}), others))
    check_complete(openapi, whole)
    return out


def entry(r: Json, definition: str, parts: Json, others: list[str]) -> Json:
    """The line of one kind in the file."""
    group, version, kind = r["own"]
    plural = r["plural"]
    resource_name = f"{plural}.{group}" if group else plural
    if group == "":
        connect = CONNECT_SUBRESOURCES.get(plural, {})
        parts = {**parts, **{n: connect_part(*body) for n, body in connect.items()}}
    return {
        "group": group,
        "version": version,
        "kind": kind,
        "plural": plural,
        "namespaced": r["namespaced"],
        "verbs": r["verbs"],
        "short_names": SHORT_NAMES.get(resource_name, ()),
        "categories": sorted(c for c, members in CATEGORIES.items() if resource_name in members),
        "subresources": parts,
        "served": others,
        "schema": definition,
    }


def connect_part(version: str, kind: str) -> Json:
    return {"kind": kind, "api_version": version, "verbs": ["create", "get"]}


def check_complete(openapi: Json, whole: Gvks) -> None:
    """Every definition of an object kind must be a resource or a known option kind; so must our tables."""
    for name, definition in openapi.items():
        meta = definition.get("properties", {}).get("metadata", {}).get("$ref", "")
        gvks = definition.get("x-kubernetes-group-version-kind", ())
        if meta.endswith(".ObjectMeta") and len(gvks) == 1:
            g = gvks[0]
            if (g["group"], g["version"], g["kind"]) not in whole and g["kind"] not in OPTION_KINDS:
                sys.exit(f"{name} is an object kind that lightkube-models lacks; add it by hand")
    names = {f"{r['plural']}.{gvk[0]}".removesuffix(".") for gvk, r in whole.items()}
    ours = {*SHORT_NAMES, *(m for members in CATEGORIES.values() for m in members)}
    if ours - names:
        sys.exit(f"the tables name resources that do not exist: {sorted(ours - names)}")
    for definition, field in KEY_DEFAULTS:
        keys = openapi[definition]["properties"][field]["x-kubernetes-list-map-keys"]
        if not set(KEY_DEFAULTS[definition, field]) <= set(keys):
            sys.exit(f"KEY_DEFAULTS names fields of {definition}.{field} that are no keys")


def compile_payload() -> bytes:
    """The uncompressed JSON text: sorted keys, no spaces, so that equal inputs give equal bytes."""
    path = package_file("kubernetes-validate", f"v{PINNED['kubernetes-validate']}-local/_definitions.json")
    openapi = json.loads(path.read_text(encoding="utf-8"))["$defs"]
    data = {"kubernetes": KUBERNETES, "sources": PINNED, "kinds": kinds(openapi)}
    data["definitions"] = definitions(openapi)
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed file, write nothing")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    payload = compile_payload()
    if options.check:
        # The texts are compared, not the compressed bytes: another build of zlib may pack otherwise.
        fresh = options.output.is_file() and zlib.decompress(options.output.read_bytes()) == payload
        print("up to date" if fresh else f"{options.output} is stale: run scripts/compile_kinds.py")
        return 0 if fresh else 1
    options.output.write_bytes(zlib.compress(payload, 9))
    print(f"{options.output}: {len(payload)} bytes, {options.output.stat().st_size} packed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
