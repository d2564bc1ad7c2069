"""The scheduler's behaviour as its users see it: messages, scores worked out by hand, events, ties, what is absent."""

import pytest

from steersman.kernel.value import freeze
from steersman.sched.core import Decision, Scheduler
from tests.sched.clusters import container, node, pod, required

S = 1_000_000


def cluster(*nodes, pods=(), **options):
    scheduler = Scheduler(**options)
    scheduler.rebuild(nodes, pods)
    return scheduler


def decide(scheduler, *pods, now=0):
    for each in pods:
        scheduler.pod_upsert(each)
    return scheduler.schedule(now, 1000)


def only(scheduler, each, now=0):
    (decision,) = decide(scheduler, each, now=now)
    return decision


def asks(cpu="0", memory="0", **more):
    return container("c", {"cpu": cpu, "memory": memory, **more})


def on(name, where, **resources):
    return pod(name, asks(**resources), nodeName=where)


def test_the_message_counts_each_node_once_under_its_first_filter_and_each_lacking_resource():
    nodes = [node(f"small{i}", "1") for i in range(3)]
    nodes += [node(f"tainted{i}", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]) for i in range(2)]
    nodes += [node("cordoned", unschedulable=True, taints=[{"key": "k", "effect": "NoExecute"}])]
    nodes += [node("elsewhere", labels={"zone": "b"}), node("tiny", "1", "1Gi", pods="0")]
    for each in nodes:
        each["metadata"]["labels"] = {"zone": "a"} | each["metadata"]["labels"]
    big = pod("big", asks("2", "2Gi"), nodeSelector={"zone": "a"})
    assert only(cluster(*nodes), big).message == (
        "0/8 nodes are available: 1 Insufficient memory, 1 Too many pods, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, "
        "2 node(s) had untolerated taint(s), 4 Insufficient cpu."
    )


def test_no_nodes():
    assert only(cluster(), pod("p")).message == "no nodes available to schedule pods"


def test_a_pod_pinned_to_a_node_says_so_of_all_others():
    here = required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]})
    nodes = [node(f"n{i}", "1") for i in range(3)]
    assert only(cluster(*nodes), pod("p", asks("1"), affinity=here)).node == "n1"
    assert only(cluster(*nodes), pod("p", asks("2"), affinity=here)).message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_terms_that_name_two_nodes_at_once_conflict():
    names = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]
    decision = only(cluster(node("n0")), pod("p", affinity=required({"matchFields": names})))
    assert decision.message == "0/1 nodes are available: pod affinity terms conflict."


def test_host_ports():
    web = pod("web", container("c", ports=[{"containerPort": 80, "hostPort": 80}]))
    scheduler = cluster(
        node("n"), pods=[{**web, "metadata": {"name": "old"}, "spec": {**web["spec"], "nodeName": "n"}}]
    )
    words = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    assert only(scheduler, web).message == words
    scheduler.pod_delete(("", "old"))
    assert scheduler.schedule(S, 9) == [Decision(("default", "web"), "n")]


def test_least_allocated_and_balanced_allocation_by_hand():
    """A pod of 1 CPU and 1 GiB.

    n0 of 4 CPU, 8 GiB with 1 CPU, 1 GiB booked: fit (50 + 75)//2 = 62; balance of shares .25, .125 is 93 and of
    .5, .25 is 87, hence 50 + (50 + 87 - 93)//2 = 72; in all 134.
    n1 of 4 CPU, 2 GiB, empty: fit (75 + 50)//2 = 62; balance of 0, 0 is 100 and of .25, .5 is 87, hence
    50 + (50 + 87 - 100)//2 = 68; in all 130.
    n2 of 4 CPU, 8 GiB with 1m, 1 MiB booked: fit (74 + 87)//2 = 80; 99 and 93, hence 72; in all 152.
    n3 of 4 CPU, 8 GiB, empty: fit (75 + 87)//2 = 81; 100 and 93, hence 71; in all 152, as n2.
    """
    wants = pod("p", asks("1", "1Gi"))
    nodes = [node("n0", "4", "8Gi"), node("n1", "4", "2Gi"), node("n2", "4", "8Gi"), node("n3", "4", "8Gi")]
    pods = [on("one", "n0", cpu="1", memory="1Gi"), on("two", "n2", cpu="1m", memory="1Mi")]
    assert cluster(nodes[1], pods=pods).best_nodes(wants) == ("n1",)
    assert cluster(*nodes[:2], pods=pods).best_nodes(wants) == ("n0",)
    assert cluster(*nodes, pods=pods).best_nodes(wants) == ("n2", "n3")


