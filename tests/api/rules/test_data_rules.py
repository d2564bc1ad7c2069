"""ConfigMaps and Secrets: what a type asks for, what both parts may not share, and base64 as Go reads it."""

import pytest

from steersman.api.errors import ApiError
from tests.api.cluster import Cluster, refused


def shop() -> Cluster:
    made = Cluster()
    made.create("v1/Namespace", "shop", namespace="")
    return made


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, ["data[tls.key]: Required value"]),
        ({"type": "kubernetes.io/ssh-auth"}, ["data[ssh-privatekey]: Required value"]),
        ({"type": "kubernetes.io/basic-auth", "stringData": {"password": "x"}}, []),
        (
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        (
            {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "x"}},
            [
                'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
                "invalid character 'x' looking for beginning of value"
            ],
        ),
        ({"stringData": {"a": "x" * ((1 << 20) + 1)}}, ["data: Too long: may not be more than 1048576 bytes"]),
    ],
)
def test_what_the_type_of_a_secret_asks_for(body, told):
    cluster = shop()
    if not told:
        cluster.create("v1/Secret", "s", **body)
        return
    error = refused(cluster.create, "v1/Secret", "s", **body)
    assert [str(cause) for cause in error.causes] == told


def test_a_key_stands_in_one_part_of_a_config_map():
    cluster = shop()
    error = refused(cluster.create, "v1/ConfigMap", "c", data={"a": "b"}, binaryData={"a": "Yg=="})
    assert [str(cause) for cause in error.causes] == [
        'data[a]: Invalid value: "a": duplicate of key present in binaryData'
    ]


@pytest.mark.parametrize(
    ("text", "stored"),
    [("Yg==", "Yg=="), ("Yg\n==\r\n", "Yg=="), ("", ""), ("aGVsbG8=", "aGVsbG8=")],
)
def test_base64_is_stored_in_one_line(text, stored):
    cluster = shop()
    assert cluster.create("v1/Secret", "s", data={"a": text}).obj.value["data"]["a"] == stored


@pytest.mark.parametrize(("text", "at"), [("!", 0), ("aGV!", 3), ("aGVsb", 4), ("Yg==x", 4), ("aGVsbG", 4)])
def test_what_is_no_base64_cannot_be_decoded(text, at):
    cluster = shop()
    with pytest.raises(ApiError) as raised:
        cluster.create("v1/Secret", "s", data={"a": text})
    assert raised.value.code == 400
    assert raised.value.message.endswith(f"illegal base64 data at input byte {at}")
