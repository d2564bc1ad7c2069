"""What people write after --listen."""

from __future__ import annotations

import pytest

from steersman.run.address import Address, parse_address
from steersman.run.load import StartError


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("127.0.0.1:6443", Address("127.0.0.1", 6443), True),
        ("127.0.0.1", Address("127.0.0.1", 6443), True),
        ("7001", Address("127.0.0.1", 7001), True),
        ("0", Address("127.0.0.1", 0), True),
        ("127.8.8.8:0", Address("127.8.8.8", 0), True),
        ("localhost:1", Address("localhost", 1), True),
        ("[::1]:8443", Address("::1", 8443), True),
        ("::1", Address("::1", 6443), True),
        ("[::1]", Address("::1", 6443), True),
        (":8443", Address("", 8443), False),
        ("0.0.0.0:1", Address("0.0.0.0", 1), False),
        ("[::]:1", Address("::", 1), False),
        ("*:1", Address("*", 1), False),
        ("0:1", Address("0", 1), False),
        ("192.0.2.1:6443", Address("192.0.2.1", 6443), False),
        ("no-such-host.invalid:1", Address("no-such-host.invalid", 1), False),
    ],
)
def test_addresses(text, address, loopback):
    assert parse_address(text) == address
    assert address.loopback() is loopback
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:-1", "a b:1", "https://x:1", "x:", "x:" + "9" * 5000, "70000"],
)
def test_no_addresses(text):
    with pytest.raises(StartError, match="--listen"):
        parse_address(text)


def test_names_for_the_certificate():
    assert Address("127.0.0.1", 1).names() == []
    assert Address("192.0.2.1", 1).names() == ["192.0.2.1"]
    assert Address("", 1).names()
