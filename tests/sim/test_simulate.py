"""Whole simulations of small traces: what they do and what they report."""

import orjson
import pytest

import steersman.sim
from steersman.api.controller import Controller
from steersman.controllers.builtin import builtin, replacing
from steersman.kernel.effect import MICRO
from steersman.sim import NodesError, Simulation, Stalled, simulate
from steersman.sim.drive import backoff
from steersman.trace import sktrace
from tests.sim.traces import deployment, life, named, nodes, pod, scaling, trace


def settled(report):
    assert not report.refused and not report.faults and not report.notes
    return report


def test_a_deployment_grows_waits_for_room_shrinks_and_goes():
    report = settled(simulate(scaling(), nodes(1)))
    # By the time of the 6 replicas the bare pod has ended, so 4 CPU hold 4 of them; two never find room.
    assert report.pods == {
        "created": 7,
        "scheduled": 5,
        "completed": 1,
        "failed": 0,
        "deleted": 6,
        "running": 0,
        "pending": 0,
    }
    assert report.most_waiting == 2 and not report.pending
    # Those two were without a node from 30 s to 90 s: they count although they never got one.
    assert (report.percentile(50), report.percentile(90)) == (0.0, 60.0)
    assert report.trace_end - report.start == 150 * MICRO <= report.end - report.start


def test_what_is_still_pending_is_told_with_the_schedulers_words():
    report = settled(simulate(trace((0, [deployment(replicas=5)], []), (100, [], [])), nodes(1)))
    (group,) = report.pending
    assert (group.message, group.pods) == ("0/1 nodes are available: 1 Insufficient cpu.", 1)
    assert group.example.startswith("shop/web-")
    assert report.pods["running"] == 4 and report.pods["pending"] == 1
    assert report.still_waiting == (100 * MICRO,) and report.most_waiting == 1
    assert "1 × 0/1 nodes are available: 1 Insufficient cpu." in report.text()


def test_pending_time_runs_from_creation_to_binding():
    room = trace(
        (0, [deployment("first", replicas=4)], []),
        (10, [deployment("second", replicas=1)], []),
        (50, [], [named(deployment("first"))]),
        (200, [], []),
    )
    report = settled(simulate(room, nodes(1)))
    assert report.percentile(50) == 0.0
    # Until the first ones are gone, and kube-scheduler's back-off is over.
    assert 40.0 <= report.percentile(100) <= 40 + 30 + 10


def test_utilisation_is_over_the_time_of_the_trace():
    steady = trace((0, [pod("p")], []), (50, [], [named(pod("p"))]), (100, [], []))
    report = settled(simulate(steady, nodes(1)))
    by_name = {share.resource: share for share in report.shares}
    assert by_name["cpu"].mean == pytest.approx(0.25 / 2, abs=0.01)
    assert by_name["cpu"].peak == 0.25
    assert by_name["memory"].peak == 1 / 16 and by_name["pods"].peak == 0.1


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_ends_after_its_recorded_life(policy):
    recorded = {("v1.Pod", "shop/job"): {1: (life(20),)}}
    events = ((0, [pod("job", restartPolicy=policy)], []), (60, [], []))
    report = settled(simulate(trace(*events, lifecycles=recorded), nodes(1)))
    assert report.pods["completed"] == 1 and report.pods["running"] == 0
    cpu = next(share for share in report.shares if share.resource == "cpu")
    assert cpu.mean == pytest.approx(0.25 * 20 / 60, abs=0.02)


def test_a_pod_that_never_ends_by_itself_is_told():
    recorded = {("v1.Pod", "shop/job"): {1: (life(20),)}}
    report = simulate(trace((0, [pod("job")], []), (60, [], []), lifecycles=recorded), nodes(1))
    assert report.pods["running"] == 1
    assert [(note.what, note.objects) for note in report.notes] == [("pods with a recorded end", 1)]


