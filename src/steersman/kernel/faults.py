"""The catalogue of faults: what may go wrong on a path, how often, and in which words it is told.

A fault is an Action like any other, so that it replays, is minimised and explained; what it needs is a *budget*: how
many of its kind may happen on one path. Budgets are part of the state (`World.budgets`), 0 by default, and what has no
budget does not exist: the graph is the one without the fault. This table is the only list of faults; options, verdicts,
explanations and docs/check.md are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Fault(NamedTuple):
    """One kind of fault."""

    name: str
    """Its budget and option: `sm.check(w, crashes=1)`, `--crashes 1`."""
    op: str
    """The Action that spends one: the first word of its label."""
    models: str
    """What it stands for."""
    source: str
    """Who knows it: a tool, a document, rows of the corpus of known bugs."""
    when: str
    """When the Action is enabled."""
    says: str
    """What `explain` says after the name of who it happens to."""


CATALOGUE: Final = (
    Fault(
        "crashes",
        "crash",
        "a controller's process ends and is started again",
        "Sieve: intermediate states; bugs 2, 12, 20, 30, 37",
        "between any two calls after a write, and where memory or news would be lost that a restart does not bring",
        "crashes and starts again: what it was doing and remembered is lost",
    ),
    Fault(
        "conflicts",
        "conflict",
        "an update, patch or apply loses against a writer nobody modelled",
        "Kubernetes API conventions: concurrency control; Kamera has none",
        "instead of an update, a patch or an apply",
        "refused, 409 Conflict (somebody else wrote first)",
    ),
    Fault(
        "errors",
        "error",
        "the API server fails: 500, nothing was done",
        "Kubernetes API conventions: 500 StatusReasonInternalError; bug 105",
        "instead of a write or a fresh read",
        "failed, 500 InternalError (nothing was done)",
    ),
    Fault(
        "throttles",
        "throttle",
        "the API server is busy: 429, nothing was done",
        "Kubernetes: API priority and fairness",
        "instead of a write or a fresh read",
        "refused, 429 TooManyRequests (nothing was done)",
    ),
    Fault(
        "timeouts",
        "timeout",
        "the request never arrives, and the client gives up",
        "Kubernetes API conventions: 504 StatusReasonTimeout; bug 92",
        "instead of a write or a fresh read",
        "timed out, 504 Timeout (nothing was done)",
    ),
    Fault(
        "lost_replies",
        "lose-reply",
        "the write takes effect, but its answer is lost: the client sees a time-out",
        "Kubernetes API conventions: 504 StatusReasonTimeout: the write may still take effect; bugs 63, 65, 92",
        "instead of a write",
        "done, but the answer is lost: the controller sees 504 Timeout",
    ),
    Fault(
        "coalesced",
        "slow",
        "a watch that shows two updates of an object as one",
        "Sieve: unobserved states; Kubernetes API concepts: watch; bugs 11, 21",
        "at any time, of a kind that a controller reads through its cache; `merge` ends it",
        "gets no events for a while, and then successive updates of an object as one",
    ),
    Fault(
        "unobserved",
        "miss",
        "a watch that shows a deletion and a creation as one update, and never what was created and deleted",
        "Sieve: unobserved states; client-go: DeltaFIFO; bugs 91, 102",
        "at any time, of a kind that a controller reads through its cache; `merge` ends it",
        "gets no events for a while, and then one for each object: what it was and what it is",
    ),
    Fault(
        "relists",
        "lose-watch",
        "a watch that ends with 410 Gone: the cache lists anew, and every object is told of",
        "Kubernetes API concepts: 410 Gone; client-go: reflector; bug 74",
        "at any time, of a kind that a controller reads through its cache; `relist` ends it",
        "is lost (410 Gone) and has to list anew",
    ),
    Fault(
        "rewinds",
        "stall",
        "a controller restarts on an API server that is behind the one it had: it goes back in time, and catches up",
        "Sieve: stale states; kubernetes/kubernetes issue 59848; bugs 1, 6, 9, 13, 15, 27, 31, 43, 56",
        "at any time, for the API server a controller will find; `rewind` restarts the controller on it",
        "will restart on an API server that sees no more changes from here on",
    ),
    Fault(
        "leaders",
        "lead",
        "two leaders: a second instance of a controller is elected while the first one goes on",
        "client-go: leaderelection (it does not promise that only one acts); bug 56",
        "at any time, for any controller; `retire` ends the first one in the end",
        "has a second leader: another instance of it starts, with a memory of its own, and both act",
    ),
    Fault(
        "webhook_errors",
        "hook-error",
        "an admission webhook cannot be reached: its failurePolicy says what becomes of the write",
        "Kubernetes: dynamic admission control, failurePolicy",
        "instead of a call of a webhook",
        "its webhook cannot be reached",
    ),
    Fault(
        "external_errors",
        "external-error",
        "an external system cannot be reached: nothing was done",
        "cass-operator issue 973; bug 105",
        "instead of a call of `c.external`",
        "failed, 503 (nothing was done)",
    ),
    Fault(
        "external_losses",
        "external-lost",
        "an external system does what it was asked for, but its answer is lost",
        "Kubernetes API conventions: 504 StatusReasonTimeout, of any other server",
        "instead of a call of `c.external`, of a model with a state",
        "done, but the answer is lost: the controller sees 504 Timeout",
    ),
    Fault(
        "external_lags",
        "external-old",
        "an external system answers what was true before its last change: eventual consistency",
        "Sieve: stale states, of any other server",
        "instead of a call of `c.external` that only reads, of a model with a state that has changed",
        "answered as before the last change",
    ),
    Fault(
        "clock_jumps",
        "jump",
        "the clock jumps forward by an hour, or by the longest delay anybody waits for if that is more",
        "Kubernetes: leases and back-offs rest on clocks; bug 56",
        "at any time",
        "jumps forward",
    ),
    Fault(
        "clock_setbacks",
        "set-back",
        "the wall clock is set back by an hour: what `c.now()` and `c.timestamp()` give then is before what they gave",
        "NTP steps; Kubernetes measures delays by other clocks",
        "at any time",
        "is set back by an hour",
    ),
    Fault(
        "pod_failures",
        "fail-pod",
        "a kubelet ends a pod (Evicted), or reports it not ready",
        "Kubernetes: node-pressure eviction; bugs 67, 87",
        "of every pod on a node that has not ended; of every pod that is ready",
        "fails",
    ),
    Fault(
        "evictions",
        "evict",
        "somebody evicts a pod, as a drain does; disruption budgets are heeded",
        "Kubernetes: API-initiated eviction; bugs 87, 95",
        "of every pod that has not ended",
        "is evicted",
    ),
    Fault(
        "node_failures",
        "fail-node",
        "a node falls silent (its conditions are Unknown, it is tainted unreachable), or is gone",
        "Kubernetes: nodes, heartbeats; bugs 89, 91",
        "of every Node object",
        "fails",
    ),
    Fault(
        "edits",
        "edit",
        "somebody changes a field of an applied object, rolls it back, deletes the object or makes it again",
        "Acto: operations made from the schema; bugs 47, 48, 50, 52, 53",
        "of every object of `w.apply`, in whatever way its schema allows",
        "edits",
    ),
)
BY_NAME: Final = {fault.name: fault for fault in CATALOGUE}
BY_OP: Final = {fault.op: fault for fault in CATALOGUE}
SAYS: Final = {fault.op: fault.says for fault in CATALOGUE} | {
    "upgrade": "is upgraded: the new version starts, and remembers nothing of what the old one did",
    "retire": "runs once from here on: the old instance ends",
}
"""What is told of an Action after the name of who it happens to."""
FAULTY: Final = frozenset([*BY_OP, "rewind"])
"""Actions that need not happen: no run is unfair for want of them."""
AT_A_REQUEST: Final = ("conflict", "error", "hook-error", "lose-reply", "throttle", "timeout")
AT_A_SYSTEM: Final = ("external-error", "external-lost", "external-old")
AT_A_CALL: Final = (*AT_A_REQUEST, *AT_A_SYSTEM)
"""Faults that befall a call of a reconcile."""
AT_A_WATCH: Final = ("slow", "miss", "lose-watch", "stall")
"""Faults that hold up a watch, or all of a controller's."""
ACTS: Final = ("edit", "evict", "fail-node", "fail-pod")
"""Faults that are API requests of somebody who is no controller."""
EVENTS: Final = tuple([fault.name for fault in CATALOGUE if fault.op in (*ACTS, "jump")])
"""What happens in a world that is in order, where time passes too: a run without faults has it as well."""
NO_LOOP: Final = frozenset(["user", "advance", "jump", "set-back", *ACTS])
"""Actions of nobody's controller."""
ABOUT_A_KIND: Final = frozenset(["deliver", "slow", "miss", "lose-watch", "merge", "relist"])
"""Actions of one controller's view of one kind."""


