"""What Go's decoder says of values of the wrong type, and the zero values it takes for what is not there."""

import pytest

from steersman.api.go_json import complaint, with_zeros
from steersman.api.kinds import Kinds
from tests.api.cluster import pod, refused

POD = Kinds.builtin().get("", "Pod").schema
MAP = Kinds.builtin().get("", "ConfigMap").schema


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("text", "string into Go struct field Pod.spec of type v1.PodSpec"),
        ({"containers": {}}, "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ({"containers": [{"name": 5}]}, "number into Go struct field Container.spec.containers.name of type string"),
        ({"hostPID": "yes"}, "string into Go struct field PodSpec.spec.hostPID of type bool"),
        ({"priority": 1.5}, "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        ({"priority": True}, "bool into Go struct field PodSpec.spec.priority of type int32"),
        ({"nodeSelector": {"a": []}}, "array into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"nodeSelector": []}, "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
    ],
)
def test_complaints(value, told):
    assert complaint("Pod", POD.fields["spec"], "spec", value) == f"json: cannot unmarshal {told}"


def test_the_first_fault_is_told_and_nulls_are_none():
    value = {"hostname": None, "hostPID": 1, "containers": 5}
    assert complaint("Pod", POD.fields["spec"], "spec", value).endswith("PodSpec.spec.hostPID of type bool")
    assert complaint("Pod", POD.fields["spec"], "spec", pod()) == ""


def test_a_body_that_cannot_be_decoded(cluster):
    error = refused(cluster.create, "v1/ConfigMap", "a", data={"a": 5})
    assert error.code == 400
    assert error.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    )


def test_zeros_of_what_is_required():
    spec = Kinds.builtin().get("apps", "Deployment").schema.fields["spec"]
    filled = with_zeros(spec, {"replicas": 1})
    assert filled == {"replicas": 1, "template": {}}  # a selector is a pointer; the spec of a template is not required
    assert with_zeros(POD.fields["spec"], {"containers": [{}]}) == {"containers": [{"name": ""}]}


def test_what_is_left_out_is_judged_as_zero(cluster):
    error = refused(cluster.create, "storage.k8s.io/v1/VolumeAttachment", "a", spec={"attacher": "a.example.com"})
    assert [cause.field for cause in error.causes] == ["spec.source", "spec.nodeName"]
    assert "must specify exactly one of inlineVolumeSpec and persistentVolumeName" in error.message


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"kind": "Other"}, 'no kind "Other" is registered for version "v1" in scheme'),
        ({"apiVersion": "v9"}, 'no kind "ConfigMap" is registered for version "v9" in scheme'),
        ({"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ({"kind": "Status"}, "converting (v1.Status) to (core.ConfigMap): unknown conversion"),
    ],
)
def test_bodies_of_other_kinds(cluster, body, told):
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **body}
    error = refused(cluster.request, "create", "v1/ConfigMap", "a", whole)
    assert error.code == 400
    assert told in error.message
