"""Scenarios: what a person says about a system: who runs, what is there, who does what, what must hold.

A Scenario is a description. Nothing runs until it is checked (or simulated); every check builds its own world from it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from steersman.api.admission.chain import NONE, Chain
from steersman.api.admission.extension import EXTENSIONS
from steersman.api.admission.match import GROUP as ADMISSION
from steersman.api.begin import Api
from steersman.api.client import Client, key_of
from steersman.api.controller import NEVER_RAN, Controller, Loop, controller_name, place_of
from steersman.api.crd.definition import CRD, declared_kinds
from steersman.api.errors import ApiError
from steersman.api.kinds import Kind, Kinds, UnknownKind
from steersman.api.memo import MemoWriter
from steersman.check.acts import acts
from steersman.check.guard import guarded
from steersman.check.hooks import HookModels
from steersman.check.mistake import ScenarioError as ScenarioError
from steersman.check.options import BY_NAME as OPTIONS
from steersman.check.origin import owners
from steersman.check.properties.names import UnknownProperty, named
from steersman.check.refusals import Refusals
from steersman.check.verdict import plain
from steersman.kernel.effect import Call, Commit, Effect, Request
from steersman.kernel.identity import TABLE, Canon, uid_text
from steersman.kernel.instances import Upgrade
from steersman.kernel.object import Key, Object
from steersman.kernel.rare import NOBODY
from steersman.kernel.store import Store
from steersman.kernel.system import System, UserStep
from steersman.kernel.value import ABSENT, freeze
from steersman.kernel.world import START, World
from steersman.nodes.usage import OUTSIDE


class State:
    """One moment, for properties: `s[web].status.readyReplicas`, `s.count("v1/Pod", owner=web)`."""

    def __init__(self, store: Store, kinds: Kinds, outside: Mapping[str, Any] = NOBODY) -> None:
        self._store = store
        self._outside = outside
        self._kinds = kinds

    def __getitem__(self, ref: Any) -> Any:
        """The object, frozen; ABSENT (falsy, and so are all its fields) when it is not there."""
        obj = self._store.get(ref if isinstance(ref, Key) else key_of(ref))
        return ABSENT if obj is None else obj.value

    def external(self, system: str) -> Any:
        """The state of an external system whose model has one."""
        return self._outside.get(system, ABSENT)

    def list(
        self, kind: str, *, owner: Any = None, labels: Mapping[str, str] | None = None, namespace: str | None = None
    ) -> list[Any]:
        """Objects of a kind, by (transitive) owner, labels and namespace."""
        gk = self._kind(kind).gk
        found = self._store.list(gk, namespace) if owner is None else self._owned(owner, gk)
        return [obj.value for obj in found if _has_labels(obj, labels) and namespace in (None, obj.key.namespace)]

    def _kind(self, text: str) -> Kind:
        """The kind a text names, be it one that a definition in this state declares."""
        try:
            return self._kinds.find(text)
        except UnknownKind:
            found = self._store.derived(CRD, declared_kinds)
            if not found:
                raise
            return self._kinds.with_stored(found).find(text)

    def count(self, kind: str, *, owner: Any = None, labels: Mapping[str, str] | None = None) -> int:
        """How many objects of a kind there are."""
        return len(self.list(kind, owner=owner, labels=labels))

    def _owned(self, owner: Any, gk: tuple[str, str]) -> Iterable[Object]:
        """Objects of a kind below an owner, however deep."""
        root = self._store.get(owner if isinstance(owner, Key) else key_of(owner))
        work = [] if root is None else [root.uid]
        seen = set(work)
        while work:
            for obj in self._store.find("owner", work.pop()):
                if obj.uid not in seen:
                    seen.add(obj.uid)
                    work.append(obj.uid)
                    if obj.key.gk == gk:
                        yield obj


def _has_labels(obj: Object, labels: Mapping[str, str] | None) -> bool:
    have = obj.meta.value.get("labels") or {}
    return labels is None or all(have.get(name) == value for name, value in labels.items())


class Property(NamedTuple):
    """Something that must hold: `kind` is always | converges | confluence."""

    kind: str
    name: str
    holds: Callable[[State], Any] | None = None


def _made(factory: Any) -> Controller:
    try:
        made = factory() if callable(factory) else None
    except Exception as error:
        raise ScenarioError(f"{factory!r} cannot be made: {_what(error)}; w.run calls it without arguments") from None
    if not isinstance(made, Controller):
        raise ScenarioError(f"w.run takes Controller classes (or functions that make one), not {factory!r}")
    return made


class Scenario:
    """See the module's text, and docs/check.md for an example."""

    def __init__(self, name: str = "") -> None:
        self.name = plain(name)
        self.kinds = Kinds.builtin()
        self.properties: list[Property] = []
        self.allowed: dict[str, Any] = {}
        """Options of every check of it."""
        self.off: list[str] = []
        """Properties out of the box that are not judged."""
        self._loops: list[tuple[str, Any]] = []
        self._classes: list[type[Controller]] = []
        self._upgrades: list[tuple[str, Any, bool]] = []
        self.newer: dict[str, type[Controller]] = {}
        """The classes of new versions, by the names of the controllers they take over from."""
        self._objects: list[dict[str, Any]] = []
        self._real: frozenset[Key] = frozenset()
        self._users: list[tuple[str, Callable[[Client], Any]]] = []
        self._models: dict[str, Callable[[Any], Any]] = {}
        self._states: dict[str, Any] = {}
        self._hooks = HookModels()

    # -- what is there -----------------------------------------------------------------------------------------

    def run(self, *controllers: Any, **named: Any) -> Scenario:
        """Controllers: classes, or functions that make one. Give several copies of a class names:
        `w.run(first=Surge, second=Surge)`."""
        for factory in controllers:
            self._add_loop("", factory)
        for name, factory in named.items():
            self._add_loop(name.replace("_", "-"), factory)
        return self

    def _add_loop(self, name: str, factory: Any) -> None:
        made = _made(factory)
        name = name or controller_name(type(made))
        if any(known == name for known, _ in self._loops):
            raise ScenarioError(f"two controllers are called {name!r}; name them: w.run(first=…, second=…)")
        self._loops.append((name, factory))
        self._classes.append(type(made))

    def upgrade(self, old: Any, new: Any, *, overlap: bool = True) -> Scenario:
        """A roll-out that begins at any time: `new` (a class, or a function that makes a controller) takes over from
        `old` (a class, or the name it runs under) without its memory. Both run for a while, unless `overlap` is False.
        A changed configuration is an upgrade too: `w.upgrade(Size, lambda: Size(limit=3))`."""
        name = old if isinstance(old, str) else controller_name(old)
        if all(known != name for known, _ in self._loops):
            known = ", ".join(sorted(known for known, _ in self._loops)) or "none"
            raise ScenarioError(f"no controller is called {name!r}, so it cannot be upgraded; there are: {known}")
        if any(known == name for known, _, _ in self._upgrades):
            raise ScenarioError(f"{name!r} is upgraded twice; one upgrade of a controller is modelled")
        self.newer[name] = type(_made(new))
        self._upgrades.append((name, new, overlap))
        return self

    def controllers(self) -> dict[str, type[Controller]]:
        """The classes of its controllers, by the names they run under."""
        return {name: cls for (name, _), cls in zip(self._loops, self._classes, strict=True)}

    def starting(self, objects: Iterable[dict[str, Any]]) -> Scenario:
        """A copy that starts with real objects, which take the place of applied ones with the same key."""
        real = {key_of(obj): obj for obj in objects}
        other = copy.copy(self)
        other._objects = [obj for obj in self._objects if key_of(obj) not in real] + list(owners.in_order(real))
        other._real = frozenset(real)
        return other

    def factories(self) -> dict[str, Callable[[], Any]]:
        """What makes its controllers, by the names they run under."""
        return dict(self._loops) | {f"{name}(new)": new for name, new, _ in self._upgrades}

    def kind(self, source: Any) -> Scenario:
        """Registers a custom kind from a CustomResourceDefinition: a YAML file's path, YAML text, or a mapping."""
        for document in _documents(source):
            try:
                self.kinds = self.kinds.with_custom(Kinds.custom_from_yaml_dict(document, _where(source)))
            except ValueError as error:
                raise ScenarioError(str(error)) from None
        return self

    def apply(self, source: Any) -> Key:
        """Puts the objects of a manifest there before anything runs: a YAML file's path, YAML text, or a mapping.
        Returns the key of the (last) object."""
        key: Key | None = None
        for document in _documents(source):
            if document.get("kind") == "CustomResourceDefinition":
                self.kind(document)
                continue
            key = self._place(document, _where(source))
        if key is None:
            raise ScenarioError(f"{_where(source)}: no object in it")
        return key

    def _place(self, document: dict[str, Any], where: str) -> Key:
        try:
            kind = self.kinds.by_api_version(str(document.get("apiVersion")), str(document.get("kind")))
        except UnknownKind as error:
            raise ScenarioError(f"{where}: {error}") from None
        meta = document.get("metadata")
        if not isinstance(meta, dict) or not meta.get("name"):
            raise ScenarioError(f"{where}: a {kind.kind} without metadata.name; give it a name")
        if kind.namespaced:
            document = {**document, "metadata": {"namespace": "default", **meta}}
        self._objects.append(document)
        return key_of(document)

    def user(self, name: str, do: Callable[[Client], Any]) -> Scenario:
        """Something a person does once, at any moment: `w.user("scale", lambda c: c.patch(web, {...}))`."""
        name = plain(name)
        if any(known == name for known, _ in self._users):
            raise ScenarioError(f"two users are called {name!r}; give each its own name")
        self._users.append((name, do))
        return self

    def external(self, system: str, model: Callable[..., Any], *, state: Any = None) -> Scenario:
        """The model of an external system that controllers ask through `c.external(system, request)`: a function of
        the request. With a `state` (JSON; what it is at first) it is a function of the request and the state, and gives
        the answer and the next state: `lambda request, state: (answer, state)`. Properties see it:
        `s.external(system)`. A model may raise `ApiError`."""
        self._models[system] = guarded(f"the model of {system!r}", model)
        self._states.pop(system, None)
        if state is not None:
            self._states[system] = freeze(state)
        return self

    def webhook(self, name: str, model: Callable[[Any], Any]) -> Scenario:
        """The model of an admission webhook that an applied configuration names: a function of the AdmissionRequest.
        It gives the `response` (allowed, status, warnings, and patch as a list of operations), or None to allow.

        The model of the conversion webhook of a definition has the name `conversion_webhook_for_` and that of the
        definition. It is a function of the ConversionRequest and gives a list of the converted objects."""
        self._hooks.add(name, model)
        return self

    # -- what must hold ----------------------------------------------------------------------------------------

    def always(self, name: str, holds: Callable[[State], Any]) -> Scenario:
        """Must hold in every state."""
        self.properties.append(Property("always", plain(name), _guarded(name, holds)))
        return self

    def converges(self, holds: Callable[[State], Any] | None = None, name: str = "converges") -> Scenario:
        """In every fair run nothing changes any more at some time, and `holds` then."""
        guard = None if holds is None else _guarded(name, holds)
        self.properties.append(Property("converges", plain(name), guard))
        return self

    def confluent(self) -> Scenario:
        """Every fair run ends in the same state."""
        self.properties.append(Property("confluence", "confluence"))
        return self

    def allow(self, **options: Any) -> Scenario:
        """Options of every check of this scenario, where `sm.check` or the command line does not say another:
        `w.allow(lag=1, crashes=1)`."""
        for name in options:
            if name not in OPTIONS:
                raise ScenarioError(f"there is no option {name!r} of a check; there are: {', '.join(OPTIONS)}")
        self.allowed |= options
        return self

    def without(self, *names: str) -> Scenario:
        """Turns properties out of the box off: `w.without("no orphan")`. Raises `ScenarioError` for an unknown one."""
        for name in names:
            try:
                self.off.append(named(name).name)
            except UnknownProperty as error:
                raise ScenarioError(str(error)) from None
        return self

    # -- the world it describes --------------------------------------------------------------------------------

    def system(self, *, canonical: bool = True, write_memo: bool = True, **options: Any) -> System:
        """The System of this scenario; `options` are those of `kernel.system.System`."""
        if not self._loops:
            raise ScenarioError(f"{self.name or 'the scenario'} has no controllers; add them with w.run(MyController)")
        extended = any(obj.get("apiVersion", "").startswith(f"{ADMISSION}/") for obj in self._objects)
        admission = Chain(EXTENSIONS) if extended else NONE
        api = Api(self.kinds, MemoWriter() if write_memo else None, admission)
        loops = [_loop(factory, api, name) for name, factory in self._loops]
        upgrades = [Upgrade(name, _loop(new, api, name), overlap) for name, new, overlap in self._upgrades]
        users = [UserStep(name, _user(guarded(f"user {name!r}", do), api, name)) for name, do in self._users]

        return System(
            api.begin,
            loops,
            users,
            upgrades=upgrades,
            canon=Canon(TABLE if canonical else (), managers=False),
            refuse=Refusals(api.kinds),
            external=self._ask,
            outside=dict(self._states),
            acts=acts(api, self._objects),
            call=self._hooks.call,
            **options,
        )

    def _ask(self, system: str, request: Any, *state: Any) -> Any:
        model = self._models.get(system) or OUTSIDE.get(system)
        if model is None:
            raise ScenarioError(f"a controller asks the external system {system!r}; model it with w.external")
        try:
            answer = model(request, *state)
            if not state:
                return freeze(answer)
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise ScenarioError(f"the model of {system!r} gave {answer!r}; with a state it gives (answer, state)")
            return freeze(answer[0]), freeze(answer[1])
        except (ApiError, ScenarioError):
            raise
        except Exception as error:
            raise ScenarioError(f"the model of {system!r} failed: {_what(error)}") from error

    def world(self, system: System) -> World:
        """The first world: the objects are there, and every controller has just started."""
        world = World(system)
        for namespace in sorted({obj["metadata"].get("namespace") or "" for obj in self._objects} | {"default"}):
            if namespace:
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                self._put(world, body)
        for obj in self._objects:
            if key_of(obj).kind != "Namespace" or world.store.get(key_of(obj)) is None:
                self._put(world, owners.adopted(obj, world.store) if key_of(obj) in self._real else obj)
        return world.start()

    def _put(self, world: World, obj: dict[str, Any]) -> None:
        key = key_of(obj)
        status = obj.get("status")
        try:
            _commit(world, Request("create", key, obj, actor="user:setup", manager="setup", now=START))
            if status is not None and self.kinds.get(key.group, key.kind).has_status:
                _commit(world, Request("update", key, _at_head(world, obj), "status", "user:setup", "setup", START))
        except ApiError as error:
            raise ScenarioError(f"{key}: {error.message}") from None