def test_the_lives_of_an_owner_are_dealt_in_turn():
    recorded = {("apps/v1.Deployment", "shop/web"): {1: (life(10), life(30))}}
    obj = deployment(replicas=3)
    obj["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    report = simulate(trace((0, [obj], []), (60, [], []), lifecycles=recorded), nodes(1))
    assert [(note.what, note.objects) for note in report.notes] == [("pods with a recorded end", 3)]


def test_kinds_without_a_controller_are_applied_and_told():
    made = deployment()
    spec = {part: made["spec"][part] for part in ("selector", "template")}
    recording = trace((0, [{**made, "kind": "DaemonSet", "spec": spec}], []))
    report = simulate(recording, nodes(1), controllers=builtin("deployment", "replicaset"))
    assert [(left.what, left.objects) for left in report.not_simulated] == [("apps/v1.DaemonSet", 1)]
    assert not report.refused


def test_what_the_api_refuses_is_told_and_the_rest_goes_on():
    bad = deployment("bad", replicas=-1)
    report = simulate(trace((0, [bad, deployment(replicas=1)], [named(pod("never-there"))])), nodes(1))
    (left,) = report.refused
    assert left.what == "apply Deployment.apps" and "spec.replicas" in left.why and "shop/bad" in left.why
    assert report.pods["running"] == 1


def test_constraints_not_evaluated_keep_a_pod_waiting_unless_told_otherwise():
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    made = trace((0, [pod("p", volumes=[claim])], []))
    assert simulate(made, nodes(1)).pods["pending"] == 1
    report = simulate(made, nodes(1), ignore_unsupported=True)
    assert report.pods["running"] == 1 and "without regard to its volumes" in report.notes[0].why


def test_a_kwok_taint_is_tolerated():
    tainted = nodes(1, taints=[{"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}])
    assert simulate(trace((0, [deployment()], [])), tainted).pods["running"] == 2


def test_an_object_deleted_and_applied_in_one_second_is_there():
    again = trace((0, [pod("p")], []), (30, [], [named(pod("p"))]), (30, [pod("p")], []), (60, [], []))
    report = settled(simulate(again, nodes(1)))
    assert report.pods["created"] == 2 and report.pods["running"] == 1


def test_an_empty_trace_is_simulated():
    report = simulate(trace(), nodes(1))
    assert report.pods["created"] == 0 and report.percentile(50) is None
    assert "pending time" not in report.text()


def test_equal_seeds_equal_bytes():
    first, again, other = (simulate(scaling(), nodes(2), seed) for seed in (1, 1, 2))
    assert first.json() == again.json() and first.digest == again.digest
    assert other.digest != first.digest


def test_the_json_says_nothing_of_real_time_unless_asked():
    report = simulate(scaling(), nodes(1))
    assert "wall" not in orjson.loads(report.json())
    assert orjson.loads(report.json(timing=True))["wall"]["seconds"] >= 0


def test_a_file_and_a_number_of_nodes(tmp_path):
    path = tmp_path / "t.sktrace"
    sktrace.write(path, scaling())
    report = steersman.sim.simulate(path, nodes=3, seed=5)
    assert (report.trace, report.nodes, report.seed) == (str(path), 3, 5)
    with pytest.raises(NodesError):
        simulate(path, nodes=0)


def test_it_can_be_stopped_and_says_so():
    def watch(simulation: Simulation) -> None:
        simulation.stop = "interrupted"

    report = simulate(scaling(), nodes(1), watch=watch)
    assert report.partial and report.text().splitlines()[2].startswith("PARTIAL: interrupted")
    assert orjson.loads(report.json())["partial"] == "interrupted"


class Restless(Controller):
    name, kind = "deployment", "apps/v1/Deployment"

    def reconcile(self, c, key):
        obj = c.get(key)
        if obj is not None:
            turn = int((obj.metadata.annotations or {}).get("turn", 0))
            c.patch(key, {"metadata": {"annotations": {"turn": str(turn + 1)}}})


def test_controllers_that_go_round_in_circles_end_it(monkeypatch):
    monkeypatch.setattr("steersman.sim.drive.MAX_STEPS_AT_ONCE", 200)
    with pytest.raises(Stalled, match=r"deployment/Deployment\.apps shop/web"):
        simulate(trace((0, [deployment()], [])), nodes(1), controllers=replacing("deployment", Restless))


class Broken(Controller):
    name, kind = "deployment", "apps/v1/Deployment"

    def reconcile(self, c, key):
        raise RuntimeError("no idea")


def test_a_controller_that_raises_is_told_and_tried_again_with_back_off():
    made = trace((0, [deployment()], []), (10, [], []))
    report = simulate(made, nodes(1), controllers=replacing("deployment", Broken), tail=0)
    (fault,) = report.faults
    # After 0, 5, 15, 35, … ms: ten times in the first 5.115 s, an eleventh at 10.235 s is too late.
    assert (fault.what, fault.objects) == ("deployment", 11) and "RuntimeError: no idea" in fault.why


def test_back_off_doubles_up_to_its_limit():
    assert [backoff(n) for n in (1, 2, 3)] == [5_000, 10_000, 20_000]
    assert backoff(50) == backoff(1000) == 1000 * MICRO


def test_all_controllers_are_simulated_by_default():
    made = trace((0, [deployment()], []))
    assert simulate(made, nodes(1)).digest == simulate(made, nodes(1), controllers=builtin()).digest
