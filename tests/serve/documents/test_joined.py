"""What other servers describe, joined to our document: names that are taken, and what is no document."""

import pytest

from steersman.serve.documents.joined import Unreadable, joined

OURS = {"paths": {"/a": {}}, "definitions": {"M": {"type": "object"}, "M_v2": {"type": "string"}}}


def spec(definitions, ref="#/definitions/M", path="/apis/g/v1/things"):
    return {"paths": {path: {"get": {"schema": {"$ref": ref}}}}, "definitions": definitions}


def test_a_definition_that_means_the_same_is_one():
    assert joined(OURS, spec({"M": {"type": "object"}}), "g", "v1")["definitions"] == OURS["definitions"]


def test_a_name_that_is_taken_gets_a_number():
    made = joined(OURS, spec({"M": {"type": "object", "items": {"$ref": "#/definitions/M"}}}), "g", "v1")
    assert made["definitions"]["M_v3"] == {"type": "object", "items": {"$ref": "#/definitions/M_v3"}}
    assert made["paths"]["/apis/g/v1/things"]["get"]["schema"] == {"$ref": "#/definitions/M_v3"}
    assert made["definitions"]["M"] == OURS["definitions"]["M"]


@pytest.mark.parametrize("path", ["/apis/g/v10/things", "/apis/h/v1/things", "/api/v1/pods", "/a"])
def test_paths_of_others_do_not_count(path):
    made = joined(OURS, spec({"M": {}}, path=path), "g", "v1")
    assert made["paths"] == OURS["paths"] and made["definitions"] == OURS["definitions"]


def nested(levels):
    value = {}
    for _ in range(levels):
        value = {"items": value}
    return value


@pytest.mark.parametrize(
    "theirs",
    [
        None,
        [],
        {"paths": []},
        spec({}),
        spec({"M": 1}),
        spec({"M": nested(300)}),
        {"paths": {"/apis/g/v1/x": {"parameters": [{"$ref": "#/parameters/no"}]}}},
    ],
)
def test_what_is_no_document_is_refused(theirs):
    with pytest.raises(Unreadable):
        joined(OURS, theirs, "g", "v1")
