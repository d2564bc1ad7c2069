"""Controllers: what a person writes, and how the kernel runs it.

A `Controller` is a class with a `reconcile(self, c, key)` in plain synchronous code. A fresh instance serves each
execution and its attributes are frozen after `__init__`: what is to be remembered goes into `c.memory`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, ClassVar, Final

from xxhash import xxh3_64_hexdigest

from steersman.api.begin import Api
from steersman.api.client import Client, Memory
from steersman.api.errors import ApiError
from steersman.api.times import MICRO
from steersman.kernel.effect import GK, Event
from steersman.kernel.object import Key, Object
from steersman.kernel.reexec import Exchange, Hung, Learned, Result, Suspend
from steersman.kernel.store import Finder, Store
from steersman.kernel.value import Frozen

Find = Callable[[str, str], Iterator[Object]]
NEVER_RAN: Final = (AsyncGeneratorType, CoroutineType, GeneratorType)
"""What a call of a function with `async` or `yield` in it gives, before anything in it has been done."""
"""(index, value) → the objects a declared index holds."""
EVERY_KIND: Final = "*"
MAX_CLASSES: Final = 256
"""Classes of which digest and sealed form are kept: every workspace runs the same ones."""


class Controller:
    """The base of every controller. See docs/check.md for an example."""

    name: ClassVar[str] = ""
    """How the controller signs what it does; by default the class name in kebab case."""
    kind: ClassVar[str] = ""
    """Keys of this kind are reconciled; "*" for every kind."""
    owns: ClassVar[Sequence[str]] = ()
    """Kinds whose objects wake their controller owner of `kind`."""
    watches: ClassVar[Mapping[str, Callable[[Any], Iterable[Key]]]] = {}
    """Other kinds: object → keys to reconcile."""
    reads: ClassVar[Sequence[str]] = ()
    """`apps/v1/Deployment:spec`: what it reads. Learned in check; enforced where ownership is."""
    writes: ClassVar[Sequence[str]] = ()
    workers: ClassVar[int] = 1
    """Reconciles of different keys at a time."""
    target: ClassVar[str] = ""
    after: ClassVar[Sequence[str]] = ()
    requires: ClassVar[Sequence[str]] = ()
    wants: ClassVar[Sequence[str]] = ()

    def reconcile(self, c: Client, key: Key) -> float | None:
        """Brings the world closer to what `key` asks for. Returns seconds until it wants to be called again, or None.
        An exception puts the key back on the queue, with back-off."""
        raise NotImplementedError(f"{type(self).__name__} has no reconcile(self, c, key)")

    def map_event(self, event: Event, find: Find) -> Iterable[Key] | None:
        """The keys an event wakes; None for the rule that `kind`, `owns` and `watches` state."""
        return None


class SealedError(AttributeError):
    """A controller tried to keep something on itself."""


class ControllerError(ValueError):
    """A controller's own declaration or watch function is at fault; the text names both."""


_PACKAGE: Final = __file__.replace("\\", "/").rpartition("/api/")[0]
_NOT_THEIRS: Final = tuple([f"{_PACKAGE}/{part}/" for part in ("api", "kernel", "check", "run", "sim")])


def is_theirs(file: str) -> bool:
    """Whether a source file is the person's own (or a built-in controller's): not Python's, not a library's."""
    path = file.replace("\\", "/")
    return not (path.startswith(("<", *_NOT_THEIRS)) or "/lib/python3" in path or "/site-packages/" in path)


def place_of(error: BaseException) -> str:
    """`file, line n`: the innermost place in the person's own code that an exception passed through."""
    place, fallback, trace = "", "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        fallback = f"{file}, line {trace.tb_lineno}"
        if is_theirs(file):
            place = fallback
        trace = trace.tb_next
    return place or fallback


def _key(value: Any) -> Key:
    """What an event wakes, if it is a key. Raises `TypeError`."""
    if not isinstance(value, Key):
        raise TypeError(f"it gave {value!r}, which is no key; give event.key, or sm.Key(group, kind, namespace, name)")
    return value


def _is_written_by_them(function: Callable[..., Any]) -> bool:
    return not (getattr(function, "__module__", None) or "").startswith("steersman.")


def _refuse(self: object, name: str, *_value: object) -> None:
    raise SealedError(
        f"{type(self).__name__}.{name} cannot be set in reconcile: each call gets a fresh instance, and a crash would "
        f"lose it; keep it in c.memory[{name!r}]"
    )


@lru_cache(maxsize=MAX_CLASSES)
def _sealed(cls: type[Controller]) -> type[Controller]:
    return type(cls.__name__, (cls,), {"__setattr__": _refuse, "__delattr__": _refuse, "__module__": cls.__module__})


def controller_name(cls: type[Controller]) -> str:
    """Its declared name, or the class name in kebab case."""
    return cls.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__).lower()


