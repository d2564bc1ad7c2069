"""Kinds as a trace names them."""

import pytest

from steersman.trace.gvk import GVK, POD


@pytest.mark.parametrize(
    ("text", "gvk"),
    [
        ("apps/v1.Deployment", GVK("apps", "v1", "Deployment")),
        ("batch.volcano.sh/v1alpha1.Job", GVK("batch.volcano.sh", "v1alpha1", "Job")),
        ("v1.Pod", POD),
        ("/v1.Pod", POD),
    ],
)
def test_parse(text, gvk):
    assert GVK.parse(text) == gvk
    assert str(gvk) == text.removeprefix("/")


@pytest.mark.parametrize("text", ["", "Pod", "v1.", ".Pod", "apps/v1/Deployment", "a/b/v1.Pod", "apps.v1.Deployment"])
def test_parse_refuses(text):
    with pytest.raises(ValueError, match=r"group/version\.Kind"):
        GVK.parse(text)


def test_of_object():
    assert GVK.of({"apiVersion": "apps/v1", "kind": "Deployment"}) == GVK("apps", "v1", "Deployment")
    with pytest.raises(ValueError):
        GVK.of({"apiVersion": "v1"})
