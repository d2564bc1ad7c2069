"""The chain of admission: where plugins run, what they see, and that what they add is validated and owned by nobody."""

from __future__ import annotations

import pytest

from steersman.api.admission.chain import Chain
from steersman.api.admission.plugin import Ask, Plugin, Verdict
from steersman.api.begin import Api
from steersman.api.errors import ApiError
from steersman.kernel.effect import Call, Commit, Request
from steersman.kernel.value import Frozen
from tests.api.cluster import Cluster, pod, refused

POD = ("", "Pod")
MAP = ("", "ConfigMap")


class Labels(Plugin):
    """Adds a label, and notes what it was shown."""

    name = "Labels"
    kinds = (MAP,)
    operations = ("CREATE", "UPDATE", "DELETE")

    def __init__(self, label="seen", value="yes", again=False):
        self.label, self.value, self.again = label, value, again
        self.attempts = []

    def mutate(self, attempt):
        self.attempts.append(attempt)
        if attempt.body is None:
            return None
        meta = attempt.body["metadata"]
        labels = {**meta.get("labels", {}), self.label: self.value}
        body = Frozen({**attempt.body, "metadata": Frozen({**meta, "labels": Frozen(labels)})})
        return Verdict(body, (f"{self.label} added",), self.again and not attempt.again)


class Judge(Plugin):
    """Refuses what has the label `bad`."""

    name = "Judge"
    kinds = None
    operations = ("CREATE", "UPDATE", "DELETE")

    def __init__(self):
        self.attempts = []

    def validate(self, attempt):
        self.attempts.append(attempt)
        shown = attempt.old.value if attempt.body is None else attempt.body
        if shown["metadata"].get("labels", {}).get("bad"):
            raise attempt.forbidden("it is bad")


class Asking(Plugin):
    """Asks for a label twice, as two webhooks would."""

    name = "Asking"
    kinds = (MAP,)
    operations = ("CREATE", "UPDATE")

    def mutate(self, attempt):
        def second(first):
            return Ask("webhook", "second", lambda answer: self.labelled(attempt, first + answer))

        return Ask("webhook", "first", second)

    def labelled(self, attempt, value):
        meta = Frozen({**attempt.body["metadata"], "labels": Frozen({"asked": value})})
        return Verdict(Frozen({**attempt.body, "metadata": meta}))


def cluster(*plugins):
    made = Cluster()
    made.api = Api(made.api.kinds, admission=Chain(plugins))
    made.create("v1/Namespace", "shop")
    return made


def test_a_plugin_changes_what_is_stored_and_the_client_is_warned():
    c = cluster(Labels())
    reply = c.create("v1/ConfigMap", "a", data={"x": "1"})
    assert c.get("v1/ConfigMap", "a")["metadata"]["labels"] == {"seen": "yes"}
    assert reply.warnings == ("seen added",)


def test_what_a_plugin_adds_belongs_to_nobody():
    c = cluster(Labels())
    c.create("v1/ConfigMap", "a", data={"x": "1"})
    assert c.managed("v1/ConfigMap", "a") == {("test", "Update", ""): {"f:data": {".": {}, "f:x": {}}}}
    c.apply("v1/ConfigMap", "b", data={"x": "1"})
    assert c.managed("v1/ConfigMap", "b") == {("applier", "Apply", ""): {"f:data": {"f:x": {}}}}
    assert c.get("v1/ConfigMap", "b")["metadata"]["labels"] == {"seen": "yes"}


@pytest.mark.parametrize("verb", ["update", "merge", "json", "apply"])
def test_every_way_to_change_an_object_passes_the_chain(verb):
    c = cluster()
    c.create("v1/ConfigMap", "a", data={"x": "1"})
    c.api = Api(c.api.kinds, admission=Chain([Labels(), judge := Judge()]))
    if verb == "update":
        c.update("v1/ConfigMap", "a", data={"x": "2"})
    elif verb == "merge":
        c.merge("v1/ConfigMap", "a", {"data": {"x": "2"}})
    elif verb == "json":
        c.json_patch("v1/ConfigMap", "a", [{"op": "replace", "path": "/data/x", "value": "2"}])
    else:
        c.apply("v1/ConfigMap", "a", data={"x": "2"}, force=True)
    found = c.get("v1/ConfigMap", "a")
    assert (found["data"], found["metadata"]["labels"]) == ({"x": "2"}, {"seen": "yes"})
    assert judge.attempts[-1].operation == "UPDATE"
    assert judge.attempts[-1].body["metadata"]["labels"] == {"seen": "yes"}
    assert judge.attempts[-1].old.value["data"] == {"x": "1"}


