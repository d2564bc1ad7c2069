"""Law: a scheduler kept up by events is the one built afresh from what exists, whatever the history."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from steersman.sched.core import Scheduler
from steersman.sched.plain import plain_scores, read_nodes
from tests.sched.clusters import NAMES, container, node, nodes, pod, pods

POD_NAMES = tuple("abcdefgh")

ZONE = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}
DISK = {"weight": 30, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
PREFER = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [ZONE, DISK]}}
# Asked for again and again, so that their retained columns live through every kind of change.
PROBES = (
    pod("probe", container("c", {"cpu": "100m", "memory": "100Mi"})),
    pod("probe", container("c", {"cpu": "1m"}), affinity=PREFER, tolerations=[{"key": "k", "operator": "Exists"}]),
)


class History(RuleBasedStateMachine):
    """Events in any order, decisions and bindings among them; `nodes` and `pods` are what the API server would hold."""

    def __init__(self):
        super().__init__()
        self.nodes, self.pods = {}, {}
        self.scheduler, self.now, self.unbound = Scheduler(), 0, {}

    @rule(node=nodes(st.sampled_from(NAMES)))
    def node_changes(self, node):
        self.node_upsert(node)

    def node_upsert(self, node):
        self.nodes[node["metadata"]["name"]] = node
        self.scheduler.node_upsert(node)

    @initialize(sizes=st.lists(st.sampled_from(("1", "2", "4")), max_size=4))
    def roomy_nodes(self, sizes):
        for name, cpu in zip(NAMES, sizes, strict=False):
            self.node_upsert(node(name, cpu, labels={"zone": "a"}))

    @rule(name=st.sampled_from(POD_NAMES), cpu=st.sampled_from(("100m", "900m", "2")))
    def modest_pod(self, name, cpu):
        self.pod_upsert(pod(name, container("c", {"cpu": cpu})), "Pending", "3")

    @rule(name=st.sampled_from(NAMES))
    def node_delete(self, name):
        self.nodes.pop(name, None)
        self.scheduler.node_delete(name)

    @rule(
        pod=pods(st.sampled_from(POD_NAMES), st.sampled_from((None, None, *NAMES))),
        phase=st.sampled_from(("Pending", "Pending", "Running", "Failed")),
        incarnation=st.sampled_from(("1", "1", "1", "2")),
    )
    def pod_changes(self, pod, phase, incarnation):
        self.pod_upsert(pod, phase, incarnation)

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

    @precondition(lambda self: self.unbound)
    @rule(fails=st.booleans(), choice=st.integers(0, 7))
    def bind(self, fails, choice):
        name = sorted(self.unbound)[choice % len(self.unbound)]
        node = self.unbound.pop(name)
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
        for name, each in self.pods.items():
            node = self.unbound.get(name)
            with_bindings.append({**each, "spec": {**each["spec"], "nodeName": node}} if node else each)
        fresh.rebuild(reversed(self.nodes.values()), reversed(with_bindings))
        (mine, booked), pending, tried, queue = self.scheduler.state()
        assert [entry.key[1] for entry in tried] == sorted(self.unbound)
        (theirs, fresh_booked), fresh_pending, _, fresh_queue = fresh.state()
        assert mine == theirs
        assert [each[:3] for each in booked] == [each[:3] for each in fresh_booked]
        to_place = tuple(each for each in pending if each[0][1] not in self.unbound)
        assert to_place == fresh_pending
        assert {e.key for place in queue for e in place} == {e.key for e in fresh_queue[0]}
        plain = read_nodes(self.nodes.values(), with_bindings)
        for each in (*PROBES, *(self.pods[key[1]] for key, _ in to_place[:1])):
            assert self.scheduler.scores(each) == fresh.scores(each) == plain_scores(each, plain)[0]


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
