"""Events of controllers reach the store beside their work, and count up there."""

from steersman.api.controller import Controller
from tests.run.plane import create, memory, patch, until
from tests.run.test_loops import plane, run


class Talker(Controller):
    """Says that it saw a ConfigMap."""

    kind = "v1/ConfigMap"

    def reconcile(self, c, key):
        seen = c.get(key)
        if seen is not None:
            c.event(seen, "Normal", "Seen", f"saw {key.name}")


def test_events_are_written_and_counted():
    async def scene():
        async with plane(memory(), Talker) as (heads, _):
            await heads.write(create("v1/ConfigMap", "a"))

            def counts():
                return [obj.value["count"] for obj in heads.store.list(("", "Event"))]

            await until(lambda: counts() == [1])
            await heads.write(patch("v1/ConfigMap", "a", {"data": {"x": "y"}}))
            await until(lambda: counts() == [2])
            (event,) = heads.store.list(("", "Event"))
            assert event.value["source"] == {"component": "talker-controller"}
            assert event.value["involvedObject"]["name"] == "a" and event.value["message"] == "saw a"

    run(scene())
