"""kubectl with every kind: those it sends in protobuf, computed ones, and those that are served in two versions."""

import json

import pytest

from tests.interop.clients.programs import Program, kubectls, title
from tests.interop.conformance.samples import SAMPLES
from tests.interop.live import live

CREATED = [
    ("configmap/c", "create configmap c --from-literal=x=y"),
    ("namespace/shop", "create namespace shop"),
    ("deployment.apps/web", "create deployment web --image=nginx --replicas=2"),
    ("secret/s", "create secret generic s --from-literal=a=b"),
    ("serviceaccount/robot", "create serviceaccount robot"),
    ("service/web", "create service clusterip web --tcp=80:80"),
    ("resourcequota/q", "create quota q --hard=pods=20"),
    ("role.rbac.authorization.k8s.io/r", "create role r --verb=get --resource=pods"),
    ("rolebinding.rbac.authorization.k8s.io/rb", "create rolebinding rb --role=r --user=u"),
    ("clusterrole.rbac.authorization.k8s.io/cr", "create clusterrole cr --verb=get --non-resource-url=/x"),
    ("job.batch/j", "create job j --image=busybox"),
    ("cronjob.batch/cj", "create cronjob cj --image=busybox --schedule=@daily"),
    ("ingress.networking.k8s.io/ing", "create ingress ing --rule=a.com/*=web:80"),
    ("poddisruptionbudget.policy/pdb", "create poddisruptionbudget pdb --selector=app=web --min-available=1"),
    ("priorityclass.scheduling.k8s.io/pc", "create priorityclass pc --value=5"),
]


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with live(tmp_path_factory.mktemp("live")) as running:
        yield running
        assert running.failed() == []


def test_create_of_every_kind_kubectl_has_a_command_for(plane):
    for name, command in CREATED:
        assert plane.run(*command.split()) == f"{name} created\n"
        assert plane.json("get", name)["metadata"]["name"] == name.partition("/")[2]
    assert "autoscaled" in plane.run("autoscale", "deployment", "web", "--max=5", "--cpu-percent=50")
    shown = plane.run("get", "hpa", "web", "--no-headers").split()
    assert shown[:4] == ["web", "Deployment/web", "cpu:", "<unknown>/50%"]
    old = plane.run("get", "--raw", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/web")
    assert '"apiVersion":"autoscaling/v1"' in old and '"targetCPUUtilizationPercentage":50' in old
    told = plane.run("create", "priorityclass", "high", "--value=2000000000", code=1)
    assert "maximum allowed value of a user defined priority is 1000000000" in told


def test_kinds_that_are_computed(plane):
    assert "v1.apps" in plane.run("get", "apiservices")
    assert "Healthy" in plane.run("get", "componentstatuses")
    plane.run("run", "p", "--image=nginx")
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
    plane.run("create", "-f", "-", stdin=node)
    size = '{"status":{"allocatable":{"cpu":"4","memory":"8Gi"},"capacity":{"cpu":"4","memory":"8Gi"}}}'
    plane.run("patch", "node", "n1", "--subresource=status", "--type=merge", "-p", size)
    assert plane.run("top", "node").split()[5:7] == ["n1", "0m"]


BETA = {"IPAddress": 33, "ServiceCIDR": 33, "VolumeAttributesClass": 34}
"""An older kubectl describes these kinds by the beta version that Kubernetes 1.36 has not."""


@pytest.mark.interop
@pytest.mark.parametrize("path", list(kubectls()), ids=title)
def test_every_kind_from_a_file(plane, tmp_path, path):
    kubectl, prefix = Program(path, plane, tmp_path), f"of-{title(path).replace('.', '-')}"
    made = [json.dumps(each.make(f"{prefix}-{each.plural}")).replace("$(ns)", "default") for each in SAMPLES]
    objects = [json.loads(each) for each in made]
    file, names = written(tmp_path / "objects.json", objects), names_of(objects)
    created = lines(kubectl(f"create -f {file}"))
    assert [line for line in created if not line.endswith(" created")] == [] and len(created) == len(names)
    assert [name.rpartition("/")[2] for name in lines(kubectl(f"get -f {file} -o name"))] == names
    known = [each for each in objects if kubectl.minor >= BETA.get(each["kind"], 0)]
    described = kubectl(f"describe -f {written(tmp_path / 'known.json', known)}")
    assert [name for name in names_of(known) if name not in described] == []
    for verb, done in (("label", "labeled"), ("annotate", "annotated")):
        assert kubectl(f"{verb} -f {file} seen=yes").count(f" {done}") == len(names)
    applied = kubectl(f"apply --server-side --force-conflicts -f {file}")
    assert applied.count(" serverside-applied") == len(names)
    for version, kind in {(each["apiVersion"], each["kind"]) for each in objects}:
        assert f"KIND:       {kind}" in kubectl(f"explain --api-version={version} {kind}")
    assert kubectl(f"delete -f {file} --wait=false").count(" deleted") == len(names)


def written(path, objects):
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def names_of(objects):
    return [each["metadata"]["name"] for each in objects]


def lines(told):
    """What kubectl told, without its warnings: Endpoints are deprecated."""
    return [line for line in told.splitlines() if not line.startswith("Warning: ")]
