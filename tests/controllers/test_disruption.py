"""PodDisruptionBudgets: their status, evictions that count them down, and that no order of evictions breaks one."""

import pytest

from steersman.api.errors import ApiError
from steersman.controllers.disruption import Disruption
from steersman.kernel.object import Key
from steersman.kernel.world import World
from tests.controllers.worlds import LABELS, as_object, client, explore, make, objects, one, replicaset, settle, user
from tests.controllers.worlds import template as pod_template

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def budget(name="web", **spec):
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }


def with_pods(count, *more, ready=True, owner=True, users=(), controllers=(Disruption,), **options):
    """A world with a ReplicaSet `web` of `count` pods."""
    w = make(controllers, [replicaset(count), *more], users, **options)
    c = client(w)
    owner_ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    owner_ref["uid"] = one(w, "apps/v1/ReplicaSet").metadata.uid
    for number in range(count):
        body = as_object(pod_template())
        meta = {**body["metadata"], "name": f"p{number}", "namespace": "default"}
        if owner:
            meta["ownerReferences"] = [owner_ref]
        made = c.create({**body, "metadata": meta})
        if ready:
            c.patch_status(made, READY)
    return w


def numbers(w, name="web"):
    status = one(w, "policy/v1/PodDisruptionBudget", name).status
    return tuple(
        status.get(part) for part in ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    )


def pod_key(number):
    return Key("", "Pod", "default", f"p{number}")


def evict(w, number=0, **options):
    client(w).evict(pod_key(number), **options)


def refusal(w, number=0):
    with pytest.raises(ApiError) as caught:
        evict(w, number)
    error = caught.value
    return error.code, error.message, [cause.message for cause in error.causes], error.retry_after_seconds


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2, 3, 1)),
        ({"minAvailable": 5}, (3, 5, 3, 0)),
        ({"minAvailable": "50%"}, (3, 2, 3, 1)),
        ({"maxUnavailable": 1}, (3, 2, 3, 1)),
        ({"maxUnavailable": "10%"}, (3, 2, 3, 1)),
        ({"maxUnavailable": 0}, (3, 3, 3, 0)),
    ],
)
def test_the_numbers(spec, expected):
    w = settle(with_pods(3, budget(**spec)))
    assert numbers(w) == expected
    status = one(w, "policy/v1/PodDisruptionBudget").status
    (told,) = status.conditions
    assert told.reason == ("SufficientPods" if expected[3] else "InsufficientPods") and told.message == ""
    assert status.observedGeneration == told.observedGeneration == 1


def test_the_scale_counts_and_not_the_pods_there_are():
    w = with_pods(2, budget(maxUnavailable="50%"))
    client(w).patch(Key("apps", "ReplicaSet", "default", "web"), {"spec": {"replicas": 6}})
    settle(w)
    assert numbers(w) == (2, 3, 6, 0)


def test_pods_without_a_controller_do_not_count_for_a_percentage():
    w = settle(with_pods(2, budget(maxUnavailable=1), owner=False))
    assert numbers(w) == (2, 0, 0, 0)


def test_what_cannot_be_counted_may_not_be_disrupted():
    w = settle(with_pods(2, budget(maxUnavailable=1)))
    assert numbers(w)[3] == 1
    client(w).delete(Key("apps", "ReplicaSet", "default", "web"))
    client(w).patch_status(pod_key(0), {"phase": "Pending"})
    settle(w)
    status = one(w, "policy/v1/PodDisruptionBudget").status
    assert status.disruptionsAllowed == 0 and status.conditions[0].reason == "SyncFailed"
    assert status.conditions[0].message == 'found no controllers for pod "p0"'
    head = "The disruption budget web does not allow evicting pods currently because it failed sync: "
    assert refusal(w, 1)[2] == [head + 'found no controllers for pod "p0"']


