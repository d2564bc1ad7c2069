from steersman.api.kinds import Kinds
from steersman.sim.script import TOLERATION, script_of
from steersman.trace.gvk import GVK
from steersman.trace.tracked import Tracked
from tests.sim.traces import START, deployment, named, pod, trace

KINDS = Kinds.builtin()


def custom() -> dict:
    return {
        "apiVersion": "volcano.sh/v1",
        "kind": "Gang",
        "metadata": {"name": "g", "namespace": "shop"},
        "spec": {"tasks": [{"template": {"spec": {}}}, {"template": {"spec": {}}}]},
    }


def test_objects_are_applied_by_simkube_without_status_and_owners():
    obj = deployment()
    obj["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"}]
    obj["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    obj["status"] = {"replicas": 3}
    (step,) = script_of(trace((5, [obj], [])), KINDS).steps
    (request,) = step.requests
    assert step.at == (START + 5) * 1_000_000 and step.namespaces == ("shop",)
    assert (request.verb, request.manager, request.options["force"]) == ("apply", "simkube", True)
    assert set(request.body) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(request.body["metadata"]) == {"name", "namespace", "annotations"}
    assert obj["status"] == {"replicas": 3}  # the trace is not changed


def test_deletions_come_after_and_have_no_grace():
    (step,) = script_of(trace((0, [deployment("a")], [named(deployment("b"))])), KINDS).steps
    assert [request.verb for request in step.requests] == ["apply", "delete"]
    assert step.requests[1].options["grace"] == 0


def test_unknown_kinds_and_versions_are_named():
    old = {**deployment(), "apiVersion": "apps/v1beta1"}
    script = script_of(trace((0, [custom(), custom(), old], [named(custom())])), KINDS)
    assert [(unknown.kind, unknown.objects) for unknown in script.unknown] == [
        ("apps/v1beta1.Deployment", 1),
        ("volcano.sh/v1.Gang", 3),
    ]
    assert script.steps[0].requests == () and script.steps[0].namespaces == ()


def test_objects_are_counted_once():
    script = script_of(trace((0, [deployment()], []), (1, [deployment(replicas=3), pod("p")], [])), KINDS)
    assert script.applied == {GVK("", "v1", "Pod"): 1, GVK("apps", "v1", "Deployment"): 1}


def test_templates_tolerate_kwok_only_when_asked():
    plain = script_of(trace((0, [deployment()], [])), KINDS).steps[0].requests[0].body
    assert "tolerations" not in plain["spec"]["template"]["spec"]
    both = script_of(trace((0, [deployment(), pod("p")], [])), KINDS, tolerate_kwok=True).steps[0].requests
    assert both[0].body["spec"]["template"]["spec"]["tolerations"] == [TOLERATION]
    assert both[1].body["spec"]["tolerations"] == [TOLERATION]


def test_a_path_may_name_every_element_of_an_array():
    obj = {**custom(), "apiVersion": "batch/v1", "kind": "Job"}  # a kind that is known, with templates elsewhere
    config = {
        "batch/v1.Job": Tracked(
            paths=(
                "/spec/tasks/*/template",
                "/spec/none/0",
                "/spec/tasks/9",
                "/spec/tasks/²",
                "/spec/tasks/" + "9" * 5000,
            )
        )
    }
    (step,) = script_of(trace((0, [obj], []), config=config), KINDS, tolerate_kwok=True).steps
    tasks = step.requests[0].body["spec"]["tasks"]
    assert [task["template"]["spec"]["tolerations"] for task in tasks] == [[TOLERATION]] * 2
