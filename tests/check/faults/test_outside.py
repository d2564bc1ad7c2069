"""Faults outside the cluster: webhooks, external systems, clocks."""

import pytest

import steersman as sm
from tests.check.faults.seeded import finds
from tests.check.models import config, key

# -- webhooks --------------------------------------------------------------------------------------------------------

HOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: defaults}
webhooks:
- name: defaults.example.com
  clientConfig: {url: "https://defaults.example.com"}
  failurePolicy: Ignore
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""


class Defaulted(sm.Controller):
    """Makes a child and counts on a webhook to say its size."""

    kind = "v1/ConfigMap"
    counts_on_it = True

    def reconcile(self, c, at):
        child = c.get(key("child"))
        if child is None:
            c.create(config("child", size="1") if not self.counts_on_it else config("child"))


class Says(Defaulted):
    counts_on_it = False


def defaulting(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    w.apply(HOOK)
    w.run(controller)

    def model(request):
        given = request.object.get("data") or {}
        return {"patch": [{"op": "add", "path": "/data", "value": {"size": "1", **given}}]}

    w.webhook("defaults.example.com", model)
    w.converges(lambda s: s[key("child")].data.size)
    return w


def test_a_webhook_that_cannot_be_reached():
    verdict = finds(defaulting, Defaulted, Says, "webhook_errors")
    assert "its webhook cannot be reached" in str(verdict)


# -- external systems ------------------------------------------------------------------------------------------------


class Nodes(sm.Controller):
    """Deletes the volume of a node that the cluster does not know any more; a failure is no answer (bug 105)."""

    kind = "v1/ConfigMap"
    careless = True

    def reconcile(self, c, at):
        try:
            known = c.external("nodes", "one")
        except sm.ApiError as error:
            if not self.careless or error.code != 503:
                raise
            known = False
        if not known and c.get(key("volume")) is not None:
            c.delete(key("volume"))


class Honest(Nodes):
    careless = False


def volumes(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("volume"))
    w.external("nodes", lambda request: True)
    w.run(controller)
    w.always("the volume stays", lambda s: s[key("volume")])
    return w


def test_an_external_system_that_cannot_be_reached():
    verdict = finds(volumes, Nodes, Honest, "external_errors")
    assert "failed, 503 (nothing was done)" in str(verdict)


class Database(sm.Controller):
    """Has one database made; asks how many there are before."""

    kind = "v1/ConfigMap"
    by_name = False
    hasty = False

    def reconcile(self, c, at):
        request = "make db" if self.by_name else "make"
        if c.external("databases", "count"):
            return
        try:
            c.external("databases", request)
        except sm.ApiError as error:
            if error.code != 504 or not self.hasty:
                raise
            c.external("databases", request)


class Hasty(Database):
    """Tries again at once what timed out."""

    hasty = True


class ByName(Hasty):
    by_name = True


def databases(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))

    def model(request, state):
        if request == "count":
            return len(state), state
        name = request.partition(" ")[2] or f"db-{len(state)}"
        return name, state if name in state else [*state, name]

    w.external("databases", model, state=[])
    w.run(controller)
    w.user("touch", lambda c: c.patch(key("a"), {"data": {"touched": "yes"}}))
    w.always("one database", lambda s: len(s.external("databases")) <= 1)
    w.converges(lambda s: len(s.external("databases")) == 1)
    return w


def test_an_external_system_whose_answer_is_lost():
    verdict = finds(databases, Hasty, ByName, "external_losses", also=("external_lags", "leaders"))
    assert "done, but the answer is lost" in str(verdict)


def test_an_external_system_that_answers_what_was():
    verdict = finds(databases, Database, ByName, "external_lags", also=("leaders",))
    assert "answered as before the last change" in str(verdict)


