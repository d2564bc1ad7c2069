"""Events: what controllers tell people, aggregated as client-go's recorder does it.

A `Note` is what a controller says; a `Recorder` turns notes into requests for core/v1 Events: the same thing said
again counts up in the event there is, ten different messages of one reason within ten minutes become one event, and
who goes on talking about one object is cut short. Its memory is bounded and lost with the process, as client-go's is.
Names are deterministic: the object's name and a digest of what is said, where client-go takes the time.

Source of the facts: client-go 0.36 tools/record (events_cache.go, event.go) and tools/reference.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.api.times import MICRO, time_text
from steersman.kernel.effect import Request
from steersman.kernel.identity import digest
from steersman.kernel.object import Key, Object
from steersman.kernel.value import Frozen

EVENT: Final = ("", "Event")
CACHE: Final = 4_096
"""Objects, reasons and messages remembered, as in client-go; the longest untold go first."""
SIMILAR: Final = 10
"""Different messages of one reason about one object before they are told as one."""
SIMILAR_WITHIN: Final = 600 * MICRO
BURST: Final = 25
"""Events of one source about one object; then one more every five minutes."""
REFILL: Final = 300 * MICRO
COMBINED: Final = "(combined from similar events): "
MAX_NAME: Final = 253 - 33
"""Characters of the object's name in the event's: a name has 253 at most, and 33 are the dot and the digest."""
MAX_MESSAGE: Final = 1_024
"""Characters of a message, which the API's validation of new events allows."""


class Note(NamedTuple):
    """What a controller tells about an object. `about`: an involvedObject. `source`: the component."""

    about: Frozen
    type: str
    """Normal | Warning"""
    reason: str
    message: str
    source: str
    host: str = ""
    """The node the component runs on, of kubelets."""


def about_pod(pod: Object, **part: str) -> Frozen:
    """The involvedObject of an event about a pod, or about the `fieldPath` in it."""
    return Frozen(
        apiVersion="v1", kind="Pod", namespace=pod.key.namespace, name=pod.key.name, uid=pod.uid,
        resourceVersion=str(pod.rv), **part,
    )  # fmt: skip


def event_name(name: str, mark: int) -> str:
    """The name of the event about an object of this name; `mark`: a digest of what is said."""
    return f"{name[:MAX_NAME].rstrip('-.')}.{mark:x}"


class Said(NamedTuple):
    """What a controller says, as it says it: where nobody listens, making a `Note` of it costs nothing."""

    obj: Mapping[str, Any]
    """As it was read."""
    type: str
    reason: str
    message: str
    source: str

    def note(self) -> Note:
        """What of it is told."""
        obj, meta = self.obj, self.obj["metadata"]
        about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"]}
        for name in ("namespace", "uid", "resourceVersion"):
            if meta.get(name):
                about[name] = meta[name]
        return Note(Frozen(about), self.type, self.reason, self.message[:MAX_MESSAGE], self.source)


class Recorder:
    """Turns notes into requests. One for each process; not for several threads at once."""

    def __init__(self) -> None:
        self._similar: OrderedDict[int, tuple[int, tuple[int, ...]]] = OrderedDict()
        """Digest of source, object and reason → when it was told last, and digests of its messages."""
        self._told: OrderedDict[int, tuple[int, str]] = OrderedDict()
        """Digest of an event → its count and its first time."""
        self._tokens: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """Digest of source and object → events it may still tell, and since when that is so."""

    def request(self, note: Note, now: int) -> Request | None:
        """The request that tells a note at `now` (microseconds); None when its source has said too much."""
        about = note.about
        object_ = (about["apiVersion"], about["kind"], about.get("namespace", ""), about["name"], about.get("uid", ""))
        if not self._allowed(digest("source", note.source, *object_), now):
            return None
        group = digest("reason", note.source, *object_, note.type, note.reason)
        message, mark = note.message, digest("event", group, note.message)
        if self._are_similar(group, mark, now):
            message, mark = COMBINED + message, group
        elif path := about.get("fieldPath"):
            mark = digest("event", mark, path)
        at = time_text(now // MICRO)
        count, first = self._told.get(mark, (0, at))
        _keep(self._told, mark, (count + 1, first))
        namespace = about.get("namespace") or "default"
        key = Key(*EVENT, namespace, event_name(about["name"], mark))
        if count:
            body = Frozen(count=count + 1, lastTimestamp=at, message=message)
            return Request("patch", key, body, manager=note.source, options=Frozen(patch="merge"))
        return Request("create", key, _event(key, note, message, at), manager=note.source)

    def again(self, request: Request, note: Note, now: int) -> Request:
        """The request after one that was refused: an event that ended meanwhile is told anew, one that is there from
        an earlier life of this process is taken over."""
        at = time_text(now // MICRO)
        if request.verb == "create":
            body = Frozen(count=1, firstTimestamp=at, lastTimestamp=at, message=request.body["message"])
            return Request("patch", request.key, body, manager=note.source, options=Frozen(patch="merge"))
        return Request(
            "create", request.key, _event(request.key, note, request.body["message"], at), manager=note.source
        )

    def _allowed(self, who: int, now: int) -> bool:
        left, since = self._tokens.get(who, (BURST, now))
        gained, _ = divmod(now - since, REFILL)
        left, since = min(BURST, left + gained), since + gained * REFILL
        if left == BURST:
            since = now
        _keep(self._tokens, who, (max(0, left - 1), since))
        return left > 0

    def _are_similar(self, group: int, mark: int, now: int) -> bool:
        last, marks = self._similar.get(group, (now, ()))
        if now - last > SIMILAR_WITHIN:
            marks = ()
        if mark not in marks:
            marks = (*marks, mark)
        similar = len(marks) >= SIMILAR
        _keep(self._similar, group, (now, marks[1:] if similar else marks))
        return similar


def _keep(cache: OrderedDict[int, Any], key: int, value: Any) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > CACHE:
        cache.popitem(last=False)


def _event(key: Key, note: Note, message: str, at: str) -> Frozen:
    where = {"reportingInstance": note.host} if note.host else {}
    return Frozen(
        apiVersion="v1",
        kind="Event",
        metadata=Frozen(name=key.name, namespace=key.namespace),
        involvedObject=note.about,
        reason=note.reason,
        message=message,
        source=Frozen(component=note.source, host=note.host) if note.host else Frozen(component=note.source),
        firstTimestamp=at,
        lastTimestamp=at,
        count=1,
        type=note.type,
        reportingComponent=note.source,
        **where,
    )