def _guarded(name: str, holds: Any) -> Callable[[State], Any]:
    if not callable(holds):
        raise ScenarioError(f"property {name!r} is {holds!r}; give a function of a state: lambda s: …")
    return guarded(f"property {name!r}", holds)


def _at_head(world: World, obj: dict[str, Any]) -> dict[str, Any]:
    """The object with its resourceVersion: custom objects are not updated without one."""
    there = world.store.get(key_of(obj))
    version = {} if there is None else {"resourceVersion": str(there.rv)}
    return {**obj, "metadata": {**obj["metadata"], **version}}


def _commit(world: World, request: Request) -> None:
    answer = world.system.begin(world.store, request)
    while isinstance(answer, Call):
        question = answer.question
        drawn = answer.kind == "random"
        answer = answer.resume(uid_text(str(question[1]), 0) if drawn else world.system.call(answer.kind, question))
    if isinstance(answer, Commit):
        if answer.new is not None:
            world.drawn[answer.new.uid] = None
            world.drawn[answer.key.name] = None
        world.store.commit(answer)


def _user(do: Callable[[Client], Any], api: Api, name: str) -> Callable[[Callable[[Effect], Any]], None]:
    def act(exchange: Callable[[Effect], Any]) -> None:
        try:
            do(Client(exchange, api, f"user:{name}"))
        except (ApiError, ScenarioError):
            raise
        except Exception as error:
            raise ScenarioError(f"user {name!r} failed: {_what(error)}") from error

    return act