def test_a_delete_and_a_binding_can_be_refused():
    c = cluster()
    c.create("v1/ConfigMap", "a", metadata={"labels": {"bad": "1"}})
    c.create("v1/Pod", "p", spec=pod())
    judge = Judge()
    c.api = Api(c.api.kinds, admission=Chain([judge]))
    error = refused(c.delete, "v1/ConfigMap", "a")
    assert (error.code, error.message) == (403, 'configmaps "a" is forbidden: it is bad')
    assert c.read("v1/ConfigMap", "a") is not None
    Judge.subresources = None
    try:
        c.api = Api(c.api.kinds, admission=Chain([judge]))
        c.request("create", "v1/Pod", "p", {"target": {"name": "n"}, "metadata": {"labels": {"bad": "1"}}}, "binding")
    except ApiError as error:
        assert error.message == 'pods "p" is forbidden: it is bad'
    else:
        pytest.fail("the binding was admitted")
    finally:
        Judge.subresources = ("",)
    assert c.read("v1/Pod", "p").node is None


def test_the_result_of_plugins_is_validated_and_so_is_what_they_left():
    c = cluster(Labels(value="not a label value"))
    error = refused(c.create, "v1/ConfigMap", "a")
    assert error.code == 422
    assert error.causes[0].field == "metadata.labels"
    c = cluster(Labels())
    assert refused(c.create, "v1/ConfigMap", "a", metadata={"labels": {"x": "not a value"}}).code == 422


def test_a_plugin_can_repair_what_is_not_valid_and_speaks_before_validation():
    class Repair(Plugin):
        name = "Repair"
        kinds = (POD,)

        def mutate(self, attempt):
            spec = Frozen({**attempt.body["spec"], "containers": pod()["containers"]})
            return Verdict(Frozen({**attempt.body, "spec": spec}))

    c = cluster(Repair())
    c.create("v1/Pod", "p", spec={"containers": []})
    assert c.get("v1/Pod", "p")["spec"]["containers"][0]["image"] == "app:1"

    class No(Plugin):
        name = "No"
        kinds = (POD,)

        def mutate(self, attempt):
            raise attempt.forbidden("no pods today")

    assert refused(cluster(No()).create, "v1/Pod", "p", spec={"containers": []}).code == 403


def test_the_chain_stops_for_a_question_and_goes_on_with_the_answer():
    c = cluster()
    c.api = Api(c.api.kinds, admission=Chain([Labels("first"), Asking(), Labels("last"), Judge()]))
    key, body = c.key("v1/ConfigMap", "a"), c.body("v1/ConfigMap", "a", {})
    outcome = c.api.begin(c.store, Request("create", key, body, manager="test"))
    assert outcome.kind == "random"
    outcome = outcome.resume("uid-1")
    assert isinstance(outcome, Call)
    assert (outcome.kind, outcome.question) == ("webhook", "first")
    for answers in (("b", "c"), ("x", "y")):  # a question can be answered in several worlds
        done = outcome.resume(answers[0]).resume(answers[1])
        assert isinstance(done, Commit)
        assert done.new.meta.value["labels"] == {"asked": "".join(answers), "last": "yes"}


def test_mutating_plugins_run_once_more_when_one_asks():
    first, last = Labels("first"), Labels("last", again=True)
    c = cluster(first, last)
    c.create("v1/ConfigMap", "a")
    assert [a.again for a in first.attempts] == [False, True]
    assert first.attempts[1].body["metadata"]["labels"] == {"first": "yes", "last": "yes"}
    assert len(last.attempts) == 2


def test_a_plugin_that_needs_objects_of_a_kind_costs_nothing_without_them():
    class Needy(Labels):
        kinds = None
        needs = (("", "LimitRange"),)

    plugin = Needy()
    c = cluster(plugin)
    assert c.api.admission.plan(c.store, MAP) is None
    c.create("v1/ConfigMap", "a")
    assert not plugin.attempts
    c.create("v1/LimitRange", "limits", spec={"limits": [{"type": "Pod"}]})
    c.create("v1/ConfigMap", "b")
    assert len(plugin.attempts) == 1


def test_a_write_that_changes_nothing_is_judged_and_not_committed():
    c = cluster()
    c.create("v1/ConfigMap", "a", metadata={"labels": {"bad": "1"}})
    before = c.store.rev
    c.api = Api(c.api.kinds, admission=Chain([judge := Judge()]))
    assert refused(c.merge, "v1/ConfigMap", "a", {}).code == 403
    c.api = Api(c.api.kinds, admission=Chain([Labels("bad", "1")]))
    c.merge("v1/ConfigMap", "a", {})
    assert c.store.rev == before
    assert judge.attempts


def test_a_dry_run_passes_the_chain():
    c = cluster(Labels())
    reply = c.create("v1/ConfigMap", "a", options={"dry_run": True})
    assert reply.obj.meta.value["labels"] == {"seen": "yes"}
    assert c.read("v1/ConfigMap", "a") is None
