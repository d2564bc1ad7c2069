"""Every verb of kubectl that people use, by each kubectl at hand, with controllers and a node behind the server."""

import json
import subprocess
import urllib.request
from contextlib import contextmanager

import pytest

from tests.interop.clients.programs import Program, kubectls, title
from tests.interop.clients.samples import a_config_map, a_deployment, a_pod
from tests.interop.conformance.samples import SAMPLES
from tests.interop.patience import SECONDS

CREATED = """
configmap c --from-literal=x=y
namespace shop
secret generic s --from-literal=a=b
secret docker-registry d --docker-username=u --docker-password=p --docker-server=r
serviceaccount robot
service clusterip cip --tcp=80:80
service nodeport np --tcp=80:80
service externalname en --external-name=example.com
service loadbalancer lb --tcp=80:80
quota q --hard=pods=20
role r --verb=get --resource=pods
rolebinding rb --role=r --user=u
clusterrole cr --verb=get --resource=pods
clusterrolebinding crb --clusterrole=cr --user=u
job j --image=busybox
cronjob cj --image=busybox --schedule=@daily
ingress ing --rule=a.com/*=web:80
poddisruptionbudget pdb --selector=app=web --min-available=1
priorityclass pc --value=5
deployment web --image=nginx:1 --replicas=2 --port=80
"""


@pytest.fixture(params=list(kubectls()), ids=title)
def kubectl(request, control_plane, namespace, tmp_path):
    return Program(request.param, control_plane, tmp_path)


