"""Small worlds of controllers: made, driven to rest, and explored exhaustively."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from steersman.api.begin import Api
from steersman.api.client import Client, key_of
from steersman.api.controller import Controller, Loop
from steersman.api.errors import conflict
from steersman.api.kinds import Kinds
from steersman.kernel.effect import Refused, Request
from steersman.kernel.fingerprint import fingerprint
from steersman.kernel.identity import Canon
from steersman.kernel.object import Key
from steersman.kernel.system import Learned, System, UserStep
from steersman.kernel.transition import apply, enabled, step
from steersman.kernel.value import Frozen
from steersman.kernel.world import World

API = Api(Kinds.builtin())
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
LABELS = {"app": "web"}


def template(image: str = "nginx:1", node: str = "node-1", **meta: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "web", "image": image}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"labels": LABELS, **meta}, "spec": spec}


def deployment(replicas: int = 2, image: str = "nginx:1", node: str = "node-1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": template(image, node),
            "progressDeadlineSeconds": 2**31 - 1,
            **spec,
        },
    }


def replicaset(replicas: int = 2, name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec},
    }


def as_object(obj: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **obj}


def user(name: str, act: Callable[[Client], Any]) -> UserStep:
    return UserStep(name, lambda exchange: act(Client(exchange, API, f"user-{name}")))


def make(
    controllers: Iterable[type[Controller]],
    objects: Iterable[dict[str, Any]],
    users: Iterable[UserStep] = (),
    budgets: tuple[int, int] = (0, 0),
    **options: Any,
) -> World:
    """A started world that holds these objects and a namespace. `budgets`: crashes and conflicts."""
    system = System(
        API.begin,
        loops=[Loop(cls, API) for cls in controllers],
        users=list(users),
        canon=Canon(managers=False),
        budgets=dict(zip(("crashes", "conflicts"), budgets, strict=True)),
        refuse=lambda _, request: conflict(request.key.kind, request.key.name),
        **options,
    )
    world = World(system)
    for obj in (NAMESPACE, *objects):
        put(world, obj)
    world = world.fork()
    world.pending, world.sum_pending = {}, 0
    world.views = {}
    return world.start()


def put(world: World, obj: dict[str, Any]) -> Any:
    """Creates an object, whatever the controllers do."""
    answer = world.write(Request("create", key_of(obj), obj, actor="person", now=world.now))
    if isinstance(answer, Refused):
        raise answer
    return answer


def client(world: World) -> Client:
    """A person at the head of a world that is driven in place."""

    def exchange(effect: Any) -> Any:
        if effect.op != "write":
            return world.perform(None, effect)
        value = world.write(effect.what._replace(now=world.now, actor="person"))
        if isinstance(value, Refused):
            raise value
        return value

    return Client(exchange, API, "person")


def settle(world: World, limit: int = 20_000, timers: bool = False) -> World:
    """Drives a world until nothing is left to do but timers (or not even these): the first enabled action each time,
    timers last and in their order."""
    if world.system.horizon is None:  # times count: whether they do would be found out too late, after a write
        world.system.learn(Learned(delay=0))
    for _ in range(limit):
        actions = [action for action in enabled(world) if action.op not in ("fire", "user")]
        if not actions:
            if not timers or not world.wakes:
                return world
            world.fire(min(world.wakes, key=lambda item: (world.wakes[item], item)))
            continue
        try:
            step(world, actions[0])
        except Learned as learned:  # raised before anything happened: the same step is taken again
            world.system.learn(learned)
    raise AssertionError(f"still busy after {limit} actions: {[str(action) for action in enabled(world)][:5]}")


class Found(NamedTuple):
    """What an exhaustive search found."""

    states: int
    transitions: int
    terminal: list[World]
    """Worlds in which nothing can happen any more."""
    findings: list[Any]
    executions: int


def explore(
    world_of: Callable[[], World],
    always: Callable[[World], bool] = lambda world: True,
    limit: int = 200_000,
    skip: tuple[str, ...] = (),
) -> Found:
    """Every state that can be reached. Begins again when the search learns which kinds lag (see `Learned`)."""
    learned: list[Learned] = []
    while True:
        world = world_of()
        for each in learned:
            world.system.learn(each)
        try:
            return _explore(world, always, limit, skip)
        except Learned as again:
            learned.append(again)


def _explore(world: World, always: Callable[[World], bool], limit: int, skip: tuple[str, ...]) -> Found:
    seen = {fingerprint(world)}
    queue = deque([world])
    transitions = 0
    terminal = []
    while queue:
        world = queue.popleft()
        actions = [action for action in enabled(world) if action.op not in skip]
        if not actions:
            terminal.append(world)
        for action in actions:
            after = apply(world, action)
            transitions += 1
            assert always(after), f"broken by {action}"
            mark = fingerprint(after)
            if mark not in seen:
                seen.add(mark)
                queue.append(after)
                assert len(seen) <= limit, f"more than {limit} states"
    reexec = world.system.reexec
    return Found(len(seen), transitions, terminal, list(reexec.findings.values()), reexec.executions)


def objects(world: World, kind: str) -> list[Frozen]:
    """The objects of a kind, by name."""
    return [obj.value for obj in world.store.list(API.kinds.find(kind).gk)]


def one(world: World, kind: str, name: str = "web") -> Any:
    """An object by name, in the namespace `default`."""
    found = API.kinds.find(kind)
    obj = world.store.get(Key(found.group, found.kind, "default" if found.namespaced else "", name))
    return None if obj is None else obj.value


def ready_pods(world: World) -> int:
    """Pods that run, are ready and are not being deleted."""
    return sum(
        "deletionTimestamp" not in pod.metadata
        and pod.status.phase == "Running"
        and any(each["type"] == "Ready" and each["status"] == "True" for each in pod.status.conditions)
        for pod in objects(world, "v1/Pod")
    )
