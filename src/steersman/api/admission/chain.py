"""The chain of admission: plugins in order, run where kube-apiserver runs them.

A write is decoded and completed with defaults, and its ownership noted (the writer's draft); mutating plugins change
it, in order; what they changed is completed and validated again; validating plugins judge the result; then it is
committed. What plugins add belongs to nobody in managedFields, because ownership is noted before them. The
object-local writer stays what check remembers: the chain stands around it, and reads the store.

Source of the facts: Kubernetes 1.36, apiserver `pkg/endpoints/handlers` (create.go, update.go, patch.go, delete.go),
`pkg/admission/chain.go` and `reinvocation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from steersman.api import errors
from steersman.api.access.user import User, node_of
from steersman.api.admission.plugin import CREATE, Answer, Ask, Attempt, Plugin, Verdict
from steersman.api.by import Written
from steersman.api.kinds import GK, Kind
from steersman.kernel.effect import Call, Outcome, Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store

Then = Callable[[Attempt], Outcome]
Step = tuple[Plugin, Callable[[Attempt], Answer]]
"""A plugin, and its `mutate` or `validate`."""
Where = tuple[GK, str, str, bool]


class Drafts(Protocol):
    """What the chain needs of the writer (`api.begin.Writer`)."""

    def write(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str = "") -> Written:
        """The next version, valid."""

    def draft(self, kind: Kind, key: Key, old: Object | None, request: Request, uid: str = "") -> Written:
        """The next version, decoded and complete, not judged."""

    def settle(
        self, kind: Kind, key: Key, old: Object | None, request: Request, draft: Object, body: Any, judged: bool
    ) -> Object:
        """The next version, valid, with the changed body of a draft and the draft's ownership."""


class _Steps:
    """The mutating or the validating plugins of a plan, in order."""

    __slots__ = ("_all", "_needed", "_unneeding")

    def __init__(self, steps: Sequence[Step]) -> None:
        self._all = tuple(steps)
        self._unneeding = tuple([step for step in steps if not step[0].needs])
        self._needed = frozenset([gk for plugin, _ in steps for gk in plugin.needs])

    def on(self, store: Store) -> Sequence[Step]:
        """Those that may have something to say of this store."""
        return self._unneeding if store.lacks(self._needed) else self._all


class Plan:
    """The plugins that care about one kind, operation and subresource. Stateless: see `Chain.plan`."""

    __slots__ = ("_always", "_mutators", "_needed", "_needs", "_validators")

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._mutators = _Steps([(p, p.mutate) for p in plugins if type(p).mutate is not Plugin.mutate])
        self._validators = _Steps([(p, p.validate) for p in plugins if type(p).validate is not Plugin.validate])
        self._always = any(not p.needs for p in plugins)
        self._needed = frozenset([gk for p in plugins for gk in p.needs])
        self._needs = tuple(sorted({gk for p in plugins for gk in p.needs}))

    def active(self, store: Store) -> bool:
        """Whether any plugin may have something to say."""
        if self._always:
            return True
        return not store.lacks(self._needed) and any(map(store.count, self._needs))

    def write(self, writer: Drafts, attempt: Attempt, uid: str, then: Callable[[Written], Outcome]) -> Outcome:
        """Carries a create or update through; `then` makes the outcome of what is to be stored. Raises `ApiError`."""
        _, request, kind, key, _, old, *_ = attempt
        problem: errors.ApiError | None = None
        try:
            drafted = writer.write(kind, key, old, request, uid)
        except errors.Invalid as invalid:  # plugins come first: they may refuse it, or repair it
            problem = invalid
            drafted = writer.draft(kind, key, old, request, uid)
        draft = drafted.obj
        before = draft.value

        def mutated(after: Attempt) -> Outcome:
            obj = draft
            if after.body is not before:
                obj = writer.settle(kind, key, old, request, draft, after.body, problem is None)
                after = after.having(obj.value)
            elif problem is not None:
                raise problem
            return self._judge(after, lambda a: then(Written(obj, a.warnings)))

        return self.mutate(attempt.having(before, drafted.warnings), mutated)

    def run(self, attempt: Attempt, then: Then) -> Outcome:
        """Carries through a delete, or a write to a subresource with a kind of its own. Raises `ApiError`."""
        return self.mutate(attempt, lambda after: self._judge(after, then))

    def _judge(self, attempt: Attempt, then: Then) -> Outcome:
        steps = self._validators.on(attempt.store)
        return self._run(steps, 0, Attempt(*attempt[:-2], True, attempt.again), then)

    def mutate(self, attempt: Attempt, then: Then) -> Outcome:
        """The mutating plugins; twice when one of them asks for it."""
        steps = self._mutators.on(attempt.store)

        def once(after: Attempt) -> Outcome:
            return self._run(steps, 0, after, then) if after.again else then(after)

        return self._run(steps, 0, attempt, once)

    def _run(self, steps: Sequence[Step], start: int, attempt: Attempt, then: Then) -> Outcome:
        for index in range(start, len(steps)):
            plugin, step = steps[index]
            if plugin.needs and not any(map(attempt.store.count, plugin.needs)):
                continue
            answer = step(attempt)
            if answer is None:
                continue
            if isinstance(answer, Ask):
                return self._asked(answer, steps, index, attempt, then)
            attempt = _taken(attempt, answer)
        return then(attempt)

    def _asked(self, ask: Ask, steps: Sequence[Step], index: int, attempt: Attempt, then: Then) -> Call:
        def resume(answer: Any) -> Outcome:
            said = ask.resume(answer)
            if isinstance(said, Ask):
                return self._asked(said, steps, index, attempt, then)
            after = attempt if said is None else _taken(attempt, said)
            return self._run(steps, index + 1, after, then)

        return Call(ask.kind, ask.question, resume)


def _taken(attempt: Attempt, verdict: Verdict) -> Attempt:
    body = attempt.body if verdict.body is None else verdict.body
    after = attempt.having(body, verdict.warnings)
    return after._replace(again=True) if verdict.again and not after.again else after


class Chain:
    """An ordered, immutable chain of plugins."""

    __slots__ = ("_plans", "plugins")

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = tuple(plugins)
        self._plans: dict[Where, Plan | None] = {}

    def plan(
        self, store: Store, gk: GK, operation: str = CREATE, subresource: str = "", user: User | None = None
    ) -> Plan | None:
        """The plugins that have something to say; None, after one look-up, when nobody has."""
        if not self.plugins:
            return None
        where = (gk, operation, subresource, user is not None and node_of(user) is not None)
        try:
            plan = self._plans[where]
        except KeyError:
            plan = self._plans[where] = self._make(where)
        return plan if plan is not None and plan.active(store) else None

    def _make(self, where: Where) -> Plan | None:
        gk, operation, subresource, by_node = where
        chosen = [
            plugin
            for plugin in self.plugins
            if (plugin.kinds is None or gk in plugin.kinds)
            and operation in plugin.operations
            and (plugin.subresources is None or subresource in plugin.subresources)
            and (by_node or not plugin.of_nodes)
        ]
        return Plan(chosen) if chosen else None


NONE: Final = Chain()
"""No plugins: the rules that are always on, such as a namespace's life, are the request machine's own."""