def test_a_crash_after_an_external_call_can_be_noticed():
    class Counts(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, at):
            if not c.get(at).data.done:
                c.external("calls", "call")
                c.patch(at, {"data": {"done": "yes"}})

    w = sm.Scenario("counts")
    w.apply(config("a"))
    w.external("calls", lambda request, state: (None, state + 1), state=0)
    w.run(Counts)
    w.always("called once", lambda s: s.external("calls") <= 1)
    sm.check(w).assert_holds(complete=True)
    assert [action.op for action in sm.check(w, crashes=1).violations[0].actions].count("crash") == 1


def test_an_external_system_that_changes_for_ever_is_a_livelock():
    class Flips(sm.Controller):
        kind = "v1/ConfigMap"

        def reconcile(self, c, at):
            c.external("lamp", "flip")
            return 1

    w = sm.Scenario("flips")
    w.apply(config("a"))
    w.external("lamp", lambda request, state: (None, not state), state=False)
    w.run(Flips)
    w.converges()
    assert "livelock" in [violation.kind for violation in sm.check(w).violations]


# -- clocks ----------------------------------------------------------------------------------------------------------


class Deadline(sm.Controller):
    """Gives a job up that took too long, and looks at the clock before it looks at the job."""

    kind = "v1/ConfigMap"
    looks_first = False

    def reconcile(self, c, at):
        job = c.get(at)
        if self.looks_first and job.data.done:
            return
        if not job.data.failed and c.elapsed(job.metadata.creationTimestamp, 1800):
            c.patch(at, {"data": {"failed": "yes"}}, rv=job.metadata.resourceVersion)


class LooksFirst(Deadline):
    looks_first = True


def job(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("job"))
    w.run(controller)

    def finish(c):
        if not c.get(key("job")).data.failed:
            c.patch(key("job"), {"data": {"done": "yes"}})

    w.user("finish", finish)
    w.always("what is done has not failed", lambda s: not (s[key("job")].data.done and s[key("job")].data.failed))
    return w


def test_a_clock_that_jumps():
    verdict = finds(job, Deadline, LooksFirst, "clock_jumps", without=("missing watch",))
    assert "clock jumps forward" in str(verdict)


class Stamps(sm.Controller):
    """Notes when it first saw something and when last; takes for granted that the clock goes forward."""

    kind = "v1/ConfigMap"
    careful = False

    def reconcile(self, c, at):
        have = c.get(at)
        if not have.data.first:
            c.patch(at, {"data": {"first": c.timestamp()}})
        elif have.data.seen != have.data.v:
            last = c.timestamp()
            c.patch(at, {"data": {"seen": have.data.v, "last": max(last, have.data.first) if self.careful else last}})


class Monotone(Stamps):
    careful = True


def stamped(controller):
    w = sm.Scenario(controller.__name__)
    w.apply(config("a"))
    w.run(controller)
    w.user("v", lambda c: c.patch(key("a"), {"data": {"v": "1"}}))
    w.always(
        "first comes first", lambda s: not s[key("a")].data.last or s[key("a")].data.first <= s[key("a")].data.last
    )
    return w


def test_a_clock_that_is_set_back():
    verdict = finds(stamped, Stamps, Monotone, "clock_setbacks")
    assert "clock is set back by an hour" in str(verdict)


def test_models_with_a_state_must_give_one():
    w = sm.Scenario("wrong")
    w.apply(config("volume"))
    w.external("nodes", lambda request, state: True, state=0)
    w.run(Nodes)
    with pytest.raises(ValueError, match=r"the model of 'nodes' gave True; with a state it gives \(answer, state\)"):
        sm.check(w)


def test_a_scenario_says_what_may_happen_in_every_check_of_it():
    w = volumes(Nodes).allow(external_errors=1)
    assert "external-errors 1" in sm.check(w).summary() and not sm.check(w).holds
    assert sm.check(w, external_errors=0).holds
    with pytest.raises(ValueError, match="there is no option 'luck' of a check; there are: lag"):
        w.allow(luck=1)
