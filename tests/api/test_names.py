import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api import names


@pytest.mark.parametrize("text", ["a", "0", "a-b", "my-name", "123-abc", "a" * 63])
def test_good_labels(text):
    assert names.dns1123_label(text) == []


@pytest.mark.parametrize("text", ["", "-a", "a-", "A", "a_b", "a\n", "é", "a" * 64, "a/b", " "])
def test_bad_labels(text):
    assert names.dns1123_label(text)


def test_kubernetes_messages():
    assert names.dns1123_label("a.b") == ["must not contain dots"]
    assert names.dns1123_label("a" * 64) == ["must be no more than 63 characters"]
    assert names.dns1123_label("A") == [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ]
    assert names.dns1123_subdomain("a_b") == [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ]
    assert names.dns1035_label("1a") == [
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
        "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    ]
    assert names.label_value("-x") == [
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
        "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
        "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ]


@pytest.mark.parametrize("text", ["a", "A.b_c-d", "example.com/A", "a/" + "b" * 63, "kubernetes.io/metadata.name"])
def test_good_keys(text):
    assert names.qualified_name(text) == []


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("A/b", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a valid label key must consist of"),
        ("-a", "name part must consist of"),
        ("b" * 64, "name part must be no more than 63 bytes"),
        ("a" * 254 + "/b", "prefix part must be no more than 253 bytes"),
    ],
)
def test_bad_keys(text, start):
    assert names.qualified_name(text)[0].startswith(start)


def test_values_and_subdomains():
    assert names.label_value("") == [] == names.label_value("a" * 63)
    assert names.label_value("a" * 64) == ["must be no more than 63 bytes"]
    assert names.dns1123_subdomain("a.b-c.d" * 30) == []
    assert names.dns1123_subdomain("a" * 254) == ["must be no more than 253 characters"]
    assert names.dns1123_subdomain("é" * 127)[0] == "must be no more than 253 characters"
    assert names.as_prefix("web-") == "weba" and names.as_prefix("-") == "-"


def test_hostile_names_cost_little():
    for text in ("a-" * 10**5, "a." * 10**5, "\ud800" * 10):
        assert names.dns1123_label(text) and names.dns1123_subdomain(text) and names.qualified_name(text)


def test_generated_names_fit():
    assert names.generate_name("web-", "bcdfg") == "web-bcdfg"
    assert names.generate_name("a" * 100, "bcdfg") == "a" * 58 + "bcdfg"
    assert len(names.generate_name("a" * 100, "b" * 100)) == 63


@given(st.one_of(st.integers(0, 2**128), st.binary(max_size=16)), st.integers(0, 10))
def test_suffixes_are_of_the_alphabet_and_a_function_of_the_entropy(entropy, length):
    suffix = names.name_suffix(entropy, length)
    assert len(suffix) == length and set(suffix) <= set(names.ALPHABET)
    assert suffix == names.name_suffix(entropy, length)


def test_every_suffix_is_reached_once():
    assert len({names.name_suffix(n, 2) for n in range(27**2)}) == 27**2
    assert names.name_suffix(b"\x01\x00", 2) == names.name_suffix(256, 2)
    with pytest.raises(ValueError, match="negative"):
        names.name_suffix(-1)


def test_safe_encode_is_that_of_pod_template_hashes():
    # Golden: apimachinery v0.36.0, rand.SafeEncodeString.
    assert names.safe_encode("3421706512") == "7865c4b956"
    assert names.safe_encode("0123456789") == "456789bcdf"
