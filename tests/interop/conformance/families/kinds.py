"""Every kind: its whole life with every verb, and what is wrong with it told."""

from __future__ import annotations

from typing import Final

from tests.interop.conformance.samples import SAMPLES, Sample
from tests.interop.conformance.sequence import (
    APPLY,
    JSON_PATCH,
    PARTIAL,
    PARTIAL_LIST,
    STRATEGIC,
    TABLE,
    Case,
    Step,
    apply,
    close,
    delete,
    edit,
    get,
    patch,
    post,
    put,
    watch,
)

UNNAMED = {"metadata": {"labels": {"of": "kinds"}}}


def cases_of_kinds() -> list[Case]:
    """Three sequences a kind: life, apply, and forms and mistakes."""
    made = []
    for found in SAMPLES:
        slug = f"{found.plural}-{found.api.partition('/')[0].partition('.')[0]}"
        made.append(Case(f"life/{slug}", _life(found)))
        made.append(Case(f"apply/{slug}", _apply(found)))
        made.append(Case(f"mistakes/{slug}", _mistakes(found)))
    return made


def _life(kind: Sample) -> list[Step]:
    all_ = kind.collection()
    one = f"{all_}/life"
    body = kind.make("life", labels={"of": "kinds", "case": "life"})
    path, value = kind.change
    mine = f"{all_}?labelSelector=case%3Dlife"
    steps = [
        watch("w", f"{mine}&watch=true"),
        post(f"{all_}?dryRun=All", body),
        get(one),
        post(all_, body, save="a"),
        post(all_, body),
        get(one),
        get(one, accept=TABLE),
        get(one, accept=PARTIAL),
        get(mine),
        get(mine, accept=TABLE),
        get(mine, accept=PARTIAL_LIST),
        put(one, edit("a", **{path: value})),
        put(one, edit("a", **{"metadata.labels.stale": "yes"})),
        put(one, edit("a", ["metadata.resourceVersion"], **{path: value, "metadata.labels.new": "yes"})),
        patch(one, {"metadata": {"annotations": {"m": "1"}}}),
        patch(one, [{"op": "add", "path": "/metadata/labels/j", "value": "1"}], JSON_PATCH),
        patch(one, {"metadata": {"labels": {"j": None, "s": "1"}}}, STRATEGIC),
        patch(one, {"metadata": {"labels": {"s": "1"}}}, STRATEGIC),
    ]
    if kind.status is not None:
        status = f"{one}/status"
        steps += [
            get(one, save="b"),
            put(status, edit("b", status=kind.status, **{"metadata.labels.by": "status"})),
            patch(status, {"status": kind.status, "metadata": {"annotations": {"s": "1"}}}),
            get(status),
            patch(one, {"status": None}),
        ]
    if kind.scaled:
        scale = f"{one}/scale"
        steps += [get(scale, save="s"), put(scale, edit("s", **{"spec.replicas": 5})), get(one)]
        steps += [patch(scale, {"spec": {"replicas": 4}}), patch(scale, {"spec": {"replicas": -1}})]
    steps += [delete(f"{one}?dryRun=All"), delete(one), get(one), delete(one)]
    return [*steps, close("w")]


def _apply(kind: Sample) -> list[Step]:
    one = f"{kind.collection()}/applied"
    path, value = kind.change
    head = {"apiVersion": kind.api, "kind": kind.kind}
    body = kind.make("applied", labels={"a": "1", "b": "1"})
    less = kind.make("applied", labels={"a": "1"})
    other = {**head, "metadata": {"name": "applied", "labels": {"a": "2", "c": "1"}}}
    return [
        apply(one, body, save="a"),
        apply(one, body),
        apply(one, less),
        apply(one, other, "two"),
        apply(one, other, "two", force=True),
        get(one, save="b"),
        put(f"{one}?fieldManager=three", edit("b", **{path: value})),
        apply(one, body),
        apply(one, body, force=True),
        apply(one, {**head, "metadata": {"name": "applied"}}, "two"),
        delete(one),
    ]


def _mistakes(kind: Sample) -> list[Step]:
    all_ = kind.collection()
    one = f"{all_}/wrong"
    good = kind.make("wrong")
    steps = [
        post(all_, {"apiVersion": kind.api, "kind": kind.kind}),
        post(all_, kind.make("Not_A_Name")),
        post(all_, kind.make("wrong", namespace="elsewhere")),
        post(all_, kind.make("wrong", labels={"-": "x y"})),
        post(all_, kind.make("wrong", annotations={"a b": ""})),
        post(all_, {**good, "kind": "Other"}),
        post(all_, {**good, "apiVersion": "v9"}),
        post(f"{all_}?fieldValidation=Strict", {**good, "unknown": 1}),
        post(f"{all_}?fieldValidation=Ignore&dryRun=All", {**good, "unknown": 1}),
        post(f"{all_}?dryRun=All", {**good, "unknown": 1}),
        post(all_, kind.make("wrong", finalizers=["x y"])),
        post(all_, kind.make("wrong", ownerReferences=[{"kind": "Pod", "name": "p"}])),
        put(one, good),
        put(one, kind.make("other")),
        put(one, kind.make("wrong", resourceVersion="1")),
        patch(one, {"metadata": {"labels": {"a": "b"}}}),
        post(one, good),
        post(all_, good, save="a"),
        put(one, edit("a", **{"metadata.uid": "00000000-0000-4000-8000-000000000000"})),
        put(one, edit("a", **{"metadata.name": "other"})),
        patch(one, {"metadata": {"name": "other"}}),
        patch(one, {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}}),
        patch(one, {"metadata": {"resourceVersion": "1"}}),
        patch(one, [{"op": "test", "path": "/metadata/name", "value": "x"}], JSON_PATCH),
        patch(one, {"apiVersion": kind.api, "kind": kind.kind}, APPLY),
        patch(f"{one}?fieldValidation=Strict", {"unknown": 1}),
        delete(one, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "x"}}),
        delete(one),
    ]
    for field in sorted(kind.body):
        steps.append(post(all_, {**kind.make("wrong"), field: {}}))
        steps.append(post(all_, {**kind.make("wrong"), field: "text"}))
    if isinstance(kind.body.get("spec"), dict):
        for field in sorted(kind.body["spec"]):
            rest = {name: value for name, value in kind.body["spec"].items() if name != field}
            steps.append(post(f"{all_}?dryRun=All", {**kind.make("wrong"), "spec": rest}))
    return steps


CASES: Final = cases_of_kinds()
