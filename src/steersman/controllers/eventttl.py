"""Events end an hour after they were told last, as those of kube-apiserver do (--event-ttl)."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.client import Client
from steersman.api.controller import Controller
from steersman.api.times import time_of
from steersman.kernel.object import Key
from steersman.kernel.value import EMPTY

LIFETIME: Final = 3_600
"""Seconds."""


class EventTtl(Controller):
    """Deletes Events."""

    name = "event-ttl"
    kind = "v1/Event"

    def reconcile(self, c: Client, key: Key) -> None:
        """Deletes the event if its time is over, else is called again then."""
        event = c.get(key)
        if event is not None and c.after(_told(event), LIFETIME):
            c.delete(key, uid=event["metadata"]["uid"], rv=event["metadata"]["resourceVersion"])


def _told(event: Any) -> int:
    """When an event was told last (microseconds): by whichever of its times is the latest."""
    series = event.get("series") or EMPTY
    told = [event["metadata"]["creationTimestamp"], event.get("lastTimestamp"), event.get("eventTime")]
    texts = (*told, series.get("lastObservedTime"))
    return max([time for text in texts if (time := time_of(text)) is not None], default=0)
