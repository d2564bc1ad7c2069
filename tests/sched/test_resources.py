"""Effective requests, against the examples of the sources (KEP-753, KEP-2837) and sums worked out by hand."""

import pytest

from steersman.sched.resources import DEFAULT_MEMORY, MAX_AMOUNT, Resources, allocatable, host_ports, ports_conflict
from tests.sched.clusters import container, node, pod

GI = 1024**3


def amounts(*containers, **spec):
    return dict(Resources.of_pod(pod("p", *containers, **spec)).amounts)


def cpu(name, text, **more):
    return container(name, {"cpu": text}, **more)


def test_containers_are_summed_exactly_and_rounded_once():
    assert amounts(container("a", {"cpu": "0.0005", "memory": "400m"}), container("b", {"cpu": "500u"})) == {
        "cpu": 1,
        "memory": 1,
    }


def test_the_greatest_init_container_counts_if_it_needs_more_than_all_containers():
    initial = [container("i", {"cpu": "2", "memory": "1Gi"}), container("j", {"cpu": "2", "memory": "3Gi"})]
    run = [container("c", {"cpu": "2", "memory": "1Gi"}), container("d", {"cpu": "1", "memory": "1Gi"})]
    assert amounts(*run, initContainers=initial) == {"cpu": 3000, "memory": 3 * GI}


def test_a_sidecar_runs_beside_the_containers_and_later_init_containers():
    initial = [
        cpu("i", "5"),
        cpu("s", "1", restartPolicy="Always"),
        cpu("j", "5"),
        cpu("t", "2", restartPolicy="Always"),
    ]
    assert amounts(cpu("c", "1"), initContainers=initial) == {"cpu": 6000}  # j beside s; later c + s + t = 4
    assert amounts(cpu("c", "4"), initContainers=initial) == {"cpu": 7000}  # c + s + t


def test_overhead_is_added_and_pod_level_requests_replace_the_sum():
    run = [container("c", {"cpu": "3", "example.com/x": "2"})]
    more = {"overhead": {"cpu": "250m"}, "resources": {"requests": {"cpu": "1", "example.com/x": "9"}}}
    assert amounts(*run, **more) == {"cpu": 1250, "example.com/x": 2}


def test_scoring_assumes_something_of_containers_that_ask_for_nothing():
    request = Resources.of_pod(pod("p", container("a"), container("b", {"cpu": "0", "memory": "1Gi"})))
    assert request.amounts == (("memory", GI),)
    assert request.counted == request.scored == (100, GI + DEFAULT_MEMORY)


def test_a_pod_level_request_leaves_no_room_for_defaults_of_what_it_names():
    level = {"resources": {"requests": {"cpu": "1"}}}
    request = Resources.of_pod(pod("p", container("a", {"memory": "1Gi"}), container("b"), **level))
    assert request.counted == (1000, GI)  # a container asks for memory, hence no default for the other
    assert request.scored == (1000, GI + DEFAULT_MEMORY)


def test_a_resize_counts_the_greatest_of_wanted_allocated_and_actual():
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}, "resources": {}}]}
    down = pod("p", cpu("c", "1"), status=status)
    assert dict(Resources.of_pod(down).amounts) == {"cpu": 2000}
    up = pod("p", cpu("c", "3"), status=status)
    assert dict(Resources.of_pod(up).amounts) == {"cpu": 3000}
    up["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert dict(Resources.of_pod(up).amounts) == {"cpu": 2000}


def test_what_a_node_offers():
    offers = allocatable(node("n", "2", "1Gi", extra={"example.com/x": "3", "unknown": "1", "memory": "9000Pi"}))
    assert offers == {"cpu": 2000, "memory": MAX_AMOUNT, "pods": 110, "example.com/x": 3}


def test_an_unreadable_quantity_is_named():
    with pytest.raises(ValueError, match=r"container c\.resources\.requests\[cpu\].*fast"):
        Resources.of_pod(pod("p", cpu("c", "fast")))


def test_host_ports_of_containers_and_sidecars():
    def on(number, **more):
        return [{"containerPort": 1, "hostPort": number, **more}]

    initial = [container("i", ports=on(1)), container("s", ports=on(2, protocol="UDP"), restartPolicy="Always")]
    run = container("c", ports=[*on(3, hostIP="10.0.0.1"), {"containerPort": 9}])
    assert host_ports(pod("p", run, initContainers=initial)) == (("0.0.0.0", "UDP", 2), ("10.0.0.1", "TCP", 3))


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), True),
        (("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 81), False),
    ],
)
def test_ports_conflict(other, conflict):
    assert ports_conflict(("10.0.0.1", "TCP", 80), other) is conflict
    assert ports_conflict(other, ("10.0.0.1", "TCP", 80)) is conflict