class Left(NamedTuple):
    """What may still go wrong with what is left of the budgets."""

    ops: frozenset[str]
    at_a_call: tuple[str, ...]
    at_a_kind: tuple[str, ...]
    """Those that hold up the watch of one kind."""


class Budgets:
    """The faults that a system may have: what stands at which place of `World.budgets`."""

    __slots__ = ("_left", "_place", "faults", "full")

    def __init__(self, numbers: Mapping[str, int]) -> None:
        unknown = sorted(numbers.keys() - BY_NAME.keys())
        if unknown:
            raise ValueError(f"no fault is called {unknown[0]!r}; there are: {', '.join(BY_NAME)}")
        self.faults = tuple([fault for fault in CATALOGUE if numbers.get(fault.name)])
        self.full = tuple([numbers[fault.name] for fault in self.faults])
        """The budgets of a path that begins; () when nothing can go wrong."""
        self._place = {fault.op: at for at, fault in enumerate(self.faults)}
        self._left: dict[tuple[int, ...], Left] = {}

    def __bool__(self) -> bool:
        return bool(self.faults)

    def has(self, op: str) -> bool:
        """Whether there ever was a budget for this."""
        return op in self._place

    def left(self, budgets: tuple[int, ...]) -> Left:
        """What can still go wrong."""
        found = self._left.get(budgets)
        if found is None:
            ops = frozenset([fault.op for fault, number in zip(self.faults, budgets, strict=True) if number])
            found = self._left[budgets] = Left(
                ops,
                tuple([op for op in AT_A_CALL if op in ops]),
                tuple([op for op in AT_A_WATCH if op in ops and op in ABOUT_A_KIND]),
            )
        return found

    def spend(self, budgets: tuple[int, ...], op: str) -> tuple[int, ...]:
        """The budgets after one of these."""
        at = self._place[op]
        return (*budgets[:at], budgets[at] - 1, *budgets[at + 1 :])