def _loop(factory: Any, api: Api, name: str) -> Loop:
    _declared(type(factory()), name)
    try:
        loop = Loop(factory, api, name)
    except (LookupError, TypeError) as error:
        raise ScenarioError(f"controller {name!r}: {error.args[0] if error.args else error}") from None
    loop.wrap_mappings(lambda function: guarded(f"controller {name!r}: what maps events to keys", function))
    return loop


def _declared(cls: type[Controller], name: str) -> None:
    """Refuses a declaration of another type than it should be: a text is a sequence too, of letters."""
    for field in ("owns", "reads", "writes"):
        value = getattr(cls, field)
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ScenarioError(
                f"controller {name!r}: {field} is {value!r}, but must be a tuple of kinds: "
                f"{field} = ({value if isinstance(value, str) else 'v1/Pod'!r},)"
            )
    if not isinstance(cls.watches, Mapping):
        raise ScenarioError(
            f"controller {name!r}: watches is {cls.watches!r}, but must map kinds to functions from an object to keys: "
            "watches = {'v1/Pod': keys_of}"
        )


def _what(error: Exception) -> str:
    """An exception of the person's own code, and where it was raised."""
    return f"{type(error).__name__}: {error} ({place_of(error)})"


def _where(source: Any) -> str:
    return str(source) if isinstance(source, (str, Path)) and "\n" not in str(source) else "the manifest"


