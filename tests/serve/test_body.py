"""Bodies: YAML read like PyYAML reads it where both are meant to agree, JSON with duplicates found."""

import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.serve.body import read_json, read_object, read_patch
from steersman.serve.depth import MAX_DEPTH
from steersman.serve.yaml_body import _BASED, _FLOAT, MAX_DUPLICATES, MAX_VALUES, read_yaml

# YAML reads U+0085 and its like as line ends, and neither escaped surrogate pairs nor DEL.
TEXT = st.text(st.characters(codec="ascii", exclude_characters="\x7f") | st.sampled_from("äß€中😀"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT
SCALARS |= st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


class Dumper(yaml.SafeDumper):
    """Quotes every text that kubectl's reader takes for a number. PyYAML by itself writes texts such as 0E0, 08 and
    0o7 plain: in the YAML 1.1 it knows they are no numbers, in 1.2 they are."""


for tag, pattern in (("float", _FLOAT), ("int", _BASED)):
    Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", pattern, list("-+.0123456789"))


@settings(max_examples=150, deadline=None)
@given(JSON, st.booleans())
@example({"0E0": None}, True)
@example(["08", {"1e5": "0o7", "+.5E1": "-0b1"}], False)
def test_yaml_that_was_dumped_is_read_back(value, flow):
    text = yaml.dump(value, Dumper=Dumper, default_flow_style=flow, allow_unicode=True)
    assert read_yaml(text.encode()) == (value, [])


@pytest.mark.parametrize(
    ("key", "name"),
    [("0E0", "0"), ("1.50", "1.5"), ("1e3", "1000"), ("1e21", "1e+21"), ("0x10", "16"), ("08", "8"), ("-.5", "-0.5"),
     ("1.36", "1.36"), ("'1.50'", "1.50"), ("yes", "true"), ("~", "null")],
)  # fmt: skip
def test_a_plain_key_is_named_by_its_value_a_quoted_one_as_it_is_written(key, name):
    assert read_yaml(f"{{{key}: x}}".encode()) == ({name: "x"}, [])


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_json_is_yaml(value):
    assert read_yaml(json.dumps(value, ensure_ascii=False).encode())[0] == value


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>#'\" \n\t<,.0x~?@%", max_size=40) | st.binary(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        read_yaml(text if isinstance(text, bytes) else text.encode())
    except ApiError as error:
        assert error.code == 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("~", None),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("1:30", "1:30"),
        ("010", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("0o17", 15),
        ("1_000", 1000),
        ("+1", 1),
        ("-0", 0),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("08", 8.0),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("<<", "<<"),
    ],
)
def test_scalars_are_kubernetes(text, value):
    found, _ = read_yaml(text.encode())
    assert found == value and type(found) is type(value)


def test_keys_are_text():
    assert read_yaml(b"{1: a, true: b, null: c, 1.5: d}")[0] == {"1": "a", "true": "b", "null": "c", "1.5": "d"}


def test_anchors_and_merges():
    text = b"base: &b {x: 1, y: 2}\nmore: &m {z: 3, x: 9}\none: {<<: *b, y: 5}\ntwo: {<<: [*b, *m]}\n"
    value, _ = read_yaml(text)
    assert value["one"] == {"x": 1, "y": 5} and value["two"] == {"x": 1, "y": 2, "z": 3}


def test_duplicates_have_paths():
    _, found = read_yaml(b"a: 1\nb:\n- {c: 1}\n- {c: 1, d: 2, c: 3}\na: 2\n")
    assert found == ["b[1].c", "a"]


def test_duplicates_in_json_are_found_however_it_is_written():
    assert read_json(b'{"a":1,"b":{"c":1,"c":2}}').duplicates == ('duplicate field "b.c"',)
    assert read_json(b'{ "a" : 1, "a" : 1 }').duplicates == ('duplicate field "a"',)
    assert read_json(b'{ "a" : "\\u0041" }').duplicates == ()


def test_duplicates_in_yaml_are_told_by_line():
    read = read_object("application/yaml", b"a: 1\nb:\n  c: 1\n  c: 2\na:\n  d: 3\n")
    told = ('line 4: key "c" already set in map', 'line 6: key "a" already set in map')
    assert read.duplicates == told
    assert read.strictly == (f"yaml: unmarshal errors:\n  {told[0]}\n  {told[1]}",)


def test_few_duplicates_are_told():
    """A path is as long as the keys above it: all of them together would be some gigabytes."""
    _, found = read_yaml(b"? " + b"k" * 20_000 + b"\n:\n" + b"  a: 1\n" * 1_000)
    assert len(found) == MAX_DUPLICATES


def test_numbers_beyond_all_bounds():
    huge = b"0x" + b"f" * 5000
    value, _ = read_yaml(b"? " + huge + b"\n: 1\na: " + huge + b"\nb: " + b"9" * 5000)
    assert value == {huge.decode(): 1, "a": huge.decode(), "b": float("inf")}


def test_bounds():
    assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).value
    for reader in (read_json, read_yaml):
        with pytest.raises(ApiError, match="nested deeper than 128"):
            reader(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    with pytest.raises(ApiError, match="expands to more"):
        read_yaml(b"[" + b"1," * MAX_VALUES + b"1]")


def test_an_apply_body_is_json_or_yaml():
    media = "application/apply-patch+yaml; charset=utf-8"
    for text in (b' {"a": 1}', b"a: 1", b"{a: 1}"):
        assert read_patch(media, text)[1].value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a":[1,{"b":"c', "unexpected end of JSON input"),
        ('{"a":1} x', "invalid character 'x' after top-level value"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("tru_", "invalid character '_' in literal true (expecting 'e')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("01", "invalid character '1' after top-level value"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+}", "invalid character '}' in exponent of numeric literal"),
        ('"\\q"', "invalid character 'q' in string escape code"),
        ('"\\u00g0"', "invalid character 'g' in \\u hexadecimal character escape"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
    ],
)
def test_what_is_no_json_is_told_in_the_words_of_go(text, told):
    """Recorded from Go's encoding/json."""
    with pytest.raises(ApiError) as caught:
        read_json(text.encode())
    assert caught.value.message == told


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]:,"\\ue+-.0123456789tfnalrs \n', max_size=30) | st.binary(max_size=20))
def test_any_text_is_json_or_told(text):
    try:
        read_json(text if isinstance(text, bytes) else text.encode())
    except ApiError as error:
        assert error.code == 400
