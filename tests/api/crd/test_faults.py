"""What schemas of custom kinds say, in kube-apiserver's words (each was told by a real one, 1.36)."""

from __future__ import annotations

import pytest

from steersman.api.crd.faults import faults
from steersman.api.schema import Schema

INT = Schema(type="integer", format="int32", minimum=1)
SPEC = Schema(
    type="object",
    fields={
        "size": INT,
        "tags": Schema(type="list", items=Schema(type="string"), list_type="set", max_items=3),
        "either": Schema(type="int-or-string"),
        "by": Schema(type="map", values=Schema(type="object", fields={"n": INT}, required=("n",))),
        "odd": Schema(type="integer", any_of=(Schema(maximum=1), Schema(minimum=5))),
    },
    required=("size",),
)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({}, ["spec.size: Required value"]),
        ({"size": None}, ["spec.size: Required value"]),
        ({"size": 0}, ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"]),
        ("x", ['spec: Invalid value: "string": spec in body must be of type object: "string"']),
        (
            {"size": 1.5},
            [
                'spec.size: Invalid value: "float64": spec.size in body must be of type int32: "float64"',
                '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.size',
            ],
        ),
        (
            {"size": 1, "either": 5.5},
            ['spec.either: Invalid value: "number": spec.either in body must be of type integer,string: "number"'],
        ),
        ({"size": 1, "tags": ["a", "b", "a", "a"]}, None),
        ({"size": 1, "by": {"k": {}}}, ["spec.by.k.n: Required value"]),
        (
            {"size": 1, "odd": 3},
            [
                '<nil>: Invalid value: "": "spec.odd" must validate at least one schema (anyOf)',
                "spec.odd: Invalid value: 3: spec.odd in body should be less than or equal to 1",
            ],
        ),
    ],
)
def test_words(value, told):
    found = [str(cause) for cause in faults(SPEC, value, "spec")]
    if told is None:
        told = ["spec.tags: Too many: 4: must have at most 3 items", 'spec.tags[2]: Duplicate value: "a"']
    assert found == told


def test_what_did_not_change_is_not_judged_again():
    assert faults(SPEC, {"size": 0, "either": 1}, "spec", old={"size": 0}) == []


def test_a_value_by_itself():
    (cause,) = faults(SPEC, {"size": "x"}, "", "status")
    assert str(cause) == 'status.size: Invalid value: "string": size in body must be of type integer: "string"'