def test_an_eviction_counts_down_and_is_refused_at_zero():
    w = settle(with_pods(3, budget(minAvailable=2)))
    evict(w, 0)
    status = one(w, "policy/v1/PodDisruptionBudget").status
    assert status.disruptionsAllowed == 0 and list(status.disruptedPods) == ["p0"]
    going = one(w, "v1/Pod", "p0")
    assert "deletionTimestamp" in going.metadata
    target = next(each for each in going.status.conditions if each.type == "DisruptionTarget")
    assert (target.reason, target.message) == ("EvictionByEvictionAPI", "Eviction API: evicting")
    code, message, causes, retry_after = refusal(w, 1)
    assert (code, retry_after) == (429, 0)
    assert message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert causes == ["The disruption budget web does not allow evicting pods currently"]
    settle(w)
    assert numbers(w) == (2, 2, 3, 0)
    assert refusal(w, 1)[2] == ["The disruption budget web needs 2 healthy pods and has 2 currently"]
    evict(w, 0)  # it is going already: nobody has to allow that


def test_a_budget_nobody_has_looked_at_yet_says_so():
    w = with_pods(1, budget(minAvailable=0))
    assert refusal(w) == (
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
        ["The disruption budget web is still being processed by the server."],
        10,
    )


def test_two_budgets_are_one_too_many():
    w = settle(with_pods(1, budget(minAvailable=0), budget("other", minAvailable=0)))
    code, message, _, _ = refusal(w)
    assert code == 500 and message.startswith("This pod has more than one PodDisruptionBudget")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Pending"])
def test_who_does_not_run_may_always_go(phase):
    w = settle(with_pods(1, budget(minAvailable=1)))
    client(w).patch_status(pod_key(0), {"phase": phase})
    settle(w)
    evict(w, grace=0)
    assert one(w, "v1/Pod", "p0") is None


@pytest.mark.parametrize(
    ("policy", "healthy", "goes"),
    [("AlwaysAllow", 1, True), ("IfHealthyBudget", 1, False), (None, 1, False), ("IfHealthyBudget", 2, True)],
)
def test_the_unhealthy_go_as_the_budget_says(policy, healthy, goes):
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    w = with_pods(3, budget(minAvailable=2, **spec), ready=False)
    for number in range(3):
        conditions = [{"type": "Ready", "status": "True" if number > 2 - healthy else "False"}]
        client(w).patch_status(pod_key(number), {"phase": "Running", "conditions": conditions})
    settle(w)
    before = one(w, "policy/v1/PodDisruptionBudget")
    if not goes:
        assert refusal(w)[0] == 429
        return
    evict(w)
    assert "deletionTimestamp" in one(w, "v1/Pod", "p0").metadata
    assert one(w, "policy/v1/PodDisruptionBudget") == before


def test_an_eviction_that_came_to_nothing_is_forgotten():
    w = settle(with_pods(3, budget(minAvailable=2)))
    status = one(w, "policy/v1/PodDisruptionBudget").status
    now = {"disruptedPods": {"p0": "2026-01-01T00:00:00Z"}, "disruptionsAllowed": 0}
    client(w).patch_status(Key("policy", "PodDisruptionBudget", "default", "web"), {**status, **now})
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    client(w).patch_status(pod_key(0), {**READY, "conditions": [*READY["conditions"], target]})
    settle(w, timers=True)
    assert numbers(w) == (3, 2, 3, 1) and "disruptedPods" not in one(w, "policy/v1/PodDisruptionBudget").status
    conditions = {each.type: each.status for each in one(w, "v1/Pod", "p0").status.conditions}
    assert conditions == {"Ready": "True", "DisruptionTarget": "False"}


def healthy_left(w: World) -> int:
    return sum("deletionTimestamp" not in pod.metadata for pod in objects(w, "v1/Pod"))


@pytest.mark.parametrize("lag", [0, 1])
def test_no_order_of_evictions_takes_more_than_the_budget_allows(lag):
    """Two people drain at once while the controller counts. At the end one pod may be gone, and the status is right."""

    def evicting(number):
        return user(f"evict-{number}", lambda c: c.evict(pod_key(number)))

    def start():
        w = settle(with_pods(2, budget(minAvailable=1), users=[evicting(0), evicting(1)], lag=lag))
        return w.fork()

    found = explore(start, lambda w: healthy_left(w) >= 1, skip=("fire",))
    assert found.states > 5 and not found.findings
    assert {healthy_left(w) for w in found.terminal} == {1}
    assert {numbers(w) for w in found.terminal} == {(1, 1, 2, 0)}