def test_pods_that_ask_for_nothing_are_spread_by_the_defaults():
    scheduler = cluster(node("n0"), node("n1"), node("n2"))
    decisions = decide(scheduler, *(pod(f"p{i}", container()) for i in range(6)))
    assert [d.node for d in decisions] == ["n0", "n1", "n2"] * 2


def test_preferences_outweigh_room_and_soft_taints_outweigh_preferences():
    prefer = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    liked = pod(
        "p", asks("1"), affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [prefer]}}
    )
    full = [on("old", "n1", cpu="3")]
    nodes = [node("n0"), node("n1", labels={"disk": "ssd"})]
    assert cluster(*nodes, pods=full).best_nodes(liked) == ("n1",)
    nodes[1]["spec"]["taints"] = [{"key": "k", "effect": "PreferNoSchedule"}]
    assert cluster(*nodes, pods=full).best_nodes(liked) == ("n0",)
    liked["spec"]["tolerations"] = [{"key": "k", "operator": "Exists"}]
    assert cluster(*nodes, pods=full).best_nodes(liked) == ("n1",)


def test_ties_are_broken_by_the_caller_or_by_name():
    nodes = [node(name) for name in ("c", "a", "b")]
    assert only(cluster(*nodes), pod("p")).node == "a"
    seen = []
    scheduler = cluster(*nodes, tie=lambda count: seen.append(count) or count - 1)
    assert [d.node for d in decide(scheduler, *(pod(f"p{i}") for i in range(3)))] == ["c", "b", "a"]
    assert seen == [3, 2]  # one node left is no tie
    with pytest.raises(ValueError, match=r"tie\(3\) gave 3"):
        only(cluster(*nodes, tie=lambda count: count), pod("p"))


