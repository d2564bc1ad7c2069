"""Events of controllers: counted, combined, cut short; their names follow from what they say."""

from steersman.api.events import BURST, COMBINED, SIMILAR, Recorder, Said
from steersman.api.times import MICRO
from steersman.kernel.value import Frozen

NOW = 1_780_000_000 * MICRO
POD = Frozen(apiVersion="v1", kind="Pod", metadata=Frozen(name="web", namespace="shop", uid="u1", resourceVersion="7"))


def tell(recorder, message="made it", now=NOW, reason="Made", obj=POD):
    return recorder.request(Said(obj, "Normal", reason, message, "maker").note(), now)


def test_an_event_says_what_client_gos_say():
    request = tell(Recorder())
    assert request.verb == "create" and request.key.namespace == "shop" and request.key.name.startswith("web.")
    body = request.body
    assert body["involvedObject"] == {**POD["metadata"], "apiVersion": "v1", "kind": "Pod"}
    assert (body["reason"], body["message"], body["type"], body["count"]) == ("Made", "made it", "Normal", 1)
    assert body["source"] == {"component": "maker"} and body["reportingComponent"] == "maker"
    assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-05-28T20:26:40Z"
    assert tell(Recorder()).key == request.key  # in another process too


def test_the_same_again_counts_up():
    recorder = Recorder()
    first = tell(recorder)
    again = tell(recorder, now=NOW + 60 * MICRO)
    assert (again.verb, again.key) == ("patch", first.key)
    assert again.body == {"count": 2, "lastTimestamp": "2026-05-28T20:27:40Z", "message": "made it"}


def test_many_messages_of_one_reason_become_one_event():
    recorder = Recorder()
    made = [tell(recorder, f"message {number}") for number in range(SIMILAR + 2)]
    assert {request.verb for request in made[:SIMILAR]} == {"create"}
    assert made[SIMILAR - 1].body["message"] == f"{COMBINED}message {SIMILAR - 1}"
    assert made[SIMILAR].key == made[SIMILAR - 1].key and made[SIMILAR].body["count"] == 2
    later = tell(recorder, "later", NOW + 1_200 * MICRO)
    assert later.verb == "create" and later.body["message"] == "later"


def test_who_talks_too_much_is_cut_short():
    recorder = Recorder()
    told = [tell(recorder, reason=f"R{number}") for number in range(BURST + 5)]
    assert [request is None for request in told] == [False] * BURST + [True] * 5
    assert tell(recorder, now=NOW + 299 * MICRO) is None
    assert tell(recorder, now=NOW + 300 * MICRO) is not None
    assert tell(recorder, now=NOW + 301 * MICRO) is None
    other = Frozen(apiVersion="v1", kind="Node", metadata=Frozen(name="n1", uid="u2"))
    assert tell(recorder, obj=other).key.namespace == "default"


def test_what_is_refused_is_told_the_other_way():
    recorder = Recorder()
    said = Said(POD, "Normal", "Made", "made it", "maker").note()
    create = recorder.request(said, NOW)
    assert recorder.again(create, said, NOW).verb == "patch"
    patch = recorder.request(said, NOW)
    again = recorder.again(patch, said, NOW)
    assert (again.verb, again.key, again.body["message"]) == ("create", create.key, "made it")
