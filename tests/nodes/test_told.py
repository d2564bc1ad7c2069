"""What virtual kubelets tell people of containers: each event once, and none where none are asked for."""

import pytest

from steersman.kernel.object import Key
from steersman.nodes.component import VirtualNodes
from steersman.nodes.stages import INSTANT, Delay, Stages
from tests.controllers.worlds import client, make, objects, one
from tests.nodes.test_component import drive, node, pod

PULLS = Stages(pull=Delay(1.5), startup=Delay(1), removal=Delay(1))


def life(stages, *objects_):
    world = make([], [node(), *objects_], components=[VirtualNodes(stages=stages, events=True)], persistent=False)
    return drive(world)


def told(world, container="c"):
    events = [each for each in objects(world, "v1/Event") if f"{{{container}}}" in each.involvedObject.fieldPath]
    return [(each.reason, each.message) for each in sorted(events, key=lambda each: int(each.metadata.resourceVersion))]


def test_a_container_is_pulled_created_started_and_killed():
    world = life(PULLS, pod("p", initContainers=[{"name": "i", "image": "busybox"}]))
    assert told(world) == [
        ("Pulling", 'Pulling image "i"'),
        ("Pulled", 'Successfully pulled image "i" in 1.5s (1.5s including waiting). Image size: 0 bytes.'),
        ("Created", "Container created"),
        ("Started", "Container started"),
    ]
    assert [reason for reason, _ in told(world, "d")] == ["Pulling", "Pulled", "Created", "Started"]
    client(world).delete(Key("", "Pod", "default", "p"))
    world.advance(0)
    assert one(world, "Pod", "p"), "it is told when it begins"
    assert told(world)[-1] == ("Killing", "Stopping container c")
    assert "Killing" not in [reason for reason, _ in told(world, "i")], "it ended long ago"
    drive(world)
    assert all(each.get("count") == 1 for each in objects(world, "v1/Event"))


def test_an_event_says_which_container_on_which_node():
    world = life(INSTANT, pod("p"))
    event = next(
        each
        for each in objects(world, "v1/Event")
        if each.reason == "Started" and "{c}" in each.involvedObject.fieldPath
    )
    uid = one(world, "Pod", "p").metadata.uid
    assert (event.involvedObject.fieldPath, event.involvedObject.uid) == ("spec.containers{c}", uid)
    assert event.source == {"component": "kubelet", "host": "node-1"}
    assert (event.reportingComponent, event.reportingInstance) == ("kubelet", "node-1")


def test_an_image_that_takes_no_time_was_there():
    there = 'Container image "i" already present on machine and can be accessed by the pod'
    assert told(life(INSTANT, pod("p")))[0] == ("Pulled", there)
    never = [{"name": "c", "image": "i", "imagePullPolicy": "Never"}]
    assert told(life(PULLS, pod("p", containers=never)))[0] == ("Pulled", there)


def test_without_events_none_are_told_and_a_searched_world_has_none():
    world = make([], [node(), pod("p")], components=[VirtualNodes(stages=INSTANT)], persistent=False)
    assert not objects(drive(world), "v1/Event")
    with pytest.raises(ValueError, match="searched"):
        VirtualNodes(persistent=True, events=True)