@pytest.fixture
def write(tmp_path):
    """Writes objects into a file; its path."""

    def write(*objects, name="objects.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return str(path)

    return write


def test_create_get_and_describe_every_kind(kubectl):
    told = [kubectl(f"create {line}") for line in CREATED.strip().splitlines()]
    assert all(line.endswith(" created\n") for line in told)
    names = [line.split()[0] for line in told]
    assert kubectl("get -o name " + " ".join(names)).split() == names
    described = kubectl("describe " + " ".join(names))
    assert all(name.partition("/")[2] in described for name in names)
    kubectl("rollout status deployment/web --timeout=300s")
    kubectl("autoscale deployment web --max=5 --cpu=50%") if kubectl.minor >= 34 else kubectl(
        "autoscale deployment web --max=5 --cpu-percent=50"
    )
    kinds = "pods,nodes,replicasets,hpa,events,endpointslices,namespaces,storageclasses,leases,configmaps,endpoints"
    kubectl(f"describe {kinds}")
    kubectl(f"get {kinds} -o wide -A")
    assert kubectl("create token robot").count(".") == 2
    assert "SuccessfulCreate" in kubectl("events")


def test_changes_in_place(kubectl, tmp_path):
    kubectl("create deployment web --image=nginx:1")
    kubectl("scale deployment web --replicas=2")
    kubectl("label deployment web tier=front")
    kubectl("label deployment web tier-")
    kubectl("annotate deployment web note=n")
    assert "note=n" in kubectl("annotate deployment web --list")
    kubectl("set image deployment/web nginx=nginx:2")
    kubectl("set env deployment/web COLOUR=red")
    assert "COLOUR=red" in kubectl("set env deployment/web --list")
    kubectl("set resources deployment web --limits=cpu=200m --requests=cpu=100m")
    kubectl("set serviceaccount deployment web default")
    kubectl("rollout status deployment/web --timeout=300s")
    assert "REVISION" in kubectl("rollout history deployment/web")
    kubectl("rollout undo deployment/web")
    kubectl("rollout pause deployment/web")
    kubectl("rollout resume deployment/web")
    kubectl("rollout restart deployment/web")
    kubectl("rollout status deployment/web --timeout=300s")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/replicas: 2/replicas: 3/' $1\n")
    editor.chmod(0o755)
    assert "edited" in kubectl("edit deployment web", KUBE_EDITOR=str(editor))
    found = json.loads(kubectl("get deployment web -o json"))
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert found["spec"]["replicas"] == 3 and container["image"] == "nginx:2"
    assert container["env"] == [{"name": "COLOUR", "value": "red"}]
    assert kubectl("get deployment web -o jsonpath={.metadata.annotations.note}") == "n"


def test_patches(kubectl):
    kubectl("create configmap c --from-literal=x=1")
    kubectl("patch", "configmap", "c", "-p", '{"data":{"y":"2"}}')
    kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"x":null}}')
    kubectl("patch", "configmap", "c", "--type=json", "-p", '[{"op":"add","path":"/data/z","value":"3"}]')
    assert json.loads(kubectl("get configmap c -o json"))["data"] == {"y": "2", "z": "3"}
    kubectl("create deployment web --image=nginx")
    kubectl("patch", "deployment", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":0}}')
    assert kubectl("get deployment web --subresource=scale -o jsonpath={.spec.replicas}") == "0"


def test_apply_by_client_and_server_and_between_them(kubectl, write):
    one, two = write(a_config_map("c", x="1", y="1")), write(a_config_map("c", x="2"), name="two.json")
    assert "created" in kubectl(f"apply -f {one}")
    assert "unchanged" in kubectl(f"apply -f {one}")
    assert '-  "y": "1"' in kubectl(f"diff -f {two}", code=1).replace("  y: ", '  "y": ')
    assert "configured" in kubectl(f"apply -f {two}")
    assert data(kubectl) == {"x": "2"}
    assert "serverside-applied" in kubectl(f"apply --server-side -f {one}")
    assert data(kubectl) == {"x": "1", "y": "1"}
    assert "serverside-applied" in kubectl(f"apply --server-side -f {two}")
    assert data(kubectl) == {"x": "2"}, "fields of the client-side apply went with the migration"
    assert "conflict" in kubectl(f"apply --server-side --field-manager=other -f {one}", code=1)
    kubectl(f"apply --server-side --field-manager=other --force-conflicts -f {one}")
    assert "2" in kubectl(f"diff --server-side --field-manager=other -f {two} --force-conflicts", code=1)
    kubectl(f"apply view-last-applied -f {one}")
    assert "replaced" in kubectl(f"replace --force -f {one}")
    kubectl(f"apply --prune -l app=web -f {write(a_config_map('d'), name='d.json')}")
    assert "configmap/d" in kubectl("get configmaps -o name")
    assert "deleted" in kubectl("delete configmaps -l app=web")


def data(kubectl):
    return json.loads(kubectl("get configmap c -o json"))["data"]


def test_kustomize(kubectl, tmp_path):
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "deployment.json").write_text(json.dumps(a_deployment("web")))
    (folder / "kustomization.yaml").write_text("namePrefix: my-\nresources: [deployment.json]\n")
    assert kubectl(f"apply -k {folder}") == "deployment.apps/my-web created\n"
    assert "my-web" in kubectl(f"get -k {folder}")
    assert "deleted" in kubectl(f"delete -k {folder}")


def test_pods_expose_and_waiting(kubectl, write):
    assert kubectl("run p --image=nginx --labels=app=p --port=80") == "pod/p created\n"
    assert "condition met" in kubectl("wait --for=condition=Ready pod/p --timeout=300s")
    assert "condition met" in kubectl("wait --for=jsonpath={.status.phase}=Running pod/p --timeout=300s")
    assert kubectl("expose pod p --port=80") == "service/p exposed\n"
    assert "created" in kubectl(f"create -f {write(a_pod('q'), a_pod('r'))}")
    kubectl("wait --for=condition=Ready pods --all --timeout=300s")
    assert "Usage" in kubectl("top --help") and "p" in kubectl("top pods")
    assert "node-0" in kubectl("top nodes")
    assert "started on virtual node" in kubectl("logs p --tail=1")
    assert kubectl("delete pods --all --now").count("deleted") == 3
    kubectl("wait --for=delete pod/p --timeout=300s")


