"""A pod's life on a virtual node as data: edges, statuses, addresses, delays."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.times import MICRO, parse_time
from steersman.nodes import status
from steersman.nodes.node import is_ready, node_object, ready_status
from steersman.nodes.stages import Delay, Stages, seeded

T1, T2, T3 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"


def pod(policy="Always", annotations=None, owners=None, **spec):
    meta = {"name": "p", "namespace": "default", "uid": "u-1", "generation": 1}
    if annotations:
        meta["annotations"] = annotations
    if owners:
        meta["ownerReferences"] = owners
    return {
        "metadata": meta,
        "spec": {"nodeName": "n", "restartPolicy": policy, "containers": [{"name": "c", "image": "i"}], **spec},
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def live(p, times=(T1, T2, T3)):
    """The pod after each edge until there is none."""
    out = [p]
    for time in times:
        edge = status.next_edge(out[-1])
        if not edge:
            break
        out.append({**out[-1], "status": status.after_edge(out[-1], edge, time)})
    return out


def condition(p, type_):
    return next(each for each in p["status"]["conditions"] if each["type"] == type_)


def test_a_service_pod_comes_up_in_two_edges():
    born, accepted, running = live(pod())
    assert status.next_edge(born) == status.ACCEPT and status.next_edge(running) == ""
    assert accepted["status"]["startTime"] == T1 and accepted["status"]["phase"] == "Pending"
    waiting = accepted["status"]["containerStatuses"][0]
    assert waiting["state"] == {"waiting": {"reason": "ContainerCreating"}} and waiting["ready"] is False
    assert condition(accepted, "Ready")["message"] == "containers with unready status: [c]"
    assert running["status"]["phase"] == "Running" and running["status"]["qosClass"] == "Burstable"
    assert running["status"]["containerStatuses"][0]["state"] == {"running": {"startedAt": T2}}
    assert condition(running, "Ready")["lastTransitionTime"] == T2
    assert condition(running, "PodScheduled")["lastTransitionTime"] == T1, "what did not change keeps its time"
    assert running["status"]["podIPs"] == [{"ip": running["status"]["podIP"]}]


def test_what_changes_while_a_pod_runs_is_seen():
    *_, running = live(pod(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]))
    assert running["status"]["containerStatuses"][0]["resources"] == {"requests": {"cpu": "1"}}
    spec = {**running["spec"], "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}
    spec["ephemeralContainers"] = [{"name": "debug", "image": "d"}]
    changed = {**running, "metadata": {**running["metadata"], "generation": 2}, "spec": spec}
    assert status.next_edge(changed) == status.SEE
    _, seen = live(changed, (T3,))
    assert seen["status"]["observedGeneration"] == 2 and status.next_edge(seen) == ""
    assert seen["status"]["containerStatuses"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert seen["status"]["containerStatuses"][0]["state"] == running["status"]["containerStatuses"][0]["state"]
    (debug,) = seen["status"]["ephemeralContainerStatuses"]
    assert debug["state"] == {"running": {"startedAt": T3}} and "started" not in debug


def test_a_pod_that_ends_by_itself():
    *_, done = live(pod("Never", {status.LIFETIME: "5"}))
    assert done["status"]["phase"] == "Succeeded" and status.next_edge(done) == ""
    ended = done["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended == {"exitCode": 0, "reason": "Completed", "startedAt": T2, "finishedAt": T3}
    assert condition(done, "Ready")["reason"] == "PodCompleted"


def test_exit_codes_and_restart_policies():
    lifetime = {status.LIFETIME: "5", status.EXIT_CODE: "3"}
    *_, failed = live(pod("Never", lifetime))
    assert failed["status"]["phase"] == "Failed"
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    *_, retried = live(pod("OnFailure", lifetime))
    assert retried["status"]["phase"] == "Succeeded"
    *_, forever = live(pod("Always", lifetime))
    assert forever["status"]["phase"] == "Running"
    *_, jobs = live(pod("Never", owners=[{"kind": "Job", "controller": True}]))
    assert jobs["status"]["phase"] == "Succeeded"
    assert status.exit_code(pod("Never", {status.EXIT_CODE: "many"})) == 1
    assert status.lifetime(pod("Never", {status.LIFETIME: "soon"})) is None


def test_absurd_annotations_harm_nobody():
    for text in ("9" * 5000, "256", "-1", "³", "1_0"):
        assert status.exit_code(pod("Never", {status.EXIT_CODE: text})) == 1
    for text in ("inf", "1e308", "9" * 5000):
        assert status.lifetime(pod("Never", {status.LIFETIME: text})) == status.MAX_LIFETIME
    for text in ("nan", "-inf", "-1"):
        assert status.lifetime(pod("Never", {status.LIFETIME: text})) == 0.0


def test_a_status_that_somebody_else_wrote_may_lack_its_times():
    p = pod("Never", {status.LIFETIME: "5"})
    p = {**p, "metadata": {**p["metadata"], "creationTimestamp": T1}, "status": {"phase": "Running"}}
    assert status.next_edge(p) == status.COMPLETE and status.started_at(p) == parse_time(T1)


def test_init_containers_and_sidecars():
    inits = [{"name": "setup", "image": "i"}, {"name": "proxy", "image": "i", "restartPolicy": "Always"}]
    _, accepted, running = live(pod(initContainers=inits))
    assert condition(accepted, "Initialized")["reason"] == "ContainersNotInitialized"
    setup, proxy = running["status"]["initContainerStatuses"]
    assert setup["state"]["terminated"]["exitCode"] == 0 and proxy["state"] == {"running": {"startedAt": T2}}


def test_others_conditions_stay():
    p = pod()
    p["status"]["conditions"] = [{"type": "example.com/gate", "status": "True"}]
    *_, running = live(p)
    assert running["status"]["conditions"][-1] == {"type": "example.com/gate", "status": "True"}


def test_deletion_is_one_edge_and_finalizers_are_waited_for():
    p = pod()
    p["metadata"]["deletionTimestamp"] = T1
    p["metadata"]["deletionGracePeriodSeconds"] = 30
    assert status.next_edge(p) == status.REMOVE
    p["metadata"]["finalizers"] = ["example.com/hold"]
    assert status.next_edge(p) == status.END, "whoever holds it learns how it ended"
    p["status"] = status.after_edge(p, status.END, T1)
    ended = p["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (p["status"]["phase"], ended["exitCode"]) == ("Failed", 143)
    assert status.next_edge(p) == status.REMOVE
    p["metadata"]["deletionGracePeriodSeconds"] = 0
    assert status.next_edge(p) == ""


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_addresses_are_canonical_unique_local_and_of_their_node(node, uid):
    host, own = (ipaddress.ip_address(text) for text in (status.node_address(node), status.pod_address(node, uid)))
    assert str(host) == status.node_address(node) and host in ipaddress.ip_network("fd00::/8")
    assert int(host) >> 64 == int(own) >> 64 and host != own


def test_ten_thousand_pods_have_ten_thousand_addresses():
    found = {status.pod_address(f"n{number % 50}", f"uid-{number}") for number in range(10_000)}
    assert len(found) == 10_000


@given(st.integers(0, 99), st.text(max_size=8))
def test_delays_lie_between_their_bounds_and_are_functions_of_the_seed(seed, uid):
    draw = seeded(seed)
    assert draw(uid, "pull") == seeded(seed)(uid, "pull")
    assert MICRO <= Stages().pull.micro(draw(uid, "pull")) <= 3 * MICRO
    assert Delay(2.0, 1.0).micro(draw(uid, "x")) == Delay(2.0).micro(0.9) == 2 * MICRO


def test_a_node_object_is_ready_and_of_its_size():
    node = node_object("n", cpu="4", memory="8Gi", pods=10)
    assert is_ready(node) and node["status"]["allocatable"] == node["status"]["capacity"]
    assert node["status"]["capacity"]["cpu"] == "4" and node["status"]["capacity"]["pods"] == "10"
    assert node["status"]["addresses"][0]["address"] == status.node_address("n")


def test_what_a_node_says_of_itself_is_kept():
    said = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}}
    kept = ready_status(said, T1)
    assert (kept["capacity"], kept["allocatable"]) == ({"cpu": "2"}, {"cpu": "1"}) and is_ready({"status": kept})
