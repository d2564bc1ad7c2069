"""What the server adds to a new Job: a selector of its uid, and the labels for it."""

import pytest

from steersman.api.errors import Invalid
from steersman.kernel.object import Key
from tests.controllers.worlds import client, make, one


def job(selector=None, labels=None, own=None, manual=False):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    if labels:
        template["metadata"] = {"labels": labels}
    meta = {"name": "web", "namespace": "default", **({"labels": own} if own else {})}
    spec = {"template": template, **({"selector": {"matchLabels": selector}} if selector else {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {**spec, **({"manualSelector": True} if manual else {})},
    }


def made(**how):
    w = make([], [])
    client(w).create(job(**how))
    return one(w, "Job")


def test_a_selector_of_the_uid_and_labels_for_it():
    found = made(labels={"app": "x"})
    uid = found.metadata.uid
    expected = {
        "app": "x",
        "job-name": "web",
        "batch.kubernetes.io/job-name": "web",
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
    }
    assert dict(found.spec.template.metadata.labels) == expected == dict(found.metadata.labels)
    assert dict(found.spec.selector.matchLabels) == {"batch.kubernetes.io/controller-uid": uid}


def test_its_own_labels_stay():
    assert dict(made(own={"mine": "yes"}).metadata.labels) == {"mine": "yes"}


def test_a_manual_selector_is_taken_as_it_is():
    found = made(selector={"app": "x"}, labels={"app": "x"}, manual=True)
    assert dict(found.spec.selector.matchLabels) == {"app": "x"} == dict(found.spec.template.metadata.labels)


def test_a_selector_that_cannot_match_is_refused():
    with pytest.raises(Invalid, match="`selector` does not match template `labels`"):
        made(selector={"app": "y"}, labels={"app": "x"}, manual=True)
    with pytest.raises(Invalid, match="`selector` does not match template `labels`"):
        made(selector={"batch.kubernetes.io/controller-uid": "not-mine"})


def test_a_namespace_is_held_by_its_content_whoever_else_holds_it():
    w = make([], [])
    for name, spec in (("plain", {}), ("held", {"finalizers": ["example.com/y"]})):
        client(w).create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": spec})
        finalizers = w.store.get(Key("", "Namespace", "", name)).value["spec"]["finalizers"]
        assert list(finalizers) == [*spec.get("finalizers", ()), "kubernetes"]
