import contextlib
import copy
import json

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge
from steersman.api.patching import patch as patches
from steersman.api.patching.patch import json_patch, merge_patch


class FrozenDict(dict):
    """As the kernel's objects: a dict that cannot be changed."""

    def _refuse(self, *args, **kwargs):
        raise AssertionError("an input was changed")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse


class FrozenList(list):
    def _refuse(self, *args, **kwargs):
        raise AssertionError("an input was changed")

    __setitem__ = __delitem__ = append = extend = insert = pop = remove = sort = reverse = clear = _refuse
    __iadd__ = __imul__ = _refuse


def freeze(value):
    if isinstance(value, dict):
        return FrozenDict((key, freeze(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return FrozenList(map(freeze, value))
    return value


def pod():
    return freeze(
        {
            "metadata": {"name": "a", "resourceVersion": "7", "labels": {"app": "web"}, "finalizers": ["x", "y"]},
            "spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:2"}]},
        }
    )


# --- merge patch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [  # the examples of RFC 7386, appendix A, whose patch is an object
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_rfc_7386(document, patch, expected):
    assert merge_patch(freeze(document), freeze(patch)) == expected


def test_a_merge_copies_only_its_path():
    before = pod()
    after = merge_patch(before, {"metadata": {"labels": {"tier": "x"}}})
    assert after["metadata"]["labels"] == {"app": "web", "tier": "x"}
    assert after["spec"] is before["spec"]
    assert after["metadata"]["finalizers"] is before["metadata"]["finalizers"]
    assert type(after) is type(after["metadata"]) is type(after["metadata"]["labels"]) is dict


def test_a_merge_that_changes_nothing_gives_the_document_back():
    before = pod()
    same = {"metadata": {"labels": {"app": "web", "gone": None}, "finalizers": ["x", "y"]}, "spec": {}}
    assert merge_patch(before, same) is before
    assert merge_patch(before, {}) is before
    numbers = freeze({"a": 1, "b": [True]})
    assert merge_patch(numbers, {"a": 1}) is numbers
    assert json.dumps(merge_patch(numbers, {"a": 1.0, "b": [1]})) == '{"a": 1.0, "b": [1]}'


@pytest.mark.parametrize(
    ("patch", "told"), [([], "array"), ("x", "string"), (1, "number"), (True, "bool"), (None, "Invalid JSON Patch")]
)
def test_a_merge_patch_must_be_an_object(patch, told):
    with pytest.raises(BadRequest, match=told):
        merge_patch({"a": 1}, patch)


# --- JSON patch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/1", "value": 9}], {"a": [1, 9]}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "c~d": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/c~0d"}], {}),
        ({"~1": 1}, [{"op": "remove", "path": "/~01"}], {}),
        ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
        ({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1}}], {"a": 1}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
        ([1], [{"op": "add", "path": "/0", "value": 0}], [0, 1]),
        # kube-apiserver is more lenient than the RFC here
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-1", "value": 2}], {"a": [1, 2]}),
        ({}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
        ({}, [{"op": "copy", "from": "/a", "path": "/b"}], {"b": None}),
        ({}, [{"op": "test", "path": "/a", "value": None}, {"op": "add", "path": "/b"}], {"b": None}),
    ],
)
def test_operations(document, operations, expected):
    assert json_patch(freeze(document), freeze(operations)) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "8"},
        {"op": "test", "path": "/metadata/none", "value": 1},
        {"op": "test", "path": "/spec/containers/7", "value": 1},
        {"op": "remove", "path": "/metadata/none"},
        {"op": "remove", "path": "/metadata/finalizers/2"},
        {"op": "remove", "path": "/metadata/finalizers/-"},
        {"op": "remove", "path": "/metadata/finalizers/-3"},
        {"op": "add", "path": "/metadata/annotations/x", "value": 1},
        {"op": "add", "path": "/metadata/name/x", "value": 1},
        {"op": "add", "path": "/metadata/finalizers/3", "value": 1},
        {"op": "add", "path": "/metadata/finalizers/x", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "metadata", "value": {}},
        {"op": "add", "value": {}},
        {"op": "add", "path": None, "value": {}},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "", "value": 1},
        {"op": "replace", "path": "/metadata/finalizers/2", "value": 1},
        {"op": "move", "path": "/x"},
        {"op": "move", "from": "", "path": "/x"},
        {"op": "move", "from": "/metadata", "path": "/metadata/x"},
        {"op": "copy", "from": "/metadata/none/x", "path": "/x"},
        {"op": "increment", "path": "/x"},
        {"path": "/x"},
    ],
)
def test_an_operation_that_does_not_apply_is_422_and_changes_nothing(operation):
    before = pod()
    first = {"op": "add", "path": "/metadata/labels/x", "value": "1"}
    with pytest.raises(Invalid) as caught:
        json_patch(before, [first, operation])
    assert before == pod()
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith(
        "the server rejected our request due to an error in our request: json patch operation [1] ("
    )
    assert status["details"]["causes"][0]["field"] == "[1].path"


