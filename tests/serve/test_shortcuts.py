"""A server with all its shortcuts answers every sequence of requests as one without them, byte for byte.

Lists kept as bytes, specs known by their text, managed fields of a status by its shape: what differs is only the time.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator
from unittest import mock

import pytest

from steersman.api import write
from steersman.api.known import Known
from steersman.serve.lists import Lists
from tests.serve.harness import in_loop
from tests.serve.mutate import APPLY, JSON, MERGE, STRATEGIC, WIDGETS, Fuzz, Shot
from tests.serve.plane import PARTIAL_LIST, TABLE, Answer, Plane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STEPS = 1500
HOT = [
    ("v1", "Pod", "/api/v1/namespaces/default/pods"),
    ("v1", "Node", "/api/v1/nodes"),
    ("v1", "Service", "/api/v1/namespaces/default/services"),
    ("batch/v1", "Job", "/apis/batch/v1/namespaces/default/jobs"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"),
    ("events.k8s.io/v1", "Event", "/apis/events.k8s.io/v1/namespaces/default/events"),
    ("fuzz.example.com/v1", "Widget", "/apis/fuzz.example.com/v1/namespaces/default/widgets"),
]
LISTS = [
    *(path for _, _, path in HOT),
    "/api/v1/pods",
    "/api/v1/events",
    "/apis/autoscaling/v1/horizontalpodautoscalers",
    "/apis/fuzz.example.com/v2/widgets",
]
QUERIES = [
    "",
    "?labelSelector=a%3Db",
    "?fieldSelector=metadata.name%3Dfuzz",
    "?limit=1",
    "?limit=2",
    "?resourceVersion=0",
]
VALIDATION = ["", "?fieldValidation=Ignore", "?fieldValidation=Warn", "?fieldValidation=Strict", "?dryRun=All"]


@contextlib.contextmanager
def no_shortcuts() -> Iterator[None]:
    def unknown(self: Known, schema: object, value: object) -> None:
        self._table, self._text, self.section = {}, b"", None

    with (
        mock.patch.object(Lists, "get", lambda self, asked, mark: None),
        mock.patch.object(Known, "__init__", unknown),
        mock.patch.object(write, "reported", lambda *args: None),
    ):
        yield


class Story:
    """Requests of which many are like earlier ones."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.fuzz = Fuzz(self.source)
        self.past: list[Shot] = []

    def next(self, plane: Plane) -> Shot:
        source, what = self.source, self.source.randrange(100)
        if what < 20 and self.past:
            return source.choice(self.past[-25:])
        if what < 40:
            accept = source.choice((JSON, JSON, JSON, TABLE, PARTIAL_LIST))
            return Shot("GET", source.choice(LISTS) + source.choice(QUERIES), b"", "", accept)
        if what < 44:
            return self._definition()
        if what < 65:
            return self._status()
        if what < 85:
            return self._sample()
        shot = self.fuzz.request(plane.app._current()[0])
        return shot if "watch=" not in shot.target else self._sample()

    def _definition(self) -> Shot:
        source, body = self.source, copy.deepcopy(WIDGETS)
        version = body["spec"]["versions"][0]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        match source.randrange(6):
            case 0:
                return Shot("DELETE", f"{DEFINITIONS}/widgets.fuzz.example.com", b"", JSON, JSON)
            case 1:
                spec["properties"]["size"]["default"] = source.randrange(5)
            case 2:
                body["spec"]["versions"].append({**version, "name": "v2", "storage": False})
            case 3:
                spec["x-kubernetes-preserve-unknown-fields"] = True
            case 4:
                spec.pop("x-kubernetes-validations")
        if source.randrange(2):
            return Shot("POST", DEFINITIONS, json.dumps(body).encode(), JSON, JSON)
        patch = json.dumps({"spec": body["spec"]}).encode()
        return Shot("PATCH", f"{DEFINITIONS}/widgets.fuzz.example.com", patch, MERGE, JSON)

    def _status(self) -> Shot:
        """A status of one of several managers, or labels between two of them."""
        source = self.source
        api, kind, path = source.choice(HOT[:4])
        if source.randrange(6) == 0:
            labels = {"metadata": {"labels": {"a": source.choice("bcd")}}}
            return Shot("PATCH", f"{path}/fuzz", json.dumps(labels).encode(), MERGE, JSON)
        flag = source.choice(("True", "False"))
        parts = {
            "Pod": {
                "phase": source.choice(("Pending", "Running")),
                "podIPs": [{"ip": ip} for ip in source.sample(("10.0.0.1", "fd00::1"), source.randrange(3))],
                "message": source.choice("mn"),
            },
            "Node": {"capacity": {"cpu": source.choice("12")}, "nodeInfo": {"kernelVersion": source.choice("ab")}},
            "Service": {"loadBalancer": {"ingress": [{"ip": source.choice(("1.2.3.4", "1.2.3.5"))}]}},
            "Job": {"active": source.randrange(3), "failed": source.randrange(2)},
        }[kind]
        types = source.sample(("Ready", "Initialized", "Slow"), source.randrange(3))
        parts["conditions"] = [{"type": name, "status": flag, "lastTransitionTime": None} for name in types]
        status = {name: parts[name] for name in source.sample(sorted(parts), source.randrange(1, len(parts) + 1))}
        media = source.choice((STRATEGIC, MERGE, APPLY))
        query = f"?fieldManager={source.choice(('kubelet', 'scheduler', 'other'))}" + "&force=true" * (media == APPLY)
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": "fuzz"}} if media == APPLY else {}
        return Shot("PATCH", f"{path}/fuzz/status{query}", json.dumps({**body, "status": status}).encode(), media, JSON)

    def _sample(self) -> Shot:
        """A valid object, in other words, under other names, with fields nobody knows."""
        source = self.source
        api, kind, path = source.choice(HOT)
        body = copy.deepcopy(self.fuzz.samples[api, kind])
        body["metadata"] = {"name": source.choice(("fuzz", "fuzz", "other"))}
        if source.randrange(3) == 0:
            body["metadata"]["labels"] = {"a": source.choice("bc")}
        if "spec" in body:
            body["spec"] = dict(source.sample(list(body["spec"].items()), len(body["spec"])))
            if source.randrange(3) == 0:
                body["spec"]["unknown"] = 1
        query, data = source.choice(VALIDATION), json.dumps(body).encode()
        place = f"{path}/{body['metadata']['name']}"
        if source.randrange(8) == 0:
            data = data.replace(b'"spec": {', b'"spec": {"twice": 1, "twice": 1, ', 1)
        match source.randrange(6):
            case 0:
                return Shot("PUT", place + query, data, JSON, JSON)
            case 1:
                return Shot("PATCH", f"{place}{query or '?a'}&fieldManager=one&force=true", data, APPLY, JSON)
            case 2:
                return Shot("DELETE", place, b"", JSON, JSON)
        return Shot("POST", path + query, data, JSON, JSON)


