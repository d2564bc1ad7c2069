"""Hostile requests without end: valid objects of every served kind with places changed, in every encoding, at every
verb, subresource and query parameter.

`Fuzz(random).request(plane)` is one `Shot`. The source of chance is a `random.Random`, so that Hypothesis can hand in
one of its own and shrink, and a long run can use a seed.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import zlib
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import yaml

from steersman.api.kinds import Kind
from steersman.serve.served import Served, parts_of
from tests.interop.conformance.samples import SAMPLES

VECTORS = json.loads(zlib.decompress((Path(__file__).parent / "data/protobuf.json.z").read_bytes()))
BODIES = {gvk: base64.b64decode(body) for gvk, body, _ in VECTORS}
FILLED = {gvk: value for gvk, _, value in VECTORS}
"""One object per kind in which Go has set every field to something."""
DEEPEST = 3_000
NESTED: Any = 1
for _ in range(300):
    NESTED = {"a": NESTED}
LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 100, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, 2**63),
    *(-(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, 1e-320, 1.0, 1e21),
    *("", " ", "a", "A", "é", "\0", "\n", "\r\nX: y", "\u2028", "\U0001f600", "%2f", "..", ".", "/", "a/b", "a" * 64),
    *("a" * 254, "x" * 5000, "0", "-1", "1", "true", "null", "~", "*", "=", "100%", "101%", "-5%", "1e3%", "²", "٣"),
    *("1Gi", "1e999999999", "0.0000000001n", "-1Ki", "9" * 400, "1E", "1h", "1ns", "99999999999h", "-1s", "P1D"),
    *("2026-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "0000-00-00T00:00:00Z", "2026-01-01T00:00:00+99:99"),
    *("10.0.0.1", "::1", "10.0.0.0/33", "fe80::1%eth0", "999.1.1.1", "::ffff:1.2.3.4", "0.0.0.0/0", "host:99999"),
    *(
        "* * * * *",
        "*/0 * * * *",
        "0-99 * * * *",
        "@every 1ns",
        "TZ=../../etc/passwd * * * * *",
        "60 * * * *",
        f"*/{'9' * 5000} * * * *",
        "9" * 5000,
    ),
    *("(a+)+$", "[", "(?P<x>", "\\", "a{1000}{1000}", "$(", "{{", "{.a[*]..b}", "self.x", "1/0", "has(", "true || 1"),
    *("default", "kube-system", "system:masters", "system:node:x", "web", "fuzz", "nodes", "pods", "v1", "apps/v1"),
    *("Always", "Never", "OnFailure", "ClusterIP", "ExternalName", "None", "Guaranteed", "Foreground", "Orphan"),
)
CONTAINERS: tuple[Any, ...] = (
    *([], {}, [None], [[]], [{}], {"": ""}, {"a": None}, [1, "1"], ["a", "a"], {"a": {}}, [{"name": "a"}] * 2, NESTED),
    *({"matchLabels": {}}, {"$patch": "delete"}, [{"$patch": "replace"}], {"$retainKeys": ["a"]}, {"f:a": {}}),
    *({"cpu": "-1"}, {"k8s.io/x": "a"}, {"a" * 300: "b" * 300}, {"matchExpressions": [{"key": "a", "operator": "In"}]}),
)
NAMES = ("fuzz", "a", "web", "default", "kube-system", "x.example.com", "é", "a b", "..", "%", "A", "a" * 254, "x:y")
PARAMETERS: dict[str, tuple[str, ...]] = {
    "limit": ("0", "1", "5", "-1", "x", "99999999999999999999", "²"),
    "continue": ("x", "e30=", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "{}", "é"),
    "labelSelector": ("a=b", "app in (a,b)", "!x", "a in (", "app!=a", "x" * 300, "a>1", ",", "é=é", "a=b," * 500),
    "fieldSelector": ("metadata.name=a", "spec.nodeName!=", "status.phase=x", "a=b", "metadata.name=a\\", "=", ","),
    "resourceVersion": ("0", "1", "x", "-1", "9" * 30, "99999999", ""),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "timeoutSeconds": ("1", "0", "-1", "x", "9" * 18, "9" * 30),
    "timeout": ("1s", "x", "-1s"),
    "watch": ("1", "true", "false", "x", ""),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "false", "x"),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("fuzz", "a" * 200, "\0", "é", ""),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x", "1"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "orphanDependents": ("true", "x"),
    "gracePeriodSeconds": ("0", "-1", "x", "9" * 18, "9" * 40),
    "includeObject": ("None", "Object", "Metadata", "x"),
    "pretty": ("true", "x"),
    "ignoreStoreReadErrorWithClusterBreakingPotential": ("true",),
}
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
MEDIA = (JSON, YAML, PROTOBUF, MERGE, PATCH, STRATEGIC, APPLY, "", "text/plain", "application/cbor", "é", ";", "a" * 99)
AS = "application/json;as={};v=v1;g=meta.k8s.io"
ACCEPTS = (
    *("", "*/*", JSON, PROTOBUF, "application/yaml", ";;,q=,", "application/json;q=x;as,*/*", "é", "a" * 5000),
    *(AS.format("Table"), AS.format("PartialObjectMetadata"), AS.format("PartialObjectMetadataList"), AS.format("X")),
    *(AS.format("Table") + "," + JSON, "application/json;as=Table;v=v1beta1;g=meta.k8s.io"),
)
RULES = [
    {"rule": "self.size < 100 && self.name.matches('^[a-z]*$')", "messageExpression": "'the name is ' + self.name"},
    {"rule": "self.items.all(x, x.name != 'bad')", "message": "bad"},
    {"rule": "!has(oldSelf.size) || oldSelf.size <= self.size"},
]
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Names", "type": "string", "jsonPath": ".spec.items[*].name"},
                ],
                "selectableFields": [{"jsonPath": ".spec.name"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": RULES,
                                "properties": {
                                    "size": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
                                    "name": {"type": "string", "maxLength": 50, "pattern": "^([a-z]+)*$"},
                                    "ratio": {"type": "number", "nullable": True, "multipleOf": 0.5},
                                    "when": {"type": "string", "format": "date-time"},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "items": {
                                        "type": "array",
                                        "maxItems": 20,
                                        "default": [],
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string", "maxLength": 20}},
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "pod": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                },
                            },
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}
WIDGET = {"spec": {"size": 2, "name": "a", "items": [{"name": "x"}], "tags": ["a"], "port": 1, "any": {"b": [1]}}}


PATHS = ("/", "", "a", "/-", "/metadata/~2", "/metadata/labels", "/spec/-1", "/spec/01", "/" * 200)
METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "get": "GET",
    "list": "GET",
    "watch": "GET",
}


_EVERYWHERE = {
    "apiGroups": ["example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["none"],
}
MORE = (
    (
        "events.k8s.io/v1",
        "Event",
        "fuzz",
        {
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "type": "Normal",
            "reason": "r",
            "note": "n",
            "action": "a",
            "reportingController": "example.com/c",
            "reportingInstance": "i",
            "regarding": {"kind": "Pod", "namespace": "default", "name": "a", "apiVersion": "v1"},
        },
    ),
    (
        "networking.k8s.io/v1",
        "IPAddress",
        "10.9.8.7",
        {"spec": {"parentRef": {"group": "", "resource": "services", "namespace": "default", "name": "a"}}},
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicy",
        "fuzz",
        {
            "spec": {
                "matchConstraints": {"resourceRules": [_EVERYWHERE]},
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"},
                    }
                ],
                "reinvocationPolicy": "Never",
            }
        },
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicyBinding",
        "fuzz",
        {"spec": {"policyName": "fuzz"}},
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema",
        "fuzz",
        {"spec": {"matchingPrecedence": 1000, "priorityLevelConfiguration": {"name": "exempt"}, "rules": []}},
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        "fuzz",
        {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}},
    ),
    (
        "apiregistration.k8s.io/v1",
        "APIService",
        "v1.storm.example.com",
        {
            "spec": {
                "group": "storm.example.com",
                "version": "v1",
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "service": {"namespace": "default", "name": "a"},
                "insecureSkipTLSVerify": True,
            }
        },
    ),
    ("v1", "Binding", "fuzz", {"target": {"kind": "Node", "name": "n"}}),
    ("policy/v1", "Eviction", "fuzz", {"deleteOptions": {"gracePeriodSeconds": 1}}),
    ("autoscaling/v1", "Scale", "fuzz", {"spec": {"replicas": 2}}),
    ("authentication.k8s.io/v1", "TokenRequest", "", {"spec": {"audiences": [], "expirationSeconds": 3600}}),
)
"""(apiVersion, kind, name, the rest) of valid objects that the conformance samples lack."""


class Shot(NamedTuple):
    """One request."""

    method: str
    target: str
    body: bytes
    media: str
    accept: str
    others: tuple[tuple[str, str], ...] = ()


class Fuzz:
    """See the module's text."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.samples = {(sample.api, sample.kind): sample.make("fuzz") for sample in SAMPLES}
        self.samples["fuzz.example.com/v1", "Widget"] = {
            "apiVersion": "fuzz.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "fuzz"},
            **WIDGET,
        }
        for api, kind, name, body in MORE:
            meta = {"metadata": {"name": name}}
            self.samples[api, kind] = {"apiVersion": api, "kind": kind, **meta, **body}
        self.samples["apiextensions.k8s.io/v1", "CustomResourceDefinition"] = WIDGETS

    def chance(self, percent: int) -> bool:
        return self.source.randrange(100) < percent

    def request(self, served: Served) -> Shot:
        """A request, mostly for something that is served."""
        source = self.source
        if self.chance(2):
            return self._noise()
        group, versions = source.choice(sorted(served.groups.items()))
        kind = source.choice(served.kinds_of(group, source.choice(versions)))
        parts = parts_of(kind)
        part = source.choice(parts) if parts and self.chance(35) else None
        name = source.choice(NAMES) if self.chance(6) else "fuzz"
        verb = source.choice(part.verbs if part else kind.verbs) if self.chance(97) else source.choice(sorted(METHODS))
        method = METHODS.get(verb, "GET")
        named = part is not None or verb not in ("create", "list", "watch", "deletecollection")
        if method == "DELETE" and self.chance(75) and not part:
            return self._fresh(kind)
        path = f"/apis/{group}/{kind.version}" if group else f"/api/{kind.version}"
        if kind.namespaced and (named or self.chance(80)):
            path += f"/namespaces/{quote(source.choice(NAMES)) if self.chance(5) else 'default'}"
        path += f"/{kind.plural}"
        if named:
            path += f"/{quote(name, safe='')}" + (f"/{part.name}" if part else "")
        media, body = self._body(method, kind, "" if part is None else part.kind)
        query = self._query(method, media)
        accept = source.choice(ACCEPTS) if self.chance(8) else JSON
        return Shot(method, path + (f"?{query}" if query else ""), body, media, accept, self._others())

    def _fresh(self, kind: Kind) -> Shot:
        """Makes the object that other requests are about, as it should be."""
        root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        path = f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
        body = self.samples.get((kind.api_version, kind.kind), {})
        return Shot("POST", path, self._encode(JSON, body), JSON, JSON)

    def _others(self) -> tuple[tuple[str, str], ...]:
        if not self.chance(3):
            return ()
        name = self.source.choice(("impersonate-user", "impersonate-group", "impersonate-extra-%", "accept-encoding"))
        return ((name, self.source.choice(("system:serviceaccount:default:x", "é", "gzip;q=x", "", "a" * 3000))),)

    def _noise(self) -> Shot:
        source = self.source
        words = ("api", "apis", "v1", "namespaces", "clusters", "root", "%2F", "%", "..", "", "é", "%00", "openapi")
        path = "/" + "/".join(source.choice(words) for _ in range(source.randrange(9)))
        method = source.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "x"))
        return Shot(method, path, b"{}", source.choice(MEDIA), source.choice(ACCEPTS))

    # -- queries -----------------------------------------------------------------------------------------------

    def _query(self, method: str, media: str) -> str:
        source = self.source
        pairs = []
        if media == APPLY and self.chance(90):
            pairs.append(("fieldManager", source.choice(("one", "two"))))
            if self.chance(70):
                pairs.append(("force", "true"))
        for _ in range(source.choice((0, 0, 1, 1, 2, 4)) if method == "GET" else source.choice((0, 0, 0, 1, 2))):
            name = source.choice(sorted(PARAMETERS))
            pairs.append((name, source.choice(PARAMETERS[name])))
        if method == "GET" and any(name == "watch" for name, _ in pairs):
            pairs.append(("timeoutSeconds", "1"))
        return urlencode(pairs)

    # -- bodies ------------------------------------------------------------------------------------------------

    def _body(self, method: str, kind: Kind, part: str) -> tuple[str, bytes]:
        source = self.source
        if method == "GET":
            return "", b""
        if method == "DELETE":
            return JSON, b"" if self.chance(70) else self._encode(JSON, self._spoilt(self._delete_options()))
        fitting = (STRATEGIC, MERGE, PATCH, APPLY) if method == "PATCH" else (JSON, JSON, YAML, PROTOBUF)
        media = source.choice(fitting) if self.chance(95) else source.choice(MEDIA)
        if self.chance(2):
            return media, source.randbytes(source.randrange(40))
        gvk = f"{kind.api_version}/{part or kind.kind}"
        if media == PROTOBUF:
            return media, self._protobuf(gvk)
        value = copy.deepcopy(self.samples.get((kind.api_version, part or kind.kind)) or FILLED.get(gvk) or {})
        if self.chance(25) and gvk in FILLED:
            self._graft(value, FILLED[gvk])
        for _ in range(source.choice((0, 1, 1, 1, 2, 3))):
            value = self._spoilt(value)
        if media == PATCH:
            value = self._operations(value)
        return media, self._encode(media, value)

    def _delete_options(self) -> Any:
        return {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 1,
            "propagationPolicy": self.source.choice(("Foreground", "Background", "Orphan")),
            "preconditions": {"uid": "x", "resourceVersion": "1"},
            "dryRun": ["All"],
        }

    def _encode(self, media: str, value: Any) -> bytes:
        if media in (YAML, APPLY) and self.chance(50):
            try:
                return yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
            except (yaml.YAMLError, ValueError, RecursionError):
                pass
        data = json.dumps(value, ensure_ascii=self.chance(50)).encode("utf-8", "surrogatepass")
        if self.chance(3):
            at = self.source.randrange(len(data) + 1)
            data = data[:at] + self.source.choice((b"", b"\0", b"{", b'"a":1,', b"\xff", b"[" * DEEPEST)) + data[at:]
        return data

    def _protobuf(self, gvk: str) -> bytes:
        body = bytearray(BODIES.get(gvk) or self.source.choice(sorted(BODIES.values())))
        for _ in range(self.source.choice((0, 1, 1, 2, 4))):
            body[self.source.randrange(len(body))] = self.source.randrange(256)
        return bytes(body[: self.source.randrange(len(body))] if self.chance(10) else body)

    def _graft(self, value: Any, filled: Any) -> None:
        """Takes some field over that Go has filled in: a field of the schema with a value of its type."""
        source = self.source
        while isinstance(value, dict) and isinstance(filled, dict) and filled:
            key = source.choice(sorted(filled))
            if key not in value or self.chance(20):
                value[key] = copy.deepcopy(filled[key])
                return
            value, filled = value[key], filled[key]
            while isinstance(value, list) and isinstance(filled, list) and value and filled:
                value, filled = source.choice(value), filled[0]

    def _spoilt(self, value: Any) -> Any:
        """The value with one place changed."""
        source = self.source
        if not isinstance(value, dict | list) or not value:
            return self._hostile()
        place, depth = value, source.randrange(1, 8)
        while True:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = source.choice(keys)
            inner = place[key]
            depth -= 1
            if depth and isinstance(inner, dict | list) and inner:
                place = inner
                continue
            match source.randrange(6):
                case 0:
                    del place[key]
                case 1 if isinstance(place, list):
                    place.append(copy.deepcopy(inner))
                case 2 if isinstance(place, dict):
                    place[str(self._hostile(LEAVES))[:300]] = inner
                case 3 if isinstance(place, list):
                    place.insert(0, self._hostile())
                case _:
                    place[key] = self._hostile()
            return value

    def _hostile(self, among: tuple[Any, ...] = (*LEAVES, *CONTAINERS)) -> Any:
        return copy.deepcopy(self.source.choice(among))

    def _operations(self, value: Any) -> list[Any]:
        """A JSON patch that sets places of an object to what they are in another."""
        source = self.source
        out: list[Any] = []
        for _ in range(source.randrange(1, 4)):
            path, place = "", value
            while isinstance(place, dict | list) and place and self.chance(75):
                key = source.choice(sorted(place)) if isinstance(place, dict) else source.randrange(len(place))
                path += "/" + str(key).replace("~", "~0").replace("/", "~1")
                place = place[key]
            verb = source.choice(("add", "replace", "remove", "test", "move", "copy"))
            if self.chance(8):
                path = source.choice(PATHS)
            out.append({"op": verb, "path": path, "from": source.choice(("/metadata", path)), "value": place})
        return self._spoilt(out) if self.chance(10) else out