@lru_cache(maxsize=MAX_CLASSES)
def code_digest(cls: type[Controller]) -> str:
    """A digest of the class's code: bytecode, constants and names of its functions and those of its bases."""
    parts: list[str] = []

    def add(code: CodeType) -> None:
        parts.append(code.co_code.hex())
        parts.append(repr(code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                add(constant)
            elif isinstance(constant, frozenset):
                parts.append(repr(sorted(constant, key=repr)))
            else:
                parts.append(repr(constant))

    for base in cls.__mro__[:-2]:
        for name, item in sorted(vars(base).items()):
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            if isinstance(item, FunctionType):
                parts.append(name)
                add(item.__code__)
    return xxh3_64_hexdigest("\0".join(parts).encode())


class Loop:
    """A controller as the kernel runs it (`kernel.reexec.Reconciler`)."""

    def __init__(self, factory: type[Controller] | Callable[[], Controller], api: Api, name: str = "") -> None:
        sample = factory()
        if not isinstance(sample, Controller):
            raise TypeError(f"{factory!r} does not make a steersman.Controller")
        cls = type(sample)
        self.api = api
        self.name = name or controller_name(cls)
        self.workers = cls.workers
        self.code = code_digest(cls)  # type: ignore[arg-type]  # a class is hashable
        self._factory = factory
        self._sealed = _sealed(cls)  # type: ignore[arg-type]
        self._mapper = self._make()  # events are many, and mapping one changes nothing
        self.everything = cls.kind == EVERY_KIND
        """It reconciles every kind, as a garbage collector does."""
        if not cls.kind:
            raise TypeError(f"{cls.__name__} does not say which kind it reconciles; set kind = 'group/version/Kind'")
        self._for = None if self.everything else api.kinds.find(cls.kind)
        self._owned = tuple([api.kinds.find(text).gk for text in cls.owns])
        self._watched = {api.kinds.find(text).gk: function for text, function in cls.watches.items()}
        self._maps_itself = cls.map_event is not Controller.map_event
        self._map = self._mapper.map_event
        kinds = [] if self._for is None else [self._for.gk]
        reads = [api.kinds.find(text.partition(":")[0]).gk for text in cls.reads]
        self.informers: tuple[GK, ...] = tuple(dict.fromkeys([*kinds, *self._owned, *self._watched, *reads]))
        self._listens = frozenset([*kinds, *self._owned, *self._watched])

    def listens(self, gk: GK) -> bool:
        """Whether events of a kind can wake it."""
        return self.everything or gk in self._listens

    def triggers(self, event: Event, store: Finder) -> list[Key]:
        """The keys an event puts on its queue."""
        try:
            return self._triggers(event, store)
        except Exception as error:
            name = f"{event.key}: {type(error).__name__}: {error} ({place_of(error)})"
            raise ControllerError(
                f"controller {self.name}: what maps events to keys (watches, map_event) failed on {name}"
            ) from error

    def _triggers(self, event: Event, store: Finder) -> list[Key]:
        if self._maps_itself:
            mapped = self._map(event, store.find)
            if mapped is not None:
                return list(dict.fromkeys(map(_key, mapped)))
        gk = (event.key.group, event.key.kind)
        out: dict[Key, None] = {}
        if self._for is not None and gk == self._for.gk:
            out[event.key] = None
        for obj in (event.old, event.new):
            if obj is None:
                continue
            if gk in self._owned:
                owner = self._owner(obj)
                if owner is not None:
                    out[owner] = None
            function = self._watched.get(gk)
            if function is not None:
                out.update(dict.fromkeys(map(_key, function(obj.value))))
        return list(out)

    def wrap_mappings(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Has `wrap` around the functions of theirs that say whom an event wakes."""
        if self._maps_itself and _is_written_by_them(self._map):
            self._map = wrap(self._map)
        self._watched = {
            gk: wrap(function) if _is_written_by_them(function) else function for gk, function in self._watched.items()
        }

    def _owner(self, obj: Object) -> Key | None:
        assert self._for is not None
        for owner in obj.meta.value.get("ownerReferences") or ():
            group = owner["apiVersion"].rpartition("/")[0]
            if owner.get("controller") and (group, owner["kind"]) == self._for.gk:
                return Key(group, owner["kind"], obj.key.namespace if self._for.namespaced else "", owner["name"])
        return None

    def initial(self, store: Store) -> list[Key]:
        """Every key that it is responsible for: it hears of each object, of every kind that can wake it, as if it had
        just been added, as Kubernetes' informers tell their handlers of what they list. So what belongs to an object
        that is gone wakes its key."""
        if self.everything and not self._maps_itself:
            return [obj.key for obj in store.objects()]
        own = None if self._for is None or self._maps_itself else self._for.gk
        if own is not None and len(self._listens) == 1:
            return [obj.key for obj in store.list(own)]
        kinds = store.kinds() if self.everything else sorted(self._listens, key=lambda gk: (gk != own, gk))
        woken: dict[Key, None] = {}
        for obj in [obj for gk in kinds for obj in store.list(gk)]:
            woken.update(dict.fromkeys(self.triggers(Event(obj.rv, obj.key, None, obj), store)))
        return list(woken)

    def _make(self) -> Controller:
        instance = self._factory()
        instance.__class__ = self._sealed
        return instance

    def execute(self, key: Key, memory: Frozen | None, exchange: Exchange) -> Result:
        """One whole reconcile by a fresh instance."""
        remembered = Memory(memory)
        client = Client(exchange, self.api, self.name, remembered)
        error: str | None = None
        api_error = False
        where = ""
        try:
            again: Any = self._make().reconcile(client, key)
            if isinstance(again, (int, float)) and not isinstance(again, bool):
                client.requeue(again)  # not every number is a delay
            elif isinstance(again, NEVER_RAN):
                if not isinstance(again, AsyncGeneratorType):
                    again.close()
                raise TypeError(f"reconcile gave a {type(again).__name__}: nothing of it ran; no async, no yield")
        except (Suspend, Hung, Learned, KeyboardInterrupt):
            raise
        except ApiError as failure:
            error, api_error = failure.told, True
        except BaseException as failure:
            error = f"{type(failure).__name__}: {failure}"
            where = place_of(failure)
        kept = remembered.frozen() if remembered.changed else memory
        looked = tuple(remembered.looked)
        return Result(kept, client.wake_after, client.wake, False, error, api_error, where, looked)


__all__ = ["MICRO", "Controller", "ControllerError", "Loop", "SealedError", "code_digest", "controller_name"]
