"""Events about pods that found a node or none: what `kubectl describe pod` shows of the scheduler's reasons.

One core/v1 Event for a pod, brought up to date instead of written anew: its count, its last time, its message. That
is the shape client-go's recorder gives them (tools/record, with the reason FailedScheduling of kube-scheduler's
handleSchedulingFailure); but there they end after an hour, and here with their pod, so that they do not heap up. And
one for each pod that was bound, in the shape of events.k8s.io (tools/events), as there.
"""

from __future__ import annotations

from typing import Final

from steersman.api.events import EVENT, about_pod, event_name
from steersman.api.times import MICRO, micro_text, time_of, time_text
from steersman.kernel.effect import Request
from steersman.kernel.identity import digest
from steersman.kernel.object import Key, Object
from steersman.kernel.value import EMPTY, Frozen

REASON: Final = "FailedScheduling"
SCHEDULED: Final = "Scheduled"
QUIET: Final = 60 * MICRO
"""How long the same message is not told again: thousands of pods may wait while nodes change every second."""


class Notices:
    """The events there are, by the uid of their pod. All of it follows from the objects seen.

    living: uids of the pods there are. stale: pods that are gone and have an event yet. bound: pods that were bound
    and of which that is yet to be told.
    """

    __slots__ = ("_component", "bound", "living", "stale", "told")

    def __init__(self, component: str) -> None:
        self._component = component
        self.living: dict[str, None] = {}
        self.told: dict[str, Object] = {}
        self.stale: dict[str, None] = {}
        self.bound: list[Object] = []

    def copy(self) -> Notices:
        """An independent one with the same contents."""
        other = Notices(self._component)
        other.living, other.told, other.stale = self.living.copy(), self.told.copy(), self.stale.copy()
        other.bound = self.bound.copy()
        return other

    def pod_seen(self, old: Object | None, new: Object | None) -> None:
        """A pod came, changed, went, or is another one of its name."""
        if old is not None and (new is None or new.uid != old.uid):
            self.living.pop(old.uid, None)
            if old.uid in self.told:
                self.stale[old.uid] = None
        if new is not None:
            self.living[new.uid] = None
            if new.node and old is not None and not old.node and old.uid == new.uid and self._is_mine(new):
                self.bound.append(new)

    def event_seen(self, old: Object | None, new: Object | None) -> None:
        """An event came, changed or went; those of others are left alone."""
        if old is not None and (uid := self._pod_of(old)):
            self.told.pop(uid, None)
            self.stale.pop(uid, None)
        if new is not None and (uid := self._pod_of(new)):
            self.told[uid] = new
            if uid not in self.living:
                self.stale[uid] = None

    def failed(self, pod: Object, message: str, now: int) -> Request | None:
        """Tells that the pod found no node at `now` (microseconds); None when that was told lately."""
        at = time_text(now // MICRO)
        told = self.told.get(pod.uid)
        if told is None:
            body = self._event(pod, message, at)
            return Request("create", Key(*EVENT, pod.key.namespace, _name(pod)), body, manager="kube-scheduler")
        value = told.value
        if value.get("message") == message and now - (time_of(value.get("lastTimestamp")) or 0) < QUIET:
            return None
        count = value.get("count")
        count = count + 1 if isinstance(count, int) else 1
        changed = Frozen(count=count, lastTimestamp=at, message=message)
        return Request("patch", told.key, changed, manager="kube-scheduler", options=Frozen(patch="merge"))

    def scheduled(self, limit: int, now: int) -> list[Request]:
        """Tells of pods that were bound, `limit` at most, at `now` (microseconds)."""
        told = self.bound[:limit]
        del self.bound[:limit]
        return [
            Request(
                "create",
                Key(*EVENT, pod.key.namespace, f"{_name(pod)}s"),
                self._binding(pod, now),
                manager=self._component,
            )
            for pod in told
        ]

    def swept(self, limit: int) -> list[Request]:
        """Deletions of events whose pods are gone, `limit` at most; they are not asked for again."""
        requests = []
        for uid in list(self.stale)[:limit]:
            del self.stale[uid]
            event = self.told.pop(uid)
            requests.append(Request("delete", event.key, manager="kube-scheduler", options=Frozen(uid=event.uid)))
        return requests

    def _is_mine(self, pod: Object) -> bool:
        return bool(pod.value["spec"].get("schedulerName") == self._component)

    def _binding(self, pod: Object, now: int) -> Frozen:
        namespace, name = pod.key.namespace, pod.key.name
        return Frozen(
            apiVersion="v1", kind="Event", metadata=Frozen(name=f"{_name(pod)}s", namespace=namespace),
            involvedObject=about_pod(pod), type="Normal", reason=SCHEDULED, action="Binding",
            message=f"Successfully assigned {namespace}/{name} to {pod.node}", eventTime=micro_text(now),
            source=EMPTY, reportingComponent=self._component, reportingInstance=self._component,
        )  # fmt: skip

    def _event(self, pod: Object, message: str, at: str) -> Frozen:
        return Frozen(
            apiVersion="v1", kind="Event", metadata=Frozen(name=_name(pod), namespace=pod.key.namespace),
            involvedObject=about_pod(pod), type="Warning", reason=REASON, message=message, count=1,
            firstTimestamp=at, lastTimestamp=at, source=Frozen(component=self._component),
            reportingComponent=self._component,
        )  # fmt: skip

    def _pod_of(self, event: Object) -> str:
        """The uid of the pod that an event of ours is about, or ""."""
        value = event.value
        about = value.get("involvedObject") or EMPTY
        mine = value.get("reason") == REASON and value.get("reportingComponent") == self._component
        return str(about.get("uid") or "") if mine and about.get("kind") == "Pod" else ""


def _name(pod: Object) -> str:
    return event_name(pod.key.name, digest("event", pod.uid))
