"""TokenRequests: whose fields they record, and what is refused, as a kube-apiserver 1.36 does."""

from tests.serve.harness import in_loop
from tests.serve.plane import Plane

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def asked(body, code=201):
    plane = Plane()
    await plane.post(ACCOUNTS, {"metadata": {"name": "s"}})
    return (await plane.post(f"{ACCOUNTS}/s/token", body, code)).json


@in_loop
async def test_everything_that_was_sent_is_on_record():
    meta = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "name": "s", "generateName": "x", "generation": 3}
    status = {"token": "x", "expirationTimestamp": "2026-11-30T10:00:00Z"}
    made = await asked({"metadata": meta, "spec": {}, "status": status})
    (entry,) = made["metadata"]["managedFields"]
    assert entry["subresource"] == "token" and entry["fieldsV1"] == {
        "f:metadata": {
            "f:annotations": {".": {}, "f:c": {}},
            "f:generateName": {},
            "f:labels": {".": {}, "f:a": {}},
        },
        "f:spec": {"f:expirationSeconds": {}},
        "f:status": {"f:expirationTimestamp": {}, "f:token": {}},
    }
    assert made["status"]["token"] != "x" and made["spec"]["boundObjectRef"] is None


@in_loop
async def test_what_is_bound_to_nothing_in_particular_is_refused():
    refused = await asked({"spec": {"boundObjectRef": {}}}, 400)
    assert refused["message"] == "cannot bind token to object of type /, Kind="
    assert (await asked({"spec": {"boundObjectRef": None}}))["spec"]["expirationSeconds"] == 3600
