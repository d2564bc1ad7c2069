"""Job: counting, indexes, policies, suspension; and small worlds explored to the end."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.times import MICRO, parse_time
from steersman.controllers import job_indexes
from steersman.controllers.garbage import GarbageCollector
from steersman.controllers.job import Job
from steersman.controllers.job_policy import match_failure, match_success
from steersman.kernel.object import Key
from steersman.nodes.kubelet import VirtualKubelet
from tests.controllers.worlds import client, explore, make, objects, one, settle, user

RUN = [Job, VirtualKubelet]
WEB = Key("batch", "Job", "default", "web")
FINALIZER = "batch.kubernetes.io/job-tracking"


def job(exit_code="0", restart="Never", lasts="", **spec):
    notes = {"steersman.dev/exit-code": exit_code, **({"steersman.dev/lifetime-seconds": lasts} if lasts else {})}
    pod = {"restartPolicy": restart, "nodeName": "node-1", "containers": [{"name": "c", "image": "busybox"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"template": {"metadata": {"annotations": notes}, "spec": pod}, **spec},
    }


def status(w, name="web"):
    return one(w, "Job", name).status


def conditions(w):
    return [(each.type, each.status, each.reason) for each in status(w).get("conditions") or ()]


def phases(w):
    return [pod.status.phase for pod in objects(w, "Pod")]


def end(w, name_or_pod, phase, **more):
    """Lets a pod come to its end by hand: worlds without a kubelet."""
    pod = one(w, "Pod", name_or_pod) if isinstance(name_or_pod, str) else name_or_pod
    client(w).update_status({**pod, "status": {**pod.status, "phase": phase, **more}})
    settle(w)


def exited(code, at="2026-01-01T00:00:00Z"):
    state = {"terminated": {"exitCode": code, "finishedAt": at}}
    return {
        "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0} | {"state": state}
        ]
    }


def by_index(w):
    found = {}
    for pod in objects(w, "Pod"):
        found.setdefault(int(pod.metadata.annotations["batch.kubernetes.io/job-completion-index"]), []).append(pod)
    return found


def test_a_job_completes_and_its_status_tells():
    w = settle(make(RUN, [job(completions=3, parallelism=2)]))
    found = status(w)
    assert (found.succeeded, found.ready, found.terminating, found.get("active")) == (3, 0, 0, None)
    assert found.uncountedTerminatedPods == {} and found.startTime and found.completionTime
    assert conditions(w) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert phases(w) == ["Succeeded"] * 3 and not any(pod.metadata.get("finalizers") for pod in objects(w, "Pod"))
    assert not w.memory, "at rest nothing is remembered"


def test_no_more_pods_than_parallelism_and_than_are_still_needed():
    w = settle(make([Job], [job(completions=3, parallelism=2)]))
    assert len(objects(w, "Pod")) == 2 and status(w).active == 2
    pod = objects(w, "Pod")[0]
    assert pod.metadata.finalizers == [FINALIZER] and pod.metadata.generateName == "web-"
    for _ in range(2):
        end(w, next(each for each in objects(w, "Pod") if each.status.phase == "Pending"), "Succeeded")
    assert phases(w).count("Pending") == 1 and (status(w).active, status(w).succeeded) == (1, 2)


def test_without_completions_one_success_is_enough():
    spec = job(parallelism=3)
    spec["spec"]["completions"] = None
    w = settle(make([Job], [spec]))
    assert len(objects(w, "Pod")) == 3
    first, second, third = objects(w, "Pod")
    end(w, first, "Succeeded")
    assert len(objects(w, "Pod")) == 3 and not conditions(w)
    end(w, second, "Succeeded")
    end(w, third, "Failed")
    assert conditions(w)[-1][0] == "Complete" and (status(w).succeeded, status(w).failed) == (2, 1)


def test_failures_are_replaced_after_a_back_off_until_the_limit():
    w = settle(make(RUN, [job("1", backoffLimit=1)]))
    assert phases(w) == ["Failed"] and status(w).failed == 1 and not conditions(w)
    begun = w.now
    settle(w, timers=True)
    assert w.now - begun >= 10 * MICRO
    assert phases(w) == ["Failed", "Failed"] and status(w).failed == 2
    assert conditions(w) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    assert status(w).conditions[-1].message == "Job has reached the specified backoff limit"
    assert not status(w).get("completionTime") and not w.memory


def test_the_back_off_doubles():
    w = settle(make(RUN, [job("1", backoffLimit=3)]))
    settle(w, timers=True)
    begun = sorted(parse_time(pod.metadata.creationTimestamp) // MICRO for pod in objects(w, "Pod"))
    waits = [later - earlier for earlier, later in pairwise(begun)]
    assert [round(wait, -1) for wait in waits] == [10, 20, 40]


def test_restarts_count_where_pods_are_restarted_in_place():
    w = settle(make([Job], [job(restart="OnFailure", backoffLimit=2)]))
    again = exited(0) | {"phase": "Running"}
    again["containerStatuses"][0] |= {"restartCount": 2, "state": {"running": {}}}
    end(w, objects(w, "Pod")[0], **again)
    assert conditions(w)[0] == ("FailureTarget", "True", "BackoffLimitExceeded")


def test_a_deadline_ends_what_runs():
    w = settle(make(RUN, [job(lasts="1000", activeDeadlineSeconds=30)]))
    assert status(w).active == 1 and status(w).ready == 1
    settle(w, timers=True)
    assert conditions(w)[-1] == ("Failed", "True", "DeadlineExceeded") and status(w).failed == 1
    assert objects(w, "Pod") == []


def test_the_end_waits_for_pods_that_are_still_ending():
    w = settle(make([Job], [job(activeDeadlineSeconds=30)]))
    pod = objects(w, "Pod")[0]
    client(w).patch(pod, {"metadata": {"finalizers": [FINALIZER, "example.com/hold"]}})
    settle(w, timers=True)
    assert conditions(w) == [("FailureTarget", "True", "DeadlineExceeded")] and status(w).terminating == 1
    client(w).patch(pod, {"metadata": {"finalizers": None}})
    client(w).delete(pod, grace=0)
    settle(w)
    assert conditions(w)[-1][0] == "Failed" and status(w).terminating == 0


def test_suspended_and_resumed():
    w = settle(make(RUN, [job(suspend=True, lasts="1000", parallelism=2, completions=2)]))
    assert objects(w, "Pod") == [] and not status(w).get("startTime")
    assert conditions(w) == [("Suspended", "True", "JobSuspended")]
    c = client(w)
    c.patch(WEB, {"spec": {"suspend": False}})
    settle(w)
    assert status(w).active == 2 and status(w).startTime and conditions(w) == [("Suspended", "False", "JobResumed")]
    c.patch(WEB, {"spec": {"suspend": True}})
    settle(w)
    assert objects(w, "Pod") == [] and not status(w).get("failed") and not status(w).get("startTime")
    assert conditions(w) == [("Suspended", "True", "JobSuspended")]


def test_another_controllers_job_is_left_alone():
    w = settle(make(RUN, [job(managedBy="example.com/mine")]))
    assert objects(w, "Pod") == [] and not one(w, "Job").get("status")


def test_a_pod_somebody_deletes_is_replaced_and_counts_as_failed():
    w = settle(make(RUN, [job(lasts="1000")]))
    client(w).delete(objects(w, "Pod")[0])
    settle(w, timers=True)
    assert status(w).failed == 1 and status(w).succeeded == 1


def test_only_failed_pods_are_replaced_where_the_policy_says_so():
    w = settle(make([Job], [job(podReplacementPolicy="Failed")]))
    pod = objects(w, "Pod")[0]
    client(w).patch(pod, {"spec": {"nodeName": "node-1"}})
    client(w).delete(pod)
    settle(w, timers=True)
    assert len(objects(w, "Pod")) == 1 and (status(w).terminating, status(w).get("active")) == (1, None)
    end(w, pod.metadata.name, "Failed")
    settle(w, timers=True)
    assert status(w).failed == 1 and status(w).active == 1


def test_the_kubelet_lets_a_deleted_pod_end_first():
    w = settle(make(RUN, [job(podReplacementPolicy="Failed", lasts="1000")]))
    client(w).delete(objects(w, "Pod")[0])
    settle(w, timers=True)
    assert status(w).failed == 1 and status(w).succeeded == 1


# -- indexes -------------------------------------------------------------------------------------------------------


def test_every_index_gets_a_pod_with_its_number():
    w = settle(make([Job], [job(completions=2, parallelism=2, completionMode="Indexed")]))
    pod = by_index(w)[1][0]
    label = "batch.kubernetes.io/job-completion-index"
    assert pod.metadata.labels[label] == "1" and pod.metadata.generateName == "web-1-" and pod.spec.hostname == "web-1"
    env = pod.spec.containers[0].env[0]
    assert (env.name, env.valueFrom.fieldRef.fieldPath) == ("JOB_COMPLETION_INDEX", f"metadata.labels['{label}']")


def test_completed_indexes_are_told_as_intervals():
    w = settle(make([Job], [job(completions=6, parallelism=6, completionMode="Indexed")]))
    for index in (0, 1, 2, 4):
        end(w, by_index(w)[index][0], "Succeeded")
    assert (status(w).completedIndexes, status(w).succeeded, status(w).active) == ("0-2,4", 4, 2)
    end(w, by_index(w)[5][0], "Failed")
    settle(w, timers=True)
    assert [pod.status.phase for pod in by_index(w)[5]] == ["Failed", "Pending"] or phases(w).count("Pending") == 2
    assert "5" not in status(w).completedIndexes and status(w).failed == 1


def test_an_indexed_job_completes():
    w = settle(make(RUN, [job(completions=3, parallelism=2, completionMode="Indexed")]))
    assert status(w).completedIndexes == "0-2" and conditions(w)[-1][0] == "Complete"


def test_an_elastic_job_shrinks_by_its_last_indexes():
    w = settle(make(RUN, [job(lasts="1000", completions=3, parallelism=3, completionMode="Indexed")]))
    client(w).patch(WEB, {"spec": {"completions": 2, "parallelism": 2}})
    settle(w)
    assert sorted(by_index(w)) == [0, 1] and status(w).active == 2 and not status(w).get("failed")


def test_back_off_per_index():
    spec = job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    w = settle(make([Job], [spec]))
    assert by_index(w)[0][0].metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "0"
    end(w, by_index(w)[0][0], "Failed", **exited(1))
    assert by_index(w)[0][0].metadata.finalizers, "it stays until its place is taken"
    settle(w, timers=True)
    again = next(pod for pod in by_index(w)[0] if pod.status.phase == "Pending")
    assert again.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    assert status(w).failed == 1 and status(w).failedIndexes == ""
    end(w, again, "Failed", **exited(1))
    assert status(w).failedIndexes == "0" and not conditions(w)
    end(w, by_index(w)[1][0], "Succeeded")
    assert conditions(w)[-1] == ("Failed", "True", "FailedIndexes") and status(w).completedIndexes == "1"


def test_too_many_failed_indexes():
    indexed = {"completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    w = settle(make([Job], [job(completions=3, parallelism=3, **indexed)]))
    end(w, by_index(w)[1][0], "Failed", **exited(1))
    assert conditions(w)[0] == ("FailureTarget", "True", "MaxFailedIndexesExceeded")


def test_a_success_policy_ends_the_rest():
    policy = {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]}
    w = settle(make([Job], [job(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy)]))
    end(w, by_index(w)[2][0], "Succeeded")
    for pod in objects(w, "Pod"):
        client(w).delete(pod, grace=0)
    settle(w)
    assert conditions(w) == [("SuccessCriteriaMet", "True", "SuccessPolicy"), ("Complete", "True", "SuccessPolicy")]
    assert status(w).conditions[0].message == "Matched rules at index 0"
    assert status(w).succeeded == 1 and not status(w).get("failed")


# -- the policy of failures ----------------------------------------------------------------------------------------


def rule(action, **what):
    return {"rules": [{"action": action, **what}]}


CODES = {"onExitCodes": {"operator": "In", "values": [42]}}


@pytest.mark.parametrize(
    ("policy", "pod_status", "expected"),
    [
        (None, exited(42), (True, "", "")),
        (rule("Ignore", **CODES), exited(42), (False, "Ignore", "")),
        (rule("Count", **CODES), exited(42), (True, "Count", "")),
        (rule("FailIndex", **CODES), exited(42), (True, "FailIndex", "")),
        (rule("Ignore", **CODES), exited(1), (True, "", "")),
        (rule("Ignore", onExitCodes={"operator": "NotIn", "values": [42]}), exited(1), (False, "Ignore", "")),
        (rule("Ignore", onExitCodes={"operator": "NotIn", "values": [42]}), exited(0), (True, "", "")),
        (rule("Ignore", onExitCodes={**CODES["onExitCodes"], "containerName": "x"}), exited(42), (True, "", "")),
        (
            rule("FailJob", **CODES),
            exited(42),
            (
                True,
                "FailJob",
                "Container c for pod default/p failed with exit code 42 matching FailJob rule at index 0",
            ),
        ),
        (
            rule("FailJob", onPodConditions=[{"type": "DisruptionTarget"}]),
            {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
            (True, "FailJob", "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"),
        ),
    ],
)
def test_rules_of_failures(policy, pod_status, expected):
    pod = {"metadata": {"name": "p", "namespace": "default"}, "status": pod_status}
    assert match_failure(policy, pod) == expected


def test_a_failure_can_end_the_job_at_once():
    w = settle(make(RUN, [job("42", podFailurePolicy=rule("FailJob", **CODES))]))
    assert conditions(w)[-1] == ("Failed", "True", "PodFailurePolicy") and status(w).failed == 1
    assert "exit code 42 matching FailJob rule at index 0" in status(w).conditions[-1].message


def test_a_failure_can_be_ignored():
    w = settle(make([Job], [job(backoffLimit=0, podFailurePolicy=rule("Ignore", **CODES))]))
    end(w, objects(w, "Pod")[0], "Failed", **exited(42))
    settle(w, timers=True)
    assert not status(w).get("failed") and status(w).active == 1


@pytest.mark.parametrize(
    ("policy", "succeeded", "message"),
    [
        (None, [(0, 1)], ""),
        ({"rules": [{"succeededCount": 2}]}, [(0, 1)], "Matched rules at index 0"),
        ({"rules": [{"succeededCount": 3}, {"succeededIndexes": "1"}]}, [(0, 1)], "Matched rules at index 1"),
        ({"rules": [{"succeededIndexes": "1-3"}]}, [(0, 1)], ""),
        ({"rules": [{"succeededIndexes": "1-3", "succeededCount": 1}]}, [(0, 1)], "Matched rules at index 0"),
        ({"rules": [{"succeededCount": 0}]}, [], ""),
    ],
)
def test_rules_of_success(policy, succeeded, message):
    assert match_success(policy, 4, succeeded) == message


# -- the end of a Job that is deleted ------------------------------------------------------------------------------


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deletion_leaves_nothing(propagation):
    w = settle(make([*RUN, GarbageCollector], [job(lasts="1000", parallelism=2, completions=2)]))
    client(w).delete(WEB, propagation=propagation)
    settle(w)
    assert {obj.key.kind for obj in w.store.objects()} == {"Namespace"}


def test_orphans_lose_the_finalizer_and_are_adopted_again_with_it():
    w = settle(make(RUN, [job(lasts="1000")]))
    pod = objects(w, "Pod")[0]
    spec = one(w, "Job").spec
    c = client(w)
    c.delete(WEB, propagation="Background")  # nobody collects here
    c.patch(pod, {"metadata": {"ownerReferences": None}})
    settle(w)
    assert not one(w, "Pod", pod.metadata.name).metadata.get("finalizers")
    c.create(
        {
            **job(),
            "spec": {**job()["spec"], "selector": spec.selector, "template": spec.template, "manualSelector": True},
        }
    )
    settle(w)
    adopted = one(w, "Pod", pod.metadata.name)
    assert adopted.metadata.finalizers == [FINALIZER] and status(w).active == 1 and len(objects(w, "Pod")) == 1


# -- sets of indexes -----------------------------------------------------------------------------------------------

SETS = st.sets(st.integers(0, 30))


@given(SETS, SETS)
def test_sets_of_indexes(a, b):
    x, y = job_indexes.single(a), job_indexes.single(b)
    assert job_indexes.parse(job_indexes.text_of(x), 31) == x
    assert job_indexes.merged(x, y) == job_indexes.single(a | b)
    assert job_indexes.common(x, y) == len(a & b) and job_indexes.total(x) == len(a)
    assert [n for n in range(31) if job_indexes.has(x, n)] == sorted(a)
    assert job_indexes.first_outside(x, 5, 20) == [n for n in range(20) if n not in a][:5]


@pytest.mark.parametrize(
    ("text", "intervals"),
    [("", []), ("0-3,5,7,8", [(0, 3), (5, 5), (7, 8)]), ("1,x,3-y,4", [(1, 1), (4, 4)]), ("7-20", [(7, 8)]), ("9", [])],
)
def test_texts_of_indexes(text, intervals):
    assert job_indexes.parse(text, 9) == intervals


# -- every interleaving --------------------------------------------------------------------------------------------


def never_counted_twice(most):
    def always(w):
        found = one(w, "Job").get("status") or {}
        return (found.get("succeeded") or 0) + (found.get("failed") or 0) <= most

    return always


@pytest.mark.parametrize(("lag", "crashes", "atomic"), [(0, 1, False), (1, 1, True)])
def test_every_interleaving_completes_and_counts_each_pod_once(lag, crashes, atomic):
    found = explore(lambda: make(RUN, [job()], lag=lag, budgets=(crashes, 0), atomic=atomic), never_counted_twice(1))
    assert not found.findings and found.terminal
    for w in found.terminal:
        assert status(w).succeeded == 1 and conditions(w)[-1][0] == "Complete" and len(objects(w, "Pod")) == 1
        assert not objects(w, "Pod")[0].metadata.get("finalizers") and not w.memory


def test_every_interleaving_with_a_deletion_leaves_no_pod_with_the_finalizer():
    users = [user("delete", lambda c: c.delete(WEB, propagation="Background"))]
    found = explore(lambda: make([*RUN, GarbageCollector], [job()], users, lag=1, atomic=True))
    assert not found.findings
    assert {tuple(obj.key.kind for obj in w.store.objects()) for w in found.terminal} == {("Namespace",)}
