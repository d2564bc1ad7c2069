"""Law: a scheduler kept up by events is the one built afresh from what exists, whatever the history."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from steersman.sched.core import Scheduler
from steersman.sched.plain import plain_schedule
from tests.sched.clusters import NAMES, nodes, pods

POD_NAMES = tuple("abcdefgh")


class History(RuleBasedStateMachine):
    """Events in any order, decisions and bindings among them; `nodes` and `pods` are what the API server would hold."""

    def __init__(self):
        super().__init__()
        self.nodes, self.pods = {}, {}
        self.scheduler, self.now, self.unbound = Scheduler(), 0, {}

    @rule(node=nodes(st.sampled_from(NAMES)))
    def node_upsert(self, node):
        self.nodes[node["metadata"]["name"]] = node
        self.scheduler.node_upsert(node)

    @rule(name=st.sampled_from(NAMES))
    def node_delete(self, name):
        self.nodes.pop(name, None)
        self.scheduler.node_delete(name)

    @rule(
        pod=pods(st.sampled_from(POD_NAMES), st.sampled_from((None, None, *NAMES))),
        phase=st.sampled_from(("Pending", "Pending", "Running", "Failed")),
        incarnation=st.sampled_from(("1", "1", "1", "2")),
    )
    def pod_upsert(self, pod, phase, incarnation):
        pod = {**pod, "metadata": {**pod["metadata"], "uid": incarnation}, "status": {"phase": phase}}
        name = pod["metadata"]["name"]
        self.unbound.pop(name, None)
        self.pods[name] = pod
        self.scheduler.pod_delete(("default", name))  # a pod keeps its spec: another one is another pod
        self.scheduler.pod_upsert(pod)

    @rule(name=st.sampled_from(POD_NAMES))
    def pod_delete(self, name):
        self.pods.pop(name, None)
        self.unbound.pop(name, None)
        self.scheduler.pod_delete(("default", name))

    @rule(name=st.sampled_from(POD_NAMES), phase=st.sampled_from(("Running", "Succeeded")))
    def status(self, name, phase):
        if name in self.pods and name not in self.unbound:
            self.pods[name] = {**self.pods[name], "status": {"phase": phase}}
            self.scheduler.pod_upsert(self.pods[name])

    @rule(limit=st.integers(1, 3))
    def schedule(self, limit):
        self.now += 700_000
        for decision in self.scheduler.schedule(self.now, limit):
            if decision.node:
                self.unbound[decision.pod[1]] = decision.node

    @rule(fails=st.booleans(), name=st.sampled_from(POD_NAMES))
    def bind(self, fails, name):
        node = self.unbound.pop(name, None)
        if node is None:
            return
        if fails:
            self.scheduler.forget(("default", name), self.now)
        else:
            pod = self.pods[name]
            self.pods[name] = {**pod, "spec": {**pod["spec"], "nodeName": node}}
            self.scheduler.pod_upsert(self.pods[name])

    @rule()
    def copy(self):
        old, state = self.scheduler, self.scheduler.state()
        self.scheduler = old.copy()
        old.schedule(10**12, 100)
        for name in self.nodes:
            old.node_delete(name)
        assert self.scheduler.state() == state

    @invariant()
    def rebuilt(self):
        fresh = Scheduler()
        with_bindings = []
        for name, pod in self.pods.items():
            node = self.unbound.get(name)
            with_bindings.append({**pod, "spec": {**pod["spec"], "nodeName": node}} if node else pod)
        fresh.rebuild(reversed(self.nodes.values()), reversed(with_bindings))
        (mine, booked), pending, _, queue = self.scheduler.state()
        (theirs, fresh_booked), fresh_pending, _, fresh_queue = fresh.state()
        assert mine == theirs
        assert [each[:3] for each in booked] == [each[:3] for each in fresh_booked]
        to_place = tuple(each for each in pending if each[0][1] not in self.unbound)
        assert to_place == fresh_pending
        assert {e.key for place in queue for e in place} == {e.key for e in fresh_queue[0]}
        for key, _ in to_place[:1]:
            pod = self.pods[key[1]]
            assert self.scheduler.best_nodes(pod) == fresh.best_nodes(pod)
            chosen = plain_schedule(pod, self.nodes.values(), with_bindings).node
            assert chosen == next(iter(fresh.best_nodes(pod)), None)


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
