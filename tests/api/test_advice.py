"""Warnings about valid objects: given by the write that brings what they are about, and by no other."""

from tests.api.cluster import Cluster

SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
TOLD = "topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"


def cluster() -> Cluster:
    made = Cluster()
    made.create("v1/Namespace", "shop", namespace="")
    return made


def pod(**spec):
    return {"containers": [{"name": "c", "image": "i"}], **spec}


def test_a_pod_is_warned_about_each_time_it_is_made():
    one = cluster()
    for name in ("a", "b"):
        warnings = one.create("v1/Pod", name, spec=pod(topologySpreadConstraints=[SPREAD])).warnings
        assert warnings == (f"spec.{TOLD}",)


def test_nobody_is_warned_by_an_update_that_leaves_the_spec_alone():
    one, template = cluster(), {"metadata": {"labels": {"a": "b"}}, "spec": pod(topologySpreadConstraints=[SPREAD])}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert one.create("apps/v1/Deployment", "d", spec=spec).warnings == (f"spec.template.spec.{TOLD}",)
    assert one.merge("apps/v1/Deployment", "d", {"metadata": {"labels": {"x": "y"}}}).warnings == ()


def test_names_that_are_no_labels_of_hosts():
    (told,) = cluster().create("v1/Pod", "a.b", spec=pod()).warnings
    assert told == (
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    )


def test_ports_and_variables_that_hide_others():
    ports = [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "hostPort": 1}]
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}]
    told = cluster().create(
        "v1/Pod", "p", spec={"containers": [{"name": "c", "image": "i", "ports": ports, "env": env}]}
    )
    assert told.warnings == (
        'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply',
        "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
    )