def test_a_failed_test_says_what_it_found():
    with pytest.raises(Invalid, match='the test failed: found "7", not "8"'):
        json_patch(pod(), [{"op": "test", "path": "/metadata/resourceVersion", "value": "8"}])


@pytest.mark.parametrize(
    "operations",
    [
        *({}, "x", 1, [1], [[]], [None]),
        *([{"op": 1, "path": "/a"}], [{"op": "add", "path": 1}], [{"op": "move", "from": [], "path": "/a"}]),
    ],
)
def test_a_malformed_patch_is_400(operations):
    with pytest.raises(BadRequest, match="error decoding patch"):
        json_patch(pod(), operations)


def test_a_test_tells_true_from_one_and_compares_numbers_by_value():
    json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}])
    for value in (True, "1", [1], {"a": 1}, None):
        with pytest.raises(Invalid):
            json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": value}])


def test_operations_copy_only_their_path():
    before = pod()
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "i:3"},
    ]
    after = json_patch(before, operations)
    assert after["spec"]["containers"][0] == {"name": "c", "image": "i:3"}
    assert after["metadata"] is before["metadata"]
    assert after["spec"]["containers"][1] is before["spec"]["containers"][1]
    assert type(after["spec"]["containers"]) is list
    assert json_patch(before, operations[:1]) is before
    assert json_patch(before, []) is before


def test_later_operations_never_write_into_the_patch_or_into_a_copy():
    value = freeze({"x": {"y": 1}})
    operations = [
        {"op": "add", "path": "/a", "value": value},
        {"op": "replace", "path": "/a/x/y", "value": 2},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "replace", "path": "/b/x/y", "value": 3},
        {"op": "add", "path": "/a/z", "value": 0},
        {"op": "move", "from": "/b/x", "path": "/c"},
        {"op": "replace", "path": "/c/y", "value": 4},
    ]
    assert json_patch(freeze({}), operations) == {"a": {"x": {"y": 2}, "z": 0}, "b": {}, "c": {"y": 4}}
    assert value == {"x": {"y": 1}}


def test_limits():
    add = {"op": "add", "path": "/a", "value": 1}
    with pytest.raises(RequestEntityTooLarge) as caught:
        json_patch({}, [add] * 10_001)
    assert caught.value.code == 413
    assert caught.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )
    assert json_patch({}, [add] * 10_000) == {"a": 1}
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(60)]
    with pytest.raises(Invalid, match="the copies of this patch add up to more than"):
        json_patch({"a": {"x": "y" * 100}}, doubling)
    nesting = [{"op": "copy", "from": "/a", "path": "/a/a"} for _ in range(200)]
    with pytest.raises(Invalid, match="nested more than 128 levels"):
        json_patch({"a": {}}, nesting)
    sinking = []
    for number in range(200):
        sinking += [{"op": "add", "path": "/t", "value": {}}, {"op": "move", "from": "/a", "path": "/t/a"}]
        sinking += [{"op": "move", "from": "/t", "path": "/a"}] if number % 2 == 0 else []
        sinking += [{"op": "move", "from": "/t", "path": "/a"}] if number % 2 else []
    with pytest.raises(Invalid, match="nested more than 128 levels"):
        json_patch({"a": {}}, sinking)
    with pytest.raises(Invalid, match="nested more than 128 levels"):
        json_patch({}, [{"op": "test", "path": "/a" * 129, "value": None}])


def test_many_additions_to_one_map_cost_no_copy_each():
    operations = [{"op": "add", "path": f"/labels/k{number}", "value": "v"} for number in range(5000)]
    run = patches._Run(freeze({"labels": {}}))
    for number, operation in enumerate(operations):
        run.apply(patches._parse(operation, number))
    assert len(run.own) == 2  # the document and its labels, copied once


# --- against other implementations ---------------------------------------------------------------------------------

# Numbers and booleans are kept apart, for the oracle holds True and 1 for equal.
scalars = st.one_of(st.none(), st.booleans(), st.integers(2, 5), st.sampled_from(["", "x"]))
keys = st.sampled_from(["a", "b", "0", "", "~", "a/b"])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)
documents = st.dictionaries(keys, values, max_size=4)


def model_merge(target, patch):
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = model_merge(target.get(key), value)
    return target


def strict(value):
    return json.dumps(value, sort_keys=True)


@given(documents, documents)
@settings(max_examples=300, deadline=None)
def test_merge_equals_the_model(document, patch):
    frozen_document, frozen_patch = freeze(document), freeze(patch)
    result = merge_patch(frozen_document, frozen_patch)
    assert strict(result) == strict(model_merge(document, patch))
    assert merge_patch(result, frozen_patch) is result
    if strict(result) == strict(document):
        assert result is frozen_document
    for key in document:
        if key not in patch:
            assert result[key] is frozen_document[key]


