"""The vectorised core against its plain twin: same best nodes, same messages, in clusters full of clashes."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.sched.core import Scheduler
from steersman.sched.plain import plain_best, plain_schedule, plain_scores, read_nodes
from tests.sched.clusters import NAMES, Json, nodes, pods

# Sizes are drawn first: lists drawn item by item would mostly be too short for anything to clash.
clusters = st.sampled_from((0, 2, 3, 3, 4, 5, 6)).flatmap(
    lambda size: st.tuples(*(nodes(st.just(name)) for name in NAMES[:size]))
)
placed = st.sampled_from((0, 2, 4, 6)).flatmap(
    lambda size: st.tuples(*(pods(st.just(name), st.sampled_from((*NAMES[:4], "gone"))) for name in "abcdef"[:size]))
)
incoming = pods(st.just("new"), st.none())


def scheduler_of(cluster: list[Json], booked: list[Json]) -> Scheduler:
    scheduler = Scheduler()
    scheduler.rebuild(cluster, booked)
    return scheduler


REASONS = (
    "no nodes available",
    "were unschedulable",
    "untolerated",
    "node affinity/selector",
    "didn't satisfy plugin(s)",
    "free ports",
    "Too many pods",
    "Insufficient cpu",
    "Insufficient memory",
    "Insufficient ephemeral-storage",
    "Insufficient example.com/device",
)


def test_best_nodes_and_messages_agree():
    """The same examples every time, so that the count at the end can ask that each reason came up."""
    seen = Counter()

    @settings(max_examples=400, deadline=None, database=None, derandomize=True)
    @given(cluster=clusters, booked=placed, pod=incoming)
    def agree(cluster, booked, pod):
        scheduler = scheduler_of(cluster, booked)
        best, message = plain_best(pod, read_nodes(cluster, booked))
        assert list(scheduler.best_nodes(pod)) == best
        assert scheduler.scores(pod) == plain_scores(pod, read_nodes(cluster, booked))[0]
        scheduler.pod_upsert(pod)
        (decision,) = scheduler.schedule(0, 1)
        assert decision.message == message
        assert decision == plain_schedule(pod, cluster, booked)
        seen.update(reason for reason in REASONS if reason in message)
        seen["a choice of nodes"] += len(best) == 1 < len(cluster)

    agree()
    assert len(seen) == len(REASONS) + 1 and all(seen.values()), seen


@settings(max_examples=60, deadline=None)
@given(cluster=clusters, booked=placed, wanted=st.lists(incoming, min_size=2, max_size=6), seed=st.integers(0, 5))
def test_a_run_of_decisions_agrees_with_one_plain_decision_after_another(cluster, booked, wanted, seed):
    """Retained columns: each decision sees those before it, whatever was worked out for the class earlier."""
    calls = Counter()

    def tie(name):
        def choose(count):
            calls[name] += 1
            return (seed + calls[name]) % count

        return choose

    scheduler = Scheduler(tie("core"))
    scheduler.rebuild(cluster, booked)
    there = list(booked)
    for number, pod in enumerate(wanted * 2):
        each = {**pod, "metadata": {**pod["metadata"], "name": f"w{number}", "uid": f"w{number}"}}
        scheduler.pod_upsert(each)
        (decision,) = scheduler.schedule(number, 1)
        assert decision == plain_schedule(each, cluster, there, tie("plain"))
        if decision.node:
            there.append({**each, "spec": {**each["spec"], "nodeName": decision.node}})
