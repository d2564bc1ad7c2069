"""How fast an autoscaler may move: stabilisation windows and the policies of `behavior`.

What was recommended and done lately is remembered by the controller (`c.memory`), as Kubernetes' keeps it in memory: a
restart forgets it. Source of the facts: Kubernetes 1.36, pkg/controller/podautoscaler/horizontal.go and the defaults
of pkg/apis/autoscaling/v2/defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final, NamedTuple

from steersman.api.client import Client
from steersman.kernel.value import EMPTY

Json = Mapping[str, Any]
DOWN_WINDOW: Final = 300
"""Seconds for which the highest recommendation holds when there is no other rule."""
UP: Final[Json] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
DOWN: Final[Json] = {
    "stabilizationWindowSeconds": DOWN_WINDOW,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
RATE_FACTOR: Final = 2
RATE_LEAST: Final = 4
WITHIN: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
TOO_FAST: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
TOO_FAST_DOWN: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
READY: Final = ("ReadyForNewScale", "recommended size matches current size")
HELD_UP: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
HELD_DOWN: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)


class Paced(NamedTuple):
    """How far to go now, and what the conditions AbleToScale and ScalingLimited say: (reason, message)."""

    replicas: int
    able: tuple[str, str]
    limited: bool
    limit: tuple[str, str]


def rules(behavior: Json | None, direction: str) -> Json:
    """The rules of a direction, `scaleUp` or `scaleDown`, complete."""
    given = {name: value for name, value in ((behavior or EMPTY).get(direction) or EMPTY).items() if value is not None}
    return {**(UP if direction == "scaleUp" else DOWN), **given}


class Pace:
    """The memory of one autoscaler. `place`: its name in `c.memory`."""

    def __init__(self, c: Client, place: str, behavior: Json | None) -> None:
        self._c = c
        self._place = place
        self._behavior = behavior
        known = c.memory.get(place) or EMPTY
        self._advice = [dict(each) for each in known.get("advice") or ()]
        self._moves = [dict(each) for each in known.get("moves") or ()]

    @staticmethod
    def forget(c: Client, place: str) -> None:
        """Drops the memory of an autoscaler that is gone."""
        if place in c.memory:
            del c.memory[place]

    def begin(self, replicas: int) -> None:
        """The first number ever seen is the first recommendation: a new autoscaler does not scale down at once."""
        if not self._advice:
            self._advice.append({"replicas": replicas, "at": self._c.timestamp()})
            self._keep()

    def paced(self, current: int, wanted: int, least: int, most: int) -> Paced:
        """What of a recommendation is done now. It is remembered."""
        if self._behavior is None:
            return self._plain(current, wanted, least, most)
        up, down = rules(self._behavior, "scaleUp"), rules(self._behavior, "scaleDown")
        held, moves = self._stabilised(current, wanted, up, down), self._moves
        able = READY
        if held != wanted:
            able = HELD_UP if wanted >= current else HELD_DOWN
        if held > current:
            limit = max(self._up_limit(current, moves, up), current)
            top, why = (limit, TOO_FAST) if most > limit else (most, TOO_MANY)
            return Paced(top, able, True, why) if held > top else Paced(held, able, False, WITHIN)
        if held < current:
            limit = min(self._down_limit(current, moves, down), current)
            bottom, why = (limit, TOO_FAST_DOWN) if least < limit else (least, TOO_FEW)
            return Paced(bottom, able, True, why) if held < bottom else Paced(held, able, False, WITHIN)
        return Paced(held, able, False, WITHIN)

    def moved(self, before: int, after: int) -> None:
        """Remembers a change of the scale, where there are rules about its pace."""
        if self._behavior is None:
            return
        direction = "scaleUp" if after > before else "scaleDown"
        longest = max((each["periodSeconds"] for each in rules(self._behavior, direction)["policies"]), default=0)
        kept = [each for each in self._moves if (each["by"] > 0) != (after > before) or self._recent(each, longest)]
        self._moves = [*kept, {"by": after - before, "at": self._c.timestamp()}]
        self._keep()

    def _plain(self, current: int, wanted: int, least: int, most: int) -> Paced:
        recent = [each for each in self._advice if self._recent(each, DOWN_WINDOW)]
        held = max([wanted, *(each["replicas"] for each in recent)])
        self._advise(recent, wanted)
        able = HELD_DOWN if held != wanted else READY
        limit = max(RATE_FACTOR * current, RATE_LEAST)
        top, why = (limit, TOO_FAST) if most > limit else (most, TOO_MANY)
        if held < least:
            return Paced(least, able, True, TOO_FEW)
        return Paced(top, able, True, why) if held > top else Paced(held, able, False, WITHIN)

    def _stabilised(self, current: int, wanted: int, up: Json, down: Json) -> int:
        low = high = wanted
        kept = []
        for each in self._advice:
            young = self._recent(each, up["stabilizationWindowSeconds"])
            younger = self._recent(each, down["stabilizationWindowSeconds"])
            low = min(low, each["replicas"]) if young else low
            high = max(high, each["replicas"]) if younger else high
            if young or younger:
                kept.append(each)
        self._advise(kept, wanted)
        return int(min(max(current, low), high))

    def _advise(self, kept: list[dict[str, Any]], wanted: int) -> None:
        """Adds a recommendation to those that still count; of equal ones in a row the first and the last are enough."""
        while len(kept) > 1 and kept[-1]["replicas"] == kept[-2]["replicas"] == wanted:
            kept.pop()
        self._advice = [*kept, {"replicas": wanted, "at": self._c.timestamp()}]
        self._keep()

    def _recent(self, each: Json, seconds: float) -> bool:
        return not self._c.elapsed(each["at"], seconds)

    def _up_limit(self, current: int, moves: list[dict[str, Any]], rule: Json) -> int:
        proposals = []
        for policy in rule["policies"]:
            start = current - self._net(moves, policy["periodSeconds"])
            share = ceil(start * (1 + policy["value"] / 100))
            proposals.append(start + policy["value"] if policy["type"] == "Pods" else share)
        if rule["selectPolicy"] == "Disabled" or not proposals:
            return current
        return int(min(proposals) if rule["selectPolicy"] == "Min" else max(proposals))

    def _down_limit(self, current: int, moves: list[dict[str, Any]], rule: Json) -> int:
        proposals = []
        for policy in rule["policies"]:
            start = current - self._net(moves, policy["periodSeconds"])
            share = int(start * (1 - policy["value"] / 100))
            proposals.append(start - policy["value"] if policy["type"] == "Pods" else share)
        if rule["selectPolicy"] == "Disabled" or not proposals:
            return current
        return max(proposals) if rule["selectPolicy"] == "Min" else min(proposals)

    def _net(self, moves: list[dict[str, Any]], seconds: int) -> int:
        """By how much the scale has changed in the last seconds."""
        return sum(int(each["by"]) for each in moves if self._recent(each, seconds))

    def _keep(self) -> None:
        self._c.memory[self._place] = {"advice": self._advice, "moves": self._moves}