tokens = st.sampled_from(["a", "b", "0", "1", "2", "-", "", "~0", "a~1b"])
pointers = st.lists(tokens, min_size=1, max_size=3).map(lambda parts: "".join("/" + part for part in parts))


@st.composite
def patched(draw):
    """A document and a patch, most of whose pointers lead somewhere in the document."""
    document = draw(documents)
    found: list[tuple[str, object]] = []
    pending = [("", document)]
    while pending:
        at, value = pending.pop()
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, part in inner:
            pending.append((f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}", part))
        found += [(at, value)] if at else []
    known = st.sampled_from(sorted(at for at, _ in found)) if found else pointers
    pointer = st.one_of(known, known, pointers, st.builds(lambda at, part: f"{at}/{part}", known, tokens))
    operation = st.one_of(
        st.fixed_dictionaries({"op": st.sampled_from(["add", "replace"]), "path": pointer, "value": values}),
        st.fixed_dictionaries({"op": st.just("remove"), "path": pointer}),
        st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "from": pointer, "path": pointer}),
        st.fixed_dictionaries({"op": st.just("test"), "path": pointer, "value": values}),
        st.sampled_from(found or [("/a", 1)]).map(lambda at: {"op": "test", "path": at[0], "value": at[1]}),
    )
    return document, draw(st.lists(operation, min_size=1, max_size=4))


def lenient(operation):
    """Operations that the API server, and so this project, accepts where RFC 6902 does not."""
    if operation["op"] == "move":  # within a list, the index may name another element once the first is taken
        return operation["path"].startswith(operation["from"] + "/")
    return operation["op"] in ("replace", "copy") or (operation["op"] == "test" and operation["value"] is None)


@given(patched())
@settings(max_examples=300, deadline=None)
def test_json_patch_agrees_with_the_jsonpatch_library(case):
    document, operations = case
    frozen_document, frozen_operations = freeze(document), freeze(operations)
    try:
        theirs = jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(operations))
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError, IndexError):
        theirs = None
    try:
        ours = json_patch(frozen_document, frozen_operations)
    except ApiError as error:
        assert error.code == 422
        assert theirs is None
        return
    if theirs is None:
        assert any(map(lenient, operations))
    else:
        assert strict(ours) == strict(theirs)
    assert strict(frozen_document) == strict(document) and strict(frozen_operations) == strict(operations)


# --- any input -----------------------------------------------------------------------------------------------------

odd = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.binary(max_size=2)),
        st.sampled_from([10**400, -(2**63) - 1, "\ud800", frozenset({1}), 1j, range(3), object]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.one_of(keys, st.integers(), st.none(), st.just("\ud800")), inner, max_size=3),
    ),
    max_leaves=8,
)
odd_operation = st.fixed_dictionaries(
    {},
    optional={
        "op": st.one_of(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), odd),
        "path": st.one_of(pointers, st.text("/~01a-", max_size=6), odd),
        "from": st.one_of(pointers, odd),
        "value": odd,
    },
)


@given(documents, st.one_of(odd, st.lists(st.one_of(odd_operation, odd), max_size=3)))
@settings(max_examples=300, deadline=None)
def test_only_api_errors_come_out(document, patch):
    frozen = freeze(document)
    for apply in (merge_patch, json_patch):
        with contextlib.suppress(ApiError):
            result = apply(frozen, patch)
            json.dumps(result, allow_nan=False).encode()
    assert strict(frozen) == strict(document)


def deep(levels):
    value: object = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return {"a": value}


def test_hostile_size_depth_and_numbers_are_refused():
    cycle: dict = {}
    cycle["a"] = cycle
    wide = {"a": range(10**9)}
    for value in (deep(10**5), cycle, wide, {"a": 2**63}, {"a": float("nan")}, {"a": {1: 2}}, {"a": "\udcff"}):
        with pytest.raises(BadRequest):
            merge_patch({}, value)
        with pytest.raises(BadRequest):
            json_patch({}, [{"op": "add", "path": "/x", "value": value}])
    merge_patch({}, deep(patches.MAX_DEPTH - 1))
    with pytest.raises(BadRequest, match="the patch: /a/b~1c/1: the integer does not fit in 64 bits"):
        merge_patch({}, {"a": {"b/c": [1, 2**64]}})


def test_a_deep_document_is_no_trouble():
    document = deep(10**4)
    assert merge_patch(document, {"b": 1})["a"] is document["a"]
    assert json_patch(document, [{"op": "add", "path": "/b", "value": 1}])["a"] is document["a"]
    for operations in (
        [{"op": "test", "path": "/a", "value": deep(100)}],
        [{"op": "copy", "from": "/a", "path": "/b"}],
        [{"op": "move", "from": "/a", "path": "/b/c"}],
        [{"op": "add", "path": "/a" * 5, "value": 1}],
    ):
        with pytest.raises(Invalid):
            json_patch(document, operations)
