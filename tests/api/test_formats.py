"""Formats of strings: what each accepts and refuses."""

import pytest

from steersman.api.formats import CHECKS, has_format, unknown

UUID4 = "8c8c7a3e-4b1d-4c5e-9f00-0123456789ab"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("byte", "aGk=", "a?"),
        ("cidr", "10.0.0.1/8", "10.0.0.1"),
        ("date", "2026-02-28", "2026-02-30"),
        ("duration", "1h30m", "soon"),
        ("email", "a@example.com", "a"),
        ("hexcolor", "#fff", "#ff"),
        ("hostname", "a.example.com", "a_b"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b", "A.b"),
        ("mac", "00:1a:2b:3c:4d:5e", "00:1a"),
        ("uri", "https://example.com/x", "a b"),
        ("uuid", UUID4.upper(), "x" + UUID4),
        ("uuid4", UUID4, UUID4.replace("-4c5e", "-3c5e")),
        ("bsonobjectid", "0" * 24, "0" * 23),
    ],
)
def test_formats(name, good, bad):
    assert has_format(name, good) and not has_format(name, bad)


def test_names():
    assert has_format("nobody knows it", "x") and unknown("string", "nobody knows it")
    assert not unknown("", "date-time") and not unknown("integer", "int32") and unknown("integer", "ipv4")
    assert unknown("boolean", "ipv4") and all(not unknown("string", name) for name in CHECKS)