def test_order_is_by_priority_then_age_then_name():
    scheduler = cluster(node("n"))
    pods = [pod(name) for name in "dcba"]
    pods[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    pods[1]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    pods[3]["spec"]["priority"] = -5
    pods[2]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    assert [d.pod[1] for d in decide(scheduler, *pods)] == ["d", "b", "c", "a"]


def test_an_unschedulable_pod_is_tried_again_when_something_helps_and_not_before():
    scheduler = cluster(node("n", "1"), pods=[on("old", "n", cpu="1")])
    wants = pod("p", asks("1"))
    assert only(scheduler, wants).node is None
    scheduler.pod_upsert({**wants, "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})
    scheduler.node_upsert(node("n", "1"))  # a heartbeat
    assert scheduler.next_deadline() is None
    scheduler.pod_delete(("default", "old"))
    assert scheduler.next_deadline() == S
    assert scheduler.schedule(S - 1, 9) == []
    assert scheduler.schedule(S, 9) == [Decision(("default", "p"), "n")]


def test_a_pod_going_away_does_not_help_one_that_lacks_a_label():
    scheduler = cluster(node("n"), pods=[on("old", "n", cpu="1")])
    only(scheduler, pod("p", nodeSelector={"zone": "a"}))
    scheduler.pod_delete(("default", "old"))
    assert scheduler.next_deadline() is None
    scheduler.node_upsert(node("n", labels={"zone": "a"}))
    assert scheduler.schedule(S, 9) == [Decision(("default", "p"), "n")]


def test_a_pod_that_shrinks_helps_those_that_wait():
    scheduler = cluster(node("n", "2"), pods=[on("old", "n", cpu="2")])
    only(scheduler, pod("p", asks("1")))
    scheduler.pod_upsert(on("old", "n", cpu="2"))
    assert scheduler.next_deadline() is None
    scheduler.pod_upsert(on("old", "n", cpu="1"))
    assert scheduler.schedule(S, 9) == [Decision(("default", "p"), "n")]


def test_the_message_is_that_of_the_moment():
    scheduler = cluster(node("n", "1"))
    assert only(scheduler, pod("p", asks("2"))).message == "0/1 nodes are available: 1 Insufficient cpu."
    scheduler.node_upsert(node("n", "1", pods="0"))
    (again,) = scheduler.schedule(S, 9)
    assert again.message == "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods."


def test_ended_deleting_gated_and_foreign_pods():
    scheduler = cluster(node("n", "1"))
    ended = on("ended", "n", cpu="1")
    ended["status"] = {"phase": "Succeeded"}
    deleting = pod("deleting")
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    gated = pod("gated", schedulingGates=[{"name": "wait"}])
    foreign = pod("foreign", schedulerName="mine")
    assert decide(scheduler, ended, deleting, gated, foreign) == []
    scheduler.pod_upsert(pod("gated"))
    assert scheduler.schedule(0, 9) == [Decision(("default", "gated"), "n")]
    scheduler.pod_upsert(on("foreign", "n", cpu="1"))
    assert only(scheduler, pod("late", asks("1"))).message == "0/1 nodes are available: 1 Insufficient cpu."


def test_an_assumed_pod_counts_until_its_binding_fails():
    scheduler = cluster(node("n", "1"))
    first, second = decide(scheduler, pod("a", asks("1")), pod("b", asks("1")))
    assert (first.node, second.node) == ("n", None)
    scheduler.pod_upsert(pod("a", asks("1")))  # an update that is older than the binding
    scheduler.forget(("default", "a"), 2 * S)
    assert [d.pod[1] for d in scheduler.schedule(2 * S, 9)] == ["b"]
    assert scheduler.next_deadline() == 3 * S
    assert [d.node for d in scheduler.schedule(3 * S, 9)] == [None]


def test_another_incarnation_takes_the_place_of_the_first():
    scheduler = cluster(node("n", "1"), pods=[on("p", "n", cpu="1")])
    assert only(scheduler, pod("p", asks("1"), uid="second")).node == "n"


def test_hard_constraints_that_are_not_evaluated_are_refused_by_name_or_noted():
    claim = pod("p", volumes=[{"name": "v", "iscsi": {"iqn": "c"}}])
    scheduler = cluster(node("n"))
    assert only(scheduler, pod("same-but-for-the-disk")).node == "n"
    refused = only(scheduler, claim)
    assert refused.node is None
    assert "spec.volumes[0].iscsi (VolumeRestrictions)" in refused.message
    scheduler.node_upsert(node("m"))
    assert scheduler.next_deadline() is None  # no event helps
    lenient = only(cluster(node("n"), ignore_unsupported=True), claim)
    assert lenient.node == "n" and "without regard to spec.volumes[0]" in lenient.message


def test_claims_nobody_knows_keep_a_pod_waiting_or_are_noted():
    claim = pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    refused = only(cluster(node("n")), claim)
    assert refused.message == '0/1 nodes are available: persistentvolumeclaim "c" not found.'
    lenient = only(cluster(node("n"), ignore_unsupported=True), claim)
    assert lenient.node == "n" and "without regard to its volumes" in lenient.message


def test_soft_constraints_that_are_not_evaluated_are_noted():
    soft = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    hard = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    assert only(cluster(node("n")), pod("p", topologySpreadConstraints=[soft, hard])).node is None
    decision = only(cluster(node("n")), pod("p", topologySpreadConstraints=[soft]))
    assert decision.node == "n"
    assert decision.message == (
        "placed without regard to spec.topologySpreadConstraints[0] (PodTopologySpread): not evaluated yet"
    )


def test_frozen_objects_are_read_and_errors_name_the_object():
    scheduler = cluster(freeze(node("n", labels={"zone": "a"})))
    assert only(scheduler, freeze(pod("p", asks("1"), nodeSelector={"zone": "a"}))).node == "n"
    with pytest.raises(ValueError, match=r"node bad: status\.allocatable\[cpu\].*many"):
        scheduler.node_upsert(node("bad", "many"))
    with pytest.raises(ValueError, match="pod default/q: container c"):
        scheduler.pod_upsert(pod("q", asks("lots")))


def test_more_nodes_than_first_made_room_for():
    nodes = [node(f"n{i:03}", "1") for i in range(300)]
    scheduler = cluster(*nodes[:10])
    assert only(scheduler, pod("p", asks("1"))).node == "n000"
    for each in nodes[10:]:
        scheduler.node_upsert(each)
    decisions = decide(scheduler, *(pod(f"q{i:03}", asks("1")) for i in range(300)))
    assert [d.node for d in decisions] == [*(f"n{i:03}" for i in range(1, 300)), None]
