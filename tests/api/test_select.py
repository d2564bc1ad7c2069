"""The matching rules and the beginnings of the messages are those of apimachinery v0.36.0."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import field_select, label_select
from steersman.api.errors import ApiError, BadRequest, Invalid
from steersman.api.select import (
    FieldSelector,
    LabelSelector,
    NodeSelector,
    first_untolerated,
    label_selector_causes,
    tolerates,
)

# --- label selectors: text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("", [{}, {"a": "b"}], []),
        (" ", [{}], []),
        ("a=b", [{"a": "b"}, {"a": "b", "c": "d"}], [{}, {"a": ""}, {"a": "c"}]),
        ("a==b", [{"a": "b"}], [{}, {"a": "c"}]),
        ("a!=b", [{}, {"a": "c"}], [{"a": "b"}]),
        ("a", [{"a": ""}, {"a": "x"}], [{}]),
        ("!a", [{}], [{"a": ""}]),
        (" a  in ( b , c ) ", [{"a": "b"}, {"a": "c"}], [{}, {"a": ""}, {"a": "d"}]),
        ("a notin (b,c)", [{}, {"a": "d"}], [{"a": "b"}, {"a": "c"}]),
        ("a in ()", [{"a": ""}], [{}, {"a": "x"}]),
        ("a in (b,,)", [{"a": ""}, {"a": "b"}], [{}]),
        ("a=", [{"a": ""}], [{}, {"a": "x"}]),
        ("in in (in,notin)", [{"in": "notin"}], [{"in": "x"}]),
        ("a>5", [{"a": "6"}, {"a": "+7"}], [{}, {"a": "5"}, {"a": "x"}, {"a": "9" * 30}]),
        ("a<5", [{"a": "4"}, {"a": "-9"}], [{}, {"a": "5"}, {"a": ""}]),
        ("x/y=1,!z,t in (u)", [{"x/y": "1", "t": "u"}], [{"x/y": "1", "t": "u", "z": ""}, {"t": "u"}]),
        ("a=1,a=2", [], [{"a": "1"}, {"a": "2"}]),
    ],
)
def test_label_expressions(text, good, bad):
    selector = LabelSelector.parse(text)
    assert all(map(selector.matches, good))
    assert not any(map(selector.matches, bad))
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a=b,", "found '', expected: identifier after ','", 5),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", 3),
        ("a in b", "unable to parse requirement: found 'b' expected: '('", 6),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'", 8),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'", 9),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier", 9),
        ("a=b c", "found 'c', expected: ',' or 'end of string'", 5),
        ("!a=b", "found '=', expected: ',' or 'end of string'", 3),
        (",a", "found ',', expected: !, identifier, or 'end of string'", 1),
        ("a==,,", "found ',', expected: identifier after ','", 5),
        ("a=(", "unable to parse requirement: found '(', expected: identifier", 3),
        ("!!a", "unable to parse requirement: found '!', expected: identifier", 2),
        ("-a", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of', 1),
        ("a=-b", 'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be', 1),
        ("a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators", 1),
    ],
)
def test_wrong_label_expressions_name_position_and_remedy(text, message, position):
    with pytest.raises(BadRequest) as caught:
        LabelSelector.parse(text)
    assert caught.value.code == 400
    assert caught.value.message.startswith(message)
    assert f"(at character {position} of " in caught.value.message
    assert '"key in (a,b)"' in caught.value.message


def test_equalities_are_what_an_index_can_use():
    selector = LabelSelector.parse("c in (x),a=1,b in (y,z),!d,e==2,f!=3")
    assert selector.equalities == (("a", "1"), ("c", "x"), ("e", "2"))
    assert str(selector) == "a=1,b in (y,z),c in (x),!d,e==2,f!=3"
    assert LabelSelector.everything().empty and LabelSelector.everything().matches(None)
    assert not LabelSelector.nothing().empty and not LabelSelector.nothing().matches({"a": "b"})


def test_selectors_are_values():
    one, other = LabelSelector.parse("b=1,a in (y,x)"), LabelSelector.parse("a in (x,y), b=1")
    assert one == other and len({one, other}) == 1
    with pytest.raises(AttributeError):
        one.never = True


def test_limits_of_label_expressions():
    for text in ("a" * (label_select.MAX_LENGTH + 1), ",".join(["a"] * 1001), f"a in ({',' * 10_001})"):
        with pytest.raises(BadRequest, match="at most"):
            LabelSelector.parse(text)
    with pytest.raises(BadRequest):
        LabelSelector.parse(None)


# --- label selectors: object ---------------------------------------------------------------------------------------


def test_label_selector_objects():
    selector = LabelSelector.compile(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "env", "operator": "NotIn", "values": ["test"]},
                {"key": "x", "operator": "Exists"},
                {"key": "y", "operator": "DoesNotExist", "values": []},
            ],
        }
    )
    assert str(selector) == "app=web,env notin (test),tier in (a,b),x,!y"
    assert selector.matches({"app": "web", "tier": "a", "x": ""})
    assert not selector.matches({"app": "web", "tier": "a"})
    assert LabelSelector.compile(None) == LabelSelector.nothing()
    assert LabelSelector.compile({}) == LabelSelector.everything()


@pytest.mark.parametrize(
    ("selector", "field", "message"),
    [
        ([], "s", "Invalid value: []: must be an object"),
        ({"matchLabels": 1}, "s.matchLabels", "Invalid value: 1: must be an object"),
        ({"matchLabels": {"a": 1}}, "s.matchLabels", "Invalid value: 1: the value of 'a' must be text"),
        ({"matchLabels": {"a": "-"}}, "s.matchLabels", 'Invalid value: "-": a valid label must be'),
        ({"matchExpressions": {}}, None, None),
        ({"matchExpressions": "x"}, "s.matchExpressions", 'Invalid value: "x": must be a list'),
        ({"matchExpressions": [1]}, "s.matchExpressions[0]", "Invalid value: 1: must be an object"),
        ({"matchExpressions": [{}]}, "s.matchExpressions[0].key", "Invalid value: null: must be text"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "s.matchExpressions[0].values",
            "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            "s.matchExpressions[0].values",
            "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            "s.matchExpressions[0].operator",
            'Invalid value: "Gt": not a valid selector operator',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "-"]}]},
            "s.matchExpressions[0].values[1]",
            'Invalid value: "-": a valid label must be',
        ),
    ],
)
def test_wrong_label_selector_objects_name_the_field(selector, field, message):
    causes = label_selector_causes(selector, "s")
    if field is None:
        assert causes == []  # an empty object in place of a list holds nothing
        return
    assert causes[0].field == field
    assert causes[0].message.startswith(message)
    with pytest.raises(Invalid) as caught:
        LabelSelector.compile(selector, "s")
    assert caught.value.causes == tuple(causes)


# --- field selectors -----------------------------------------------------------------------------------------------

POD_FIELDS = {name: name for name in ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase")}
POD_FIELDS["spec.host"] = "spec.nodeName"


def test_field_selectors():
    selector = FieldSelector.parse("status.phase!=Running,spec.host==n1,metadata.name=a", POD_FIELDS)
    assert str(selector) == "metadata.name=a,spec.nodeName=n1,status.phase!=Running"
    assert selector.equalities == (("metadata.name", "a"), ("spec.nodeName", "n1"))
    assert selector.required("spec.nodeName") == "n1" and selector.required("status.phase") is None
    pod = {"metadata.name": "a", "spec.nodeName": "n1", "status.phase": "Pending"}
    assert selector.matches(pod.get)
    assert not selector.matches({**pod, "status.phase": "Running"}.get)
    assert not selector.matches({**pod, "spec.nodeName": None}.get)


def test_field_values_are_compared_as_text():
    selector = FieldSelector.parse("spec.unschedulable=true,n=3,gone=", ["spec.unschedulable", "n", "gone"])
    assert selector.matches({"spec.unschedulable": True, "n": 3}.get)
    assert not selector.matches({"spec.unschedulable": False, "n": 3}.get)


def test_field_escapes():
    selector = FieldSelector.parse(r"a=x\,y\=z\\", ["a"])
    assert selector.terms[0].value == "x,y=z\\"
    assert FieldSelector.parse(str(selector), ["a"]) == selector
    assert FieldSelector.parse(",,", []) == FieldSelector.parse("") == FieldSelector()
    assert FieldSelector().empty and FieldSelector().matches({}.get)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", "invalid selector: 'foo'; can't understand 'foo' (at character 1 of"),
        ("a=b,foo", "invalid selector: 'a=b,foo'; can't understand 'foo' (at character 5 of"),
        ("a=b\\c", "invalid field selector: invalid escape sequence: \\c (at character 4 of"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\ (at character 4 of"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61 (at character 4 of"),
        ("b=c", 'field label not supported: b (use one of "a")'),
    ],
)
def test_wrong_field_selectors(text, message):
    with pytest.raises(BadRequest) as caught:
        FieldSelector.parse(text, ["a"])
    assert caught.value.message.startswith(message)


def test_unsupported_field_of_a_kind_with_metadata_fields_only():
    with pytest.raises(BadRequest) as caught:
        FieldSelector.parse("spec.x=1")
    assert caught.value.message == (
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


def test_limits_of_field_selectors():
    for text in ("a" * (field_select.MAX_LENGTH + 1), "a=b," * 1001):
        with pytest.raises(BadRequest, match="at most"):
            FieldSelector.parse(text, ["a"])


# --- node selectors ------------------------------------------------------------------------------------------------


def node_selector(*terms):
    return NodeSelector.compile({"nodeSelectorTerms": list(terms)})


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def test_node_terms_are_alternatives_of_conjunctions():
    zone = expression("zone", "In", "a", "b")
    selector = node_selector(
        {"matchExpressions": [zone, expression("gpu", "Exists")]},
        {"matchFields": [expression("metadata.name", "In", "n9")]},
    )
    assert selector.matches({"zone": "a", "gpu": ""}, "n1")
    assert not selector.matches({"zone": "a"}, "n1")
    assert selector.matches(None, "n9")
    assert not node_selector(
        {"matchExpressions": [zone], "matchFields": [expression("metadata.name", "NotIn", "n1")]}
    ).matches({"zone": "a"}, "n1")


@pytest.mark.parametrize(
    ("operator", "values", "good", "bad"),
    [
        ("In", ["x", "y"], {"a": "x"}, {}),
        ("NotIn", ["x"], {}, {"a": "x"}),
        ("Exists", [], {"a": ""}, {}),
        ("DoesNotExist", [], {}, {"a": ""}),
        ("Gt", ["3"], {"a": "4"}, {"a": "3"}),
        ("Lt", ["3"], {"a": "-4"}, {"a": "three"}),
    ],
)
def test_node_operators(operator, values, good, bad):
    selector = node_selector({"matchExpressions": [expression("a", operator, *values)]})
    assert selector.matches(good, "n") and not selector.matches(bad, "n")


def test_empty_node_terms_match_nothing():
    assert not node_selector({}).matches({"a": "b"}, "n")
    assert not node_selector({"matchExpressions": [], "matchFields": None}).matches({}, "n")
    assert not node_selector().matches({}, "n")


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        (None, "n.nodeSelectorTerms"),
        ({"nodeSelectorTerms": "x"}, "n.nodeSelectorTerms"),
        ({"nodeSelectorTerms": [1]}, "n.nodeSelectorTerms[0]"),
        ({"nodeSelectorTerms": [{"matchFields": 1}]}, "n.nodeSelectorTerms[0].matchFields"),
        (
            {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "Near", "b")]}]},
            "n.nodeSelectorTerms[0].matchExpressions[0].operator",
        ),
        (
            {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "Gt", "b")]}]},
            "n.nodeSelectorTerms[0].matchExpressions[0].values[0]",
        ),
        (
            {"nodeSelectorTerms": [{"matchFields": [expression("spec.x", "In", "b")]}]},
            "n.nodeSelectorTerms[0].matchFields[0].key",
        ),
        (
            {"nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "b", "c")]}]},
            "n.nodeSelectorTerms[0].matchFields[0].values",
        ),
        (
            {"nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "Exists")]}]},
            "n.nodeSelectorTerms[0].matchFields[0].operator",
        ),
    ],
)
def test_wrong_node_selectors_name_the_field_or_match_nothing(selector, field):
    with pytest.raises(Invalid) as caught:
        NodeSelector.compile(selector, "n")
    assert caught.value.causes[0].field == field
    assert not NodeSelector.compile(selector, lenient=True).matches({"a": "b"}, "b")


def test_a_wrong_term_leaves_the_others_when_lenient():
    wrong = {"matchExpressions": [expression("a", "Near")]}
    right = {"matchExpressions": [expression("a", "Exists")]}
    selector = NodeSelector.compile({"nodeSelectorTerms": [wrong, right]}, lenient=True)
    assert selector.matches({"a": ""}, "n")


# --- taints --------------------------------------------------------------------------------------------------------

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": ""}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Equal"}, False),
        ({"key": "k", "operator": "Near", "value": "v"}, False),
        ({}, False),
    ],
)
def test_tolerations(toleration, expected):
    assert tolerates([{"key": "zzz"}, toleration], TAINT) is expected


def test_a_taint_without_a_value_is_equal_to_the_empty_value():
    assert tolerates([{"key": "k"}], {"key": "k", "effect": "NoSchedule"})
    assert not tolerates(None, TAINT)


@pytest.mark.parametrize(
    ("operator", "bound", "found", "expected"),
    [
        *(("Gt", "5", "6", True), ("Gt", "5", "5", False), ("Lt", "5", "4", True), ("Lt", "-5", "-6", True)),
        *(("Lt", "05", "4", False), ("Gt", "5", "+6", False), ("Gt", "x", "6", False), ("Gt", "5", "", False)),
        ("Gt", "5", "9" * 19, False),
    ],
)
def test_comparing_tolerations_are_off_unless_asked_for(operator, bound, found, expected):
    toleration = {"key": "k", "operator": operator, "value": bound}
    taint = {"key": "k", "value": found, "effect": "NoSchedule"}
    assert tolerates([toleration], taint, comparisons=True) is expected
    assert not tolerates([toleration], taint)


def test_first_untolerated_passes_over_preferences():
    soft, hard = {"key": "s", "effect": "PreferNoSchedule"}, {"key": "h", "effect": "NoExecute"}
    assert first_untolerated([soft, TAINT, hard], [{"key": "k", "value": "v"}]) == hard
    assert first_untolerated([soft], None) is None
    assert first_untolerated(None, None) is None


# --- any input -----------------------------------------------------------------------------------------------------

MEMBERS = ["key", "operator", "values", "matchLabels", "matchExpressions", "matchFields", "nodeSelectorTerms"]

odd = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.integers(),
                st.text(max_size=3),
                st.sampled_from(MEMBERS),
            ),
            st.one_of(inner, st.sampled_from(["In", "Gt", "Exists", "metadata.name", "a", "1"])),
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.one_of(st.text("ab1,=!()<> \t-/\x00é.", max_size=20), st.text(max_size=20), odd))
@settings(max_examples=500, deadline=None)
def test_only_api_errors_come_out_of_expressions(text):
    for parse in (LabelSelector.parse, FieldSelector.parse, lambda given: FieldSelector.parse(given, ["a", "b"])):
        with contextlib.suppress(ApiError):
            selector = parse(text)
            selector.matches({"a": "1"} if isinstance(selector, LabelSelector) else {"a": "1"}.get)


@given(odd)
@settings(max_examples=500, deadline=None)
def test_only_api_errors_come_out_of_objects(value):
    for compile in (LabelSelector.compile, lambda given: NodeSelector.compile({"nodeSelectorTerms": [given]})):
        with contextlib.suppress(ApiError):
            compile(value)
    NodeSelector.compile(value, lenient=True).matches({"a": "1"}, "n")


def test_deep_and_wide_objects_give_api_errors():
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    wide = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * 10_001}]}
    for hostile in (
        deep,
        {"matchLabels": deep},
        {"matchExpressions": [{"key": deep}]},
        wide,
        {"matchExpressions": [1] * 2000},
    ):
        with pytest.raises(ApiError):
            LabelSelector.compile(hostile)
        with contextlib.suppress(ApiError):
            NodeSelector.compile({"nodeSelectorTerms": [hostile]})


names = st.sampled_from(["a", "b", "x/y", "in"])
values = st.sampled_from(["", "1", "2", "x"])
terms = st.one_of(
    st.builds("{}={}".format, names, values),
    st.builds("{} == {}".format, names, values),
    st.builds("{}!={}".format, names, values),
    st.builds(lambda key, of: f"{key} in ({','.join(of)})", names, st.lists(values, min_size=1, max_size=3)),
    st.builds(lambda key, of: f"{key} notin ({','.join(of)})", names, st.lists(values, min_size=1, max_size=3)),
    names,
    st.builds("!{}".format, names),
    st.builds("{}>{}".format, names, st.sampled_from(["1", "0"])),
)


@given(st.lists(terms, max_size=4), st.dictionaries(names, values))
@settings(max_examples=300, deadline=None)
def test_a_list_of_terms_is_a_conjunction_and_its_text_a_fixed_point(parts, labels):
    selector = LabelSelector.parse(",".join(parts))
    assert selector.matches(labels) == all(LabelSelector.parse(part).matches(labels) for part in parts)
    assert LabelSelector.parse(str(selector)) == selector
    if selector.matches(labels):
        assert set(selector.equalities) <= set(labels.items())


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(",=\\x!", max_size=4), st.booleans()), max_size=4))
@settings(max_examples=200, deadline=None)
def test_field_selectors_round_trip_whatever_the_values(parts):
    text = ",".join(f"{name}{'=' if equal else '!='}{field_select.escape(value)}" for name, value, equal in parts)
    selector = FieldSelector.parse(text, ["a", "b"])
    assert sorted((t.field, t.value, t.equal) for t in selector.terms) == sorted(parts)
    assert FieldSelector.parse(str(selector), ["a", "b"]) == selector