async def fired(plane: Plane, shot: Shot) -> Answer:
    others = {"audit_id": "same", **{name.replace("-", "_"): value for name, value in shot.others}}
    return await plane.ask(shot.method, shot.target, shot.body, content_type=shot.media, accept=shot.accept, **others)


@pytest.mark.parametrize("seed", [1, 2])
@in_loop
async def test_every_answer_is_that_of_a_server_without_them(seed):
    quick, story, hits = Plane(), Story(seed), [0, 0, 0]
    with no_shortcuts():
        plain = Plane()
    get, reported, known = Lists.get, write.reported, Known.__init__

    def counted(which: int, found: object) -> object:
        hits[which] += found is not None
        return found

    def look(self: Known, schema: object, value: object) -> None:
        known(self, schema, value)
        counted(1, self.section)

    with (
        mock.patch.object(Lists, "get", lambda self, asked, mark: counted(0, get(self, asked, mark))),
        mock.patch.object(Known, "__init__", look),
        mock.patch.object(write, "reported", lambda *args: counted(2, reported(*args))),
    ):
        for step in range(STEPS):
            shot = (
                Shot("POST", DEFINITIONS, json.dumps(WIDGETS).encode(), JSON, JSON) if not step else story.next(quick)
            )
            story.past.append(shot)
            quick.time = plain.time = quick.time + story.source.choice((0, 0, 1_000_000))
            if step % 50 == 49:  # as after a restart
                for obj in quick.backend.store.objects():
                    obj.standing = None
            one = await fired(quick, shot)
            with no_shortcuts():
                two = await fired(plain, shot)
            assert (one.code, one.headers, one.body) == (two.code, two.headers, two.body), (step, shot)
    assert min(hits) > 5, hits
