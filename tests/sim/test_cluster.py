import pytest
import yaml

from steersman.sim.cluster import NodesError, alike, given, load
from tests.sim.traces import nodes


def write(tmp_path, text):
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    return path


def test_a_number_gives_nodes_of_16_cpu_64_gib_and_110_pods():
    first, second = alike(2)
    assert first["metadata"]["name"] != second["metadata"]["name"]
    room = first["status"]["allocatable"]
    assert (room["cpu"], room["memory"], room["pods"]) == ("16", "64Gi", "110")
    assert given("2") == given(2) == [first, second]


@pytest.mark.parametrize("count", [0, -1, 50_001, "-3"])
def test_a_number_out_of_range_is_refused(count):
    with pytest.raises(NodesError, match="from 1 to 50,000"):
        given(count)


@pytest.mark.parametrize("form", ["stream", "array", "kubectl"])
def test_a_file_may_be_a_stream_an_array_or_what_kubectl_prints(tmp_path, form):
    made = nodes(3)
    text = {
        "stream": yaml.safe_dump_all(made),
        "array": yaml.safe_dump(made),
        "kubectl": yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": made}),
    }[form]
    found = load(write(tmp_path, text))
    assert [node["metadata"]["name"] for node in found] == ["n0", "n1", "n2"]
    assert found[0]["status"]["allocatable"] == made[0]["status"]["allocatable"]


def test_a_node_is_as_in_a_fresh_cluster(tmp_path):
    (node,) = nodes(1, unschedulable=True, podCIDR="10.0.0.0/24")
    node["metadata"] |= {"uid": "1", "resourceVersion": "2", "managedFields": []}
    node["spec"]["taints"] = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
        {"key": "own", "effect": "NoSchedule"},
    ]
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    del node["status"]["allocatable"]
    (found,) = load(write(tmp_path, yaml.safe_dump(node)))
    assert found["metadata"] == {"name": "n0", "labels": {"zone": "a"}}
    assert found["spec"] == {"unschedulable": True, "taints": [{"key": "own", "effect": "NoSchedule"}]}
    assert found["status"]["allocatable"] == node["status"]["capacity"]
    assert "Unknown" not in str(found["status"])


def broken(**changes):
    (node,) = nodes(1)
    return yaml.safe_dump({**node, **changes})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no Node in it"),
        ("a: [", "line 2: not readable as YAML"),
        ("\x00", "not readable as YAML"),
        ("just text", "expected a Node object, found str"),
        (broken(kind="Pod"), "expected kind Node of apiVersion v1, found v1/Pod"),
        (broken(metadata={}), "metadata.name is missing"),
        (broken(metadata=3), "metadata.name is missing"),
        (broken(status=3), "node n0: status must be a map"),
        (broken(status={"allocatable": 3}), "node n0"),
        (broken(status={"allocatable": {"cpu": "lots"}}), "lots"),
        (broken(status={}), "lacks cpu, memory, pods"),
        (broken(spec={"taints": ["x"]}), "node n0: spec.taints must be a list of maps"),
        (yaml.safe_dump_all(nodes(1) * 2), "node n0 is there twice"),
        ("{" * 2000, "not readable as YAML"),
    ],
)
def test_a_wrong_file_gives_one_clear_line(tmp_path, text, says):
    path = write(tmp_path, text)
    with pytest.raises(NodesError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path)) and says in message and "\n" not in message


def test_a_missing_file_gives_one_clear_line(tmp_path):
    with pytest.raises(NodesError, match=r"none\.yaml: cannot read it: No such file"):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize("text", ["²", "٣", "9" * 5000, "-"])
def test_what_only_looks_like_a_number_is_a_file(text):
    with pytest.raises(NodesError, match="cannot read it"):
        given(text)


def test_an_empty_name_is_refused():
    with pytest.raises(NodesError, match="is empty"):
        given(" ")


def test_objects_may_be_given_themselves():
    assert len(given(nodes(2))) == 2
    with pytest.raises(NodesError):
        given([])
