"""Random sequences of applies and other writes over kinds with every sort of list and map, from a seed.

`scripts/record_applies.py` plays them against a real kube-apiserver, whose structured-merge-diff thereby is the oracle;
`test_recorded_applies.py` plays what was recorded here. Values come from small pools, so that managers agree, disagree
and take back; nulls, empty values, other spellings of a number and items that are there twice are among them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Final

from tests.interop.conformance.play import Transport
from tests.interop.conformance.sequence import JSON, Case, Json, Step, apply, edit, get, patch, post, put

STEPS: Final = 9
MANAGERS: Final = ("one", "one", "two", "two", "three")
LABELS: Final = {"app": "a"}
CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT: Final = {"type": "string"}
TAGS: Final = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
ITEM: Final = {
    "type": "object",
    "properties": {"name": TEXT, "v": {"type": "integer"}, "tags": TAGS},
    "required": ["name"],
}
GROUP: Final = "applies.example.com"
SHAPE: Final = {
    "size": {"type": "integer"},
    "text": TEXT,
    "nullable": {"type": "string", "nullable": True},
    "set": TAGS,
    "items": {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    "atoms": {"type": "array", "items": TEXT},
    "map": {"type": "object", "additionalProperties": TEXT},
    "block": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
    "deep": {
        "type": "object",
        "properties": {"a": TEXT, "b": {"type": "object", "properties": {"c": TEXT, "d": TEXT}}},
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": SHAPE},
                            "status": {"type": "object", "properties": {n: SHAPE[n] for n in ("text", "items", "set")}},
                        },
                    }
                },
            }
        ],
    },
}
Random = random.Random
Maker = Callable[[Random], Json]


def prepare(server: Transport) -> None:
    """Declares the custom kind."""
    code, _, text = server.ask("POST", CRD, {"content-type": JSON}, json.dumps(DEFINITION).encode(), "admin")
    assert code in (201, 409), text
    server.pause(5.0)


# -- values ----------------------------------------------------------------------------------------------------


def some(draw: Random, makers: Mapping[str, Maker], rate: float = 0.5) -> dict[str, Json]:
    """An object with some of these fields; now and then one is null or empty."""
    out: dict[str, Json] = {}
    for name, make in makers.items():
        if draw.random() < rate:
            chance = draw.random()
            made = make(draw)
            hollow = type(made)() if isinstance(made, (dict, list)) else made
            out[name] = None if chance < 0.04 else hollow if chance < 0.09 else made
    return out


def one_of(*choices: Json) -> Maker:
    return lambda draw: draw.choice(choices)


def few(*choices: Json) -> Maker:
    """A list of some of these, in any order."""
    return lambda draw: draw.sample(choices, draw.randint(0, min(3, len(choices))))


def of_names(key: str, names: tuple[Json, ...], rest: Mapping[str, Maker], rate: float = 0.6) -> Maker:
    """A list of objects with different keys."""

    def make(draw: Random) -> Json:
        return [{key: name, **some(draw, rest, rate)} for name in draw.sample(names, draw.randint(1, len(names) - 1))]

    return make


def text_map(*names: str) -> Maker:
    return lambda draw: some(draw, dict.fromkeys(names, one_of("1", "2")))


def metadata(draw: Random) -> dict[str, Json]:
    makers = {
        "labels": text_map("app", "x", "y"),
        "annotations": text_map("n", "m"),
        "finalizers": few("e.io/a", "e.io/b"),
    }
    return {"name": "a", **some(draw, makers, 0.25)}


THING: Final[Mapping[str, Maker]] = {
    "size": one_of(1, 2),
    "text": one_of("a", "b"),
    "nullable": one_of("a", None),
    "set": few("a", "b", "c", "d"),
    "items": of_names("name", ("a", "b", "c", "d"), {"v": one_of(1, 2), "tags": few("x", "y")}),
    "atoms": few("a", "b", "c"),
    "map": text_map("a", "b", "c"),
    "block": text_map("a", "b"),
    "deep": lambda draw: some(draw, {"a": one_of("1", "2"), "b": text_map("c", "d")}),
    "free": lambda draw: some(draw, {"a": one_of("1", 2, {}), "b": text_map("c", "d"), "l": few(1, 2)}),
}
STATUS: Final = {name: THING[name] for name in ("text", "items", "set")}
AMOUNTS: Final = lambda draw: some(draw, {"cpu": one_of("1", "1000m", "500m"), "memory": one_of("1Gi", "1024Mi")})  # noqa: E731
CONTAINER: Final[Mapping[str, Maker]] = {
    "args": few("x", "y"),
    "env": of_names("name", ("A", "B", "C"), {"value": one_of("1", "2")}),
    "ports": lambda draw: draw.sample(
        [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 81, "name": "p"}], 2
    ),
    "resources": lambda draw: some(draw, {"requests": AMOUNTS}, 0.8),
    "securityContext": lambda draw: some(draw, {"privileged": one_of(False), "runAsUser": one_of(1, 2)}),
    "volumeMounts": of_names("mountPath", ("/a", "/b"), {"name": lambda draw: "v"}, 1.0),
}
VOLUMES: Final = [{"name": "v", "emptyDir": {}}]


def pod_spec(draw: Random) -> dict[str, Json]:
    containers = [
        {"name": name, "image": draw.choice(("i:1", "i:2")), **some(draw, CONTAINER, 0.3)}
        for name in draw.sample(("c", "d", "e"), draw.randint(1, 2))
    ]
    more = {
        "tolerations": few({"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}),
        "nodeSelector": text_map("n", "m"),
        "hostAliases": of_names("ip", ("192.0.2.1", "192.0.2.2"), {"hostnames": few("h", "i")}, 1.0),
        "terminationGracePeriodSeconds": one_of(5, 30),
        "imagePullSecrets": few({"name": "s"}, {"name": "t"}),
    }
    return {"containers": containers, "volumes": VOLUMES, **some(draw, more, 0.25)}


def deployment_spec(draw: Random) -> dict[str, Json]:
    more = {
        "replicas": one_of(1, 2),
        "strategy": one_of({"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, {}),
        "paused": one_of(True, False),
        "minReadySeconds": one_of(1, 2),
    }
    template = {"metadata": {"labels": LABELS}, "spec": pod_spec(draw)}
    return {"selector": {"matchLabels": LABELS}, "template": template, **some(draw, more, 0.4)}


def service_spec(draw: Random) -> dict[str, Json]:
    ports = [
        {"name": f"{protocol or 'tcp'}-{port}".lower(), "port": port, **({"protocol": protocol} if protocol else {})}
        for port, protocol in draw.sample(
            [(80, "TCP"), (80, "UDP"), (81, ""), (82, ""), (82, "UDP")], draw.randint(1, 3)
        )
    ]
    for port in ports:
        port |= some(draw, {"targetPort": one_of(80, "web")}, 0.4)
    more = {"selector": text_map("app", "x"), "externalIPs": few("192.0.2.1"), "publishNotReadyAddresses": one_of(True)}
    return {"clusterIP": "None", "ports": ports, **some(draw, more, 0.4)}


def bare_pod(draw: Random) -> dict[str, Json]:
    """What may be changed of a pod."""
    containers = [{"name": name, "image": draw.choice(("i:1", "i:2"))} for name in ("c", "d")]
    return {"containers": containers, **some(draw, {"activeDeadlineSeconds": one_of(9)}, 0.3)}


def pod_status(draw: Random) -> dict[str, Json]:
    phases = {"phase": one_of("Pending", "Running"), "podIPs": of_names("ip", ("192.0.2.1", "2001:db8::1"), {})}
    return {**some(draw, phases), **{name: item for name, item in conditions(draw).items() if name == "conditions"}}


def conditions(draw: Random) -> dict[str, Json]:
    rest = {"status": one_of("True", "False"), "reason": one_of("R", "S"), "message": one_of("m", "")}
    return some(draw, {"conditions": of_names("type", ("A", "B", "C"), {**rest}, 1.0), "replicas": one_of(1, 2)}, 0.8)


def parts(make: Maker, part: str = "spec") -> Maker:
    return lambda draw: {part: make(draw)}


class Sort:
    """A kind that sequences are about."""

    def __init__(self, api_version: str, kind: str, plural: str, body: Maker, status: Maker | None = None) -> None:
        self.head = {"apiVersion": api_version, "kind": kind}
        root = "/api/v1" if "/" not in api_version else f"/apis/{api_version}"
        self.all = f"{root}/namespaces/$(ns)/{plural}"
        self.one = f"{self.all}/a"
        self.body, self.status = body, status

    def config(self, draw: Random) -> dict[str, Json]:
        return {**self.head, "metadata": metadata(draw), **self.body(draw)}


REFERENCES: Final = few({"name": "s"}, {"name": "t"})
ACCOUNT: Final[Mapping[str, Maker]] = {
    "secrets": REFERENCES,
    "imagePullSecrets": REFERENCES,
    "automountServiceAccountToken": one_of(True, False),
}
SORTS: Final = {
    "account": Sort("v1", "ServiceAccount", "serviceaccounts", lambda draw: some(draw, ACCOUNT)),
    "configmap": Sort("v1", "ConfigMap", "configmaps", lambda draw: some(draw, {"data": text_map("a", "b", "c")}, 0.9)),
    "deployment": Sort("apps/v1", "Deployment", "deployments", parts(deployment_spec), conditions),
    "pod": Sort("v1", "Pod", "pods", parts(bare_pod), pod_status),
    "service": Sort("v1", "Service", "services", parts(service_spec)),
    "thing": Sort(
        f"{GROUP}/v1",
        "Thing",
        "things",
        parts(lambda draw: some(draw, THING, 0.4)),
        lambda draw: some(draw, STATUS, 0.7),
    ),
}


# -- sequences -------------------------------------------------------------------------------------------------


def step(draw: Random, sort: Sort) -> list[Step]:
    """One or two requests."""
    chance, manager, force = draw.random(), draw.choice(MANAGERS), draw.random() < 0.35
    if chance < 0.6:
        return [apply(sort.one, sort.config(draw), manager, force=force)]
    if chance < 0.72 and sort.status is not None:
        config = {**sort.head, "metadata": {"name": "a"}, "status": sort.status(draw)}
        return [apply(f"{sort.one}/status", config, manager, force=force)]
    if chance < 0.78 and sort.one.endswith("/deployments/a"):
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
        if draw.random() < 0.5:
            return [patch(f"{sort.one}/scale?fieldManager=hpa", {"spec": {"replicas": draw.choice((1, 2, 3))}})]
        return [
            apply(f"{sort.one}/scale", {**scale, "spec": {"replicas": draw.choice((1, 2, 3))}}, manager, force=force)
        ]
    given = sort.config(draw)
    del given["metadata"]["name"], given["apiVersion"], given["kind"]
    if chance < 0.9:
        return [patch(f"{sort.one}?fieldManager={draw.choice(('u', 'one'))}", given)]
    changes = {name: value for name, value in given.items() if name != "metadata"}
    changes |= {f"metadata.{name}": value for name, value in given["metadata"].items() if name != "finalizers"}
    return [get(sort.one, save="a"), put(f"{sort.one}?fieldManager=u", edit("a", **changes))]


def sequence(name: str, number: int) -> Case:
    """The sequence of this number about a kind."""
    draw, sort = Random(f"{name} {number}"), SORTS[name]
    config = sort.config(draw)
    first = apply(sort.one, config) if draw.random() < 0.6 else post(f"{sort.all}?fieldManager=u", config)
    steps = [first]
    while len(steps) < STEPS:
        steps += step(draw, sort)
    return Case(f"sma/{name}-{number}", [*steps, get(sort.one)])


def told(answers: list[Json]) -> list[Json]:
    """What is kept of a sequence's answers in normal form."""
    return [_kept(answer["code"], answer["body"]) for answer in answers]


def _kept(code: int, body: Json) -> Json:
    """Of an object what it says and who owns what; of a refusal whether it is a conflict, and of what: what else is
    not valid is told elsewhere (tests/interop/conformance)."""
    if not isinstance(body, dict) or body.get("kind") == "Status":
        return [409, body["message"]] if code == 409 else [400 if code == 500 else code]
    meta = body["metadata"]
    told = ("annotations", "finalizers", "generation", "labels", "resourceVersion")
    owners = [
        [
            entry["manager"],
            entry["operation"],
            entry.get("subresource", ""),
            "time" in entry,
            _timeless(entry["fieldsV1"]),
        ]
        for entry in meta.get("managedFields", ())
    ]
    rest = {name: _timeless(value) for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
    return [code, {name: meta[name] for name in told if name in meta}, owners, rest]


def _timeless(value: Json) -> Json:
    """Without times that were never set, which are null there and absent here."""
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if not isinstance(value, dict):
        return value
    unset = (None, {})
    return {k: _timeless(v) for k, v in value.items() if not (k.endswith("Time") and v in unset)}