def _documents(source: Any) -> list[dict[str, Any]]:
    """The objects of a YAML file, text or mapping; Lists are unpacked."""
    if isinstance(source, Mapping):
        loaded: list[Any] = [dict(source)]
    else:
        where = _where(source)
        text = str(source)
        if "\n" not in text:
            try:
                text = Path(source).read_text()
            except OSError as error:
                raise ScenarioError(
                    f"{where}: {error.strerror or error}; give a path, YAML text or a mapping"
                ) from None
            except UnicodeDecodeError as error:
                raise ScenarioError(f"{where}: not text ({error.reason} at byte {error.start}); write UTF-8") from None
        try:
            loaded = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark is not None else ""
            raise ScenarioError(f"{where}{line}: not YAML: {getattr(error, 'problem', error)}") from None
    out: list[dict[str, Any]] = []
    for number, document in enumerate(loaded, 1):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ScenarioError(
                f"{_where(source)}, document {number}: an object is expected, not {type(document).__name__}"
            )
        out.extend(document["items"] if document.get("kind") == "List" and "items" in document else [document])
    return out


def state_of(scenario: Scenario, world: World) -> State:
    """A world as properties see it."""
    return State(world.store, scenario.kinds, world.outside)


def judge(prop: Property, state: State) -> str | None:
    """Why a property does not hold in a state; None when it does. Raises `ScenarioError` when it cannot be told."""
    if prop.holds is None:
        return None
    try:
        answer = prop.holds(state)
        if isinstance(answer, NEVER_RAN) or callable(answer):
            raise ScenarioError(
                f"property {prop.name!r} gave {answer!r}, which is never false: give True or False; no async, no "
                "yield, and call what you name"
            )
        return None if answer else f"{prop.name!r} is false"
    except ScenarioError:
        raise
    except Exception as error:
        raise ScenarioError(
            f"property {prop.name!r} failed: {type(error).__name__}: {error} ({place_of(error)}); a field that may be "
            "missing reads as ABSENT when it is read as an attribute"
        ) from error
