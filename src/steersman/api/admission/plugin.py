"""What an admission plugin is: a pure judge of one write, which may change it, refuse it, or have somebody asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from steersman.api import errors
from steersman.api.kinds import GK, Kind
from steersman.kernel.effect import Request
from steersman.kernel.object import Key, Object
from steersman.kernel.store import Store

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"


def part_of(request: Request) -> str:
    """The subresource that a request writes: of a Scale, which comes as a write to its workload, that is scale."""
    return request.options.get("part") or request.subresource


class Attempt(NamedTuple):
    """One write on its way through the chain."""

    store: Store
    """The head on which the write is begun. Whoever answers an `Ask` while the head moves must begin anew."""
    request: Request
    kind: Kind
    key: Key
    """The slot, its name drawn."""
    operation: str
    """CREATE | UPDATE | DELETE | CONNECT. A patch is an UPDATE; an apply is what it comes to."""
    old: Object | None
    """The version there is; None for a create."""
    body: Mapping[str, Any] | None
    """The whole object as it would be stored, decoded and complete with defaults; for a subresource with a kind of its
    own (a Binding, an Eviction) that body; None for a delete. Its parts are shared: replace them, do not change them.
    """
    warnings: tuple[str, ...] = ()
    judged: bool = False
    """The write has been validated: this is the second half of the chain."""
    again: bool = False
    """The mutating plugins run a second time, because one asked for it (`Verdict.again`)."""

    def having(self, body: Mapping[str, Any] | None, warnings: tuple[str, ...] = ()) -> Attempt:
        """The attempt with this body, and these warnings more."""
        told = (*self.warnings, *warnings) if warnings else self.warnings
        return Attempt(*self[:6], body, told, *self[8:])

    @property
    def subresource(self) -> str:
        """Such as status or binding; "" for the object itself."""
        return part_of(self.request)

    def note(self, name: str, value: str) -> None:
        """Leaves an annotation for the audit log, where one is kept."""
        notes = self.request.options.get("audit")
        if notes is not None:
            notes[name] = value

    @property
    def audited(self) -> bool:
        """Whether anybody reads what is noted."""
        return self.request.options.get("audit") is not None

    def forbidden(self, detail: str) -> errors.ApiError:
        """The 403 of a plugin: `pods "web" is forbidden: DETAIL`.

        While a write is changed, a name that is drawn for it is not told: Kubernetes draws it later.
        """
        name = self.key.name
        if not self.judged and self.operation == CREATE and not self.request.key.name:
            meta = self.request.body.get("metadata") if isinstance(self.request.body, dict) else None
            if meta and not meta.get("name"):
                name = str(meta.get("generateName") or name)
        return errors.forbidden(self.kind.plural, name, detail, self.kind.group)


class Verdict(NamedTuple):
    """What a plugin leaves of a write that it does not refuse."""

    body: Mapping[str, Any] | None = None
    """The changed body; None: as it was."""
    warnings: tuple[str, ...] = ()
    again: bool = False
    """Ask for one more run of all mutating plugins, as a webhook with a reinvocationPolicy does."""


class Ask(NamedTuple):
    """Somebody has to be asked first: a webhook. `resume(answer)` raises `ApiError`, answers, or asks on."""

    kind: str
    question: Any
    resume: Callable[[Any], Answer]


Answer = Verdict | Ask | None
"""None: nothing to say."""


class Plugin:
    """Base of all plugins. Instances are immutable and are shared by every request.

    A plugin overrides `mutate`, `validate` or both. Both raise `ApiError` to refuse. `mutate` sees what the client
    sent, with defaults; `validate` sees what is to be stored, found valid.
    """

    name: ClassVar[str]
    """As in kube-apiserver's --enable-admission-plugins."""
    kinds: ClassVar[tuple[GK, ...] | None] = ()
    """The kinds it cares about; None: every kind."""
    operations: ClassVar[tuple[str, ...]] = (CREATE,)
    subresources: ClassVar[tuple[str, ...] | None] = ("",)
    """Those whose writes it cares about, "" being the object itself; None: all."""
    needs: ClassVar[tuple[GK, ...]] = ()
    """It has nothing to say while there is no object of any of these kinds; (): always."""
    of_nodes: ClassVar[bool] = False
    """It cares about what nodes write and about nobody else's writes."""

    def mutate(self, attempt: Attempt) -> Answer:
        """Changes a write, before it is validated."""
        return None

    def validate(self, attempt: Attempt) -> Answer:
        """Judges a write as it would be stored. A body in its verdict is ignored."""
        return None
