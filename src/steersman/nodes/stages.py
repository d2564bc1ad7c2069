"""How long the stages of a pod's life take on a virtual node, as data. Pure.

The defaults are middle values for small images near at hand: pulled in 1 to 3 s, up in half a second to 1.5 s, gone 1
to 2 s after they were told to end; and a Job's pod without a stated lifetime runs 1 to 5 s, as in KWOK's stages
(kubernetes-sigs/kwok, kustomize/stage/pod/general). They are the same for every image and node: say so in a report,
or give others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from steersman.api.times import MICRO, parse_time
from steersman.kernel.object import Object
from steersman.nodes.status import ACCEPT, COMPLETE, READY, SEE, START, lifetime, started_at

Draw = Callable[[str, str], float]
"""(uid of a pod, stage) → a number in [0, 1): always the same for the same two."""
AT_ONCE: Final = 0
"""A due time that has always passed."""


class Delay(NamedTuple):
    """A delay, evenly drawn between two bounds in seconds; `up_to` at or below `seconds` means exactly `seconds`."""

    seconds: float
    up_to: float = 0.0

    def micro(self, share: float) -> int:
        """Microseconds, at a place in [0, 1) between the bounds."""
        return round((self.seconds + share * max(0.0, self.up_to - self.seconds)) * MICRO)


class Stages(NamedTuple):
    """The delays of a pod's stages. Times in objects are whole seconds, and so is when a delay begins."""

    pull: Delay = Delay(1.0, 3.0)
    """From the kubelet's acceptance (status.startTime) until the images are there."""
    startup: Delay = Delay(0.5, 1.5)
    """From then until the pod is running and ready."""
    completion: Delay = Delay(1.0, 5.0)
    """From its start until a Job's pod without the lifetime annotation completes."""
    removal: Delay = Delay(1.0, 2.0)
    """From the request to delete until the pod is gone; never longer than its grace period."""


USUAL: Final = Stages()
"""As on a real node with small images near at hand."""
INSTANT: Final = Stages(Delay(0), Delay(0), Delay(0), Delay(0))
"""Nothing takes any time."""


def seeded(seed: int) -> Draw:
    """The draw of a seed."""

    def draw(uid: str, stage: str) -> float:
        return xxh3_64_intdigest(f"{seed}\0{uid}\0{stage}".encode()) / 2.0**64

    return draw


def due_time(pod: Object, edge: str, stages: Stages, draw: Draw) -> int:
    """When a bound pod takes its next edge (microseconds): a function of the pod, so it can be worked out anew."""
    if edge in (ACCEPT, READY, SEE):
        return AT_ONCE
    uid = pod.uid
    if edge == START:
        begun = parse_time(pod.value["status"]["startTime"])
        return begun + stages.pull.micro(draw(uid, "pull")) + stages.startup.micro(draw(uid, "startup"))
    if edge == COMPLETE:
        begun, seconds = started_at(pod.value), lifetime(pod.value)
        lasts = stages.completion.micro(draw(uid, "completion")) if seconds is None else round(seconds * MICRO)
        return begun + lasts
    meta = pod.meta.value
    last: int = parse_time(meta["deletionTimestamp"])
    asked: int = last - MICRO * meta.get("deletionGracePeriodSeconds", 0)
    return min(last, asked + stages.removal.micro(draw(uid, "removal")))
