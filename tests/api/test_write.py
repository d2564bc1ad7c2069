"""Object-local writes: what versions share, what a template saves, what makes a new version and what does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import deletion, generation, write
from steersman.api.by import By
from steersman.api.errors import ApiError
from steersman.api.kinds import Kinds
from steersman.api.times import MICRO
from steersman.kernel.object import Key
from steersman.kernel.value import freeze, thaw
from tests.api.cluster import deployment, pod

KINDS = Kinds.builtin()
POD, DEPLOYMENT, CONFIG = KINDS.get("", "Pod"), KINDS.get("apps", "Deployment"), KINDS.get("", "ConfigMap")
BY = By("me", "2026-01-01T00:00:00Z")
LATER = By("me", "2026-01-01T01:00:00Z")


def make(kind, body, name="web", by=BY):
    return write.create(kind, Key(kind.group, kind.kind, "shop", name), body, f"uid-{name}", by).obj


def test_pods_of_one_template_share_everything_but_their_names():
    template = freeze({"metadata": {"labels": {"app": "web"}}, "spec": pod()})
    a, b = [
        make(POD, {"metadata": {"name": name, **template["metadata"]}, "spec": template["spec"]}, name)
        for name in ("a", "b")
    ]
    assert a.spec is b.spec
    assert a.status is b.status
    assert a.meta.value["labels"] is b.meta.value["labels"]
    assert a.managers[0].fields is b.managers[0].fields
    assert a.spec.valid is POD.schema


def test_a_template_is_judged_by_the_kind_that_uses_it():
    """The mark on a shared value belongs to one schema and one part."""
    spec = freeze(pod())
    make(POD, {"spec": spec})
    with pytest.raises(ApiError):
        make(DEPLOYMENT, {"spec": spec})
    with pytest.raises(ApiError) as caught:
        write.update(
            POD, make(POD, {"spec": spec}), {"status": spec}, BY._replace(subresource="status", validation="Strict")
        )
    assert 'unknown field "status.containers"' in caught.value.message


def test_a_template_that_was_refused_is_refused_again():
    spec = freeze({"containers": []})
    for _ in range(2):
        with pytest.raises(ApiError, match=r"spec\.containers: Required value"):
            make(POD, {"spec": spec})


def test_a_status_write_shares_the_rest():
    old = make(DEPLOYMENT, {"spec": deployment()})
    new = write.update(DEPLOYMENT, old, {"status": {"replicas": 1}}, LATER._replace(subresource="status")).obj
    assert (new.spec, new.meta, new.rest) == (old.spec, old.meta, old.rest)
    assert new.status is not old.status
    same = write.update(DEPLOYMENT, new, {"status": {"replicas": 1}}, LATER._replace(subresource="status")).obj
    assert same is new


def test_a_whole_write_shares_what_did_not_change():
    old = make(DEPLOYMENT, {"spec": deployment(2), "metadata": {"labels": {"a": "1"}}})
    body = thaw(old.value)
    body["metadata"]["labels"]["b"] = "2"
    new = write.update(DEPLOYMENT, old, body, LATER).obj
    assert new.spec is old.spec
    assert new.status is old.status
    assert new.meta.value["generation"] == 1
    body["spec"]["replicas"] = 3
    newer = write.update(DEPLOYMENT, new, body, LATER).obj
    assert newer.meta is not new.meta  # the generation
    assert newer.meta.value["generation"] == 2


def test_versions_are_never_changed():
    old = make(DEPLOYMENT, {"spec": deployment(2)})
    before = old.to_json()
    body = thaw(old.value)
    body["spec"]["replicas"] = 5
    write.update(DEPLOYMENT, old, body, LATER)
    write.update(DEPLOYMENT, old, {"status": {"replicas": 5}}, LATER._replace(subresource="status"))
    deletion.after(DEPLOYMENT, old, {"propagation": "Orphan"}, 1_780_000_000 * MICRO)
    assert old.to_json() == before


def test_the_body_is_never_changed():
    body = {"metadata": {"labels": {"a": "b"}}, "spec": deployment(2)}
    copy = thaw(body)
    make(DEPLOYMENT, body)
    assert body == copy
    body["spec"]["replicas"] = 9  # and is not what was stored
    made = make(DEPLOYMENT, copy)
    copy["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert made.spec.value["template"]["spec"]["containers"][0]["image"] == "app:1"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"metadata": {"annotations": {"a": "\ud800"}}}, "metadata.annotations"),
        ({"data": {"a": "\ud800"}}, ""),
    ],
)
def test_what_json_cannot_hold_is_refused_before_it_is_stored(body, field):
    with pytest.raises(ApiError) as caught:
        make(CONFIG, body)
    assert caught.value.code == 422
    assert caught.value.causes[0].field == field
    assert "cannot be written as JSON" in caught.value.message


def test_generation_of_kinds():
    for kind in KINDS.all():
        spec = kind.schema.fields.get("spec")
        if kind.gk in generation.NONE:
            assert spec is not None, kind


CONTENT = st.fixed_dictionaries(
    {},
    optional={
        "data": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), min_size=1),
        "immutable": st.just(False),
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), min_size=1)}
        ),
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CONTENT, min_size=2, max_size=4))
def test_the_last_body_is_what_is_stored_and_owned_by_all(bodies):
    """After any updates: the content is the last body's, and every field of it has an owner; but once there was
    nothing to own, nobody is on record before somebody applies."""
    obj = make(CONFIG, bodies[0])
    tracked = True
    for number, body in enumerate(bodies[1:]):
        tracked = tracked and bool(obj.managers)
        obj = write.update(CONFIG, obj, body, BY._replace(manager=f"m{number}")).obj
    last = bodies[-1]
    assert obj.value.get("data") == last.get("data")
    assert obj.meta.value.get("labels") == last.get("metadata", {}).get("labels")
    owned = {path for entry in obj.managers for path in entry.fields.paths()}
    if not tracked:
        assert not owned
        return
    wanted = {("f:data", f"f:{key}") for key in last.get("data", ())}
    wanted |= {("f:metadata", "f:labels", f"f:{key}") for key in last.get("metadata", {}).get("labels", ())}
    assert wanted <= owned
    present = {path for path in owned if path[0] == "f:data" and len(path) == 2}
    assert {path[1][2:] for path in present} == set(last.get("data", ()))