def test_nodes(kubectl):
    kubectl("create deployment web --image=nginx")
    kubectl("rollout status deployment/web --timeout=300s")
    assert "cordoned" in kubectl("cordon node-0")
    assert "drained" in kubectl("drain node-0 --ignore-daemonsets --delete-emptydir-data --force --timeout=300s")
    assert "SchedulingDisabled" in kubectl("get nodes")
    assert "uncordoned" in kubectl("uncordon node-0")
    kubectl("taint node node-0 key=value:NoSchedule")
    kubectl("taint node node-0 key:NoSchedule-")
    kubectl("rollout status deployment/web --timeout=300s")


def test_questions(kubectl):
    assert kubectl("auth can-i create pods") == "yes\n"
    assert kubectl("auth can-i create pods --as=nobody", code=1).startswith("no")
    assert "*.*" in kubectl("auth can-i --list")
    assert "steersman-admin" in kubectl("auth whoami")
    assert "imagePullPolicy" in kubectl("explain pods.spec.containers")
    assert "FIELDS" in kubectl("explain deployment.spec --recursive")
    assert "deployments" in kubectl("api-resources --verbs=list,get -o wide")
    assert "apps/v1" in kubectl("api-versions").split()
    assert "is running at" in kubectl("cluster-info")
    assert json.loads(kubectl("get --raw /version"))["minor"].startswith("36")
    assert kubectl("get --raw /readyz") == "ok"
    assert json.loads(kubectl("get --raw /api/v1/namespaces/default"))["kind"] == "Namespace"
    assert "default" in kubectl("get namespaces --sort-by=.metadata.name -o custom-columns=N:.metadata.name")


def test_rights_certificates_and_what_a_service_selects(kubectl, write):
    kubectl("create role r --verb=get --resource=pods")
    kubectl("create rolebinding rb --role=r --user=u")
    assert "subjects updated" in kubectl("set subject rolebinding rb --user=v --serviceaccount=default:robot")
    subjects = json.loads(kubectl("get rolebinding rb -o json"))["subjects"]
    assert [each["name"] for each in subjects] == ["u", "v", "robot"]
    more = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}
    meta = {"name": "r", "namespace": "default"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": [more]}
    assert "reconciled" in kubectl(f"auth reconcile -f {write(role)}")
    assert len(json.loads(kubectl("get role r -o json"))["rules"]) == 2
    kubectl("create service clusterip s --tcp=80:80")
    assert "selector updated" in kubectl("set selector service s app=web")
    assert kubectl("get service s -o jsonpath={.spec.selector.app}") == "web"
    asked = next(each for each in SAMPLES if each.kind == "CertificateSigningRequest")
    kubectl(f"create -f {write(asked.make('one'), asked.make('two'))}")
    assert "approved" in kubectl("certificate approve one") and "denied" in kubectl("certificate deny two")
    assert "Approved" in kubectl("get csr one") and "Denied" in kubectl("get csr two")


def test_a_watch_a_proxy_and_a_dump(kubectl, tmp_path):
    with going_on(kubectl, "get", "configmaps", "-l", "app=web", "--watch", "--output-watch-events") as watching:
        kubectl("create configmap c --from-literal=x=1")
        kubectl("label configmap c app=web")
        assert watching.stdout.readline().split()[:2] == ["EVENT", "NAME"]
        assert watching.stdout.readline().split()[:2] == ["ADDED", "c"]
        kubectl("delete configmap c")
        assert watching.stdout.readline().split()[:2] == ["DELETED", "c"]
    with going_on(kubectl, "proxy", "--port=0") as proxy:
        address = proxy.stdout.readline().rpartition(" ")[2].strip()
        with urllib.request.urlopen(f"http://{address}/api/v1/namespaces/default", timeout=SECONDS) as answer:
            assert json.loads(answer.read())["metadata"]["name"] == "default"
    kubectl(f"cluster-info dump --output-directory={tmp_path / 'dump'}")
    assert json.loads((tmp_path / "dump" / "nodes.json").read_text())["items"][0]["metadata"]["name"] == "node-0"


@contextmanager
def going_on(kubectl, *words):
    """A kubectl that goes on until the end of the block, its output in a pipe."""
    process = kubectl.start(*words, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)
