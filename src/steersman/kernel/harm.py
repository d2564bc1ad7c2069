"""What faults do to a world: the transitions of the catalogue (`kernel.faults`), in place, for whoever holds a fork."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from .action import Action
from .effect import GK, Call, Commit, Effect, Event, Refused
from .faults import ABOUT_A_KIND, ACTS, AT_A_SYSTEM, AT_A_WATCH, BY_OP, Left
from .instances import Relay
from .object import Key
from .rare import HOUR, Rare
from .view import REWOUND, STALLED, View, coalesced
from .world import Flight, Item, World

CHANGING: Final = ("update", "patch", "apply")
"""Verbs whose write can lose against another writer's."""
AT_A_WRITE: Final = ("error", "lose-reply", "throttle", "timeout")
AT_A_READ: Final = ("error", "throttle", "timeout")


# -- at a call of a reconcile ----------------------------------------------------------------------------------------


def possible(world: World, left: Left, flight: Flight) -> list[str]:
    """Which of the faults left can befall the next call of a reconcile in flight."""
    effect = flight.node.effect
    assert effect is not None
    if isinstance(flight.waiting, Commit):
        return [op for op in left.at_a_call if op == "lose-reply"]
    if flight.waiting is not None:
        fits = ("timeout", "hook-error") if flight.waiting.kind == "webhook" else ("timeout",)
        return [op for op in left.at_a_call if op in fits]
    if effect.op == "write":
        changing = effect.what.verb in CHANGING
        return [op for op in left.at_a_call if op in AT_A_WRITE or (changing and op == "conflict")]
    if effect.fresh and effect.op in ("get", "list"):
        return [op for op in left.at_a_call if op in AT_A_READ]
    if effect.op == "external":
        return [op for op in left.at_a_call if op in AT_A_SYSTEM and _fits(world, op, *effect.what)]
    return []


def _fits(world: World, op: str, name: str, request: Any) -> bool:
    """Whether a fault of an external system can be told from an ordinary answer."""
    rare = world.rare
    if op == "external-error":
        return True
    if rare is None or name not in rare.outside:
        return False
    return op == "external-lost" or _old_answer(world, rare, name, request) is not None


def _old_answer(world: World, rare: Rare, name: str, request: Any) -> tuple[Any] | None:
    """What an external system would have answered before its last change, if the request only reads; (answer,)."""
    external, old = world.system.external, rare.before.get(name)
    if external is None or old is None:
        return None
    try:
        answer, state = external(name, request, old)
        now, _ = external(name, request, rare.outside[name])
    except Refused:
        return None
    return None if state != old or answer == now else (answer,)


def befall(world: World, item: Item, op: str) -> None:
    """A fault takes the place of the next call's answer."""
    flight = world.flights[item]
    effect = flight.node.effect
    refuse = world.system.refuse
    assert effect is not None and refuse is not None
    world.budgets = world.system.budgets.spend(world.budgets, op)
    if op == "hook-error":
        assert isinstance(flight.waiting, Call)
        world.call(item, [{"unanswered": "connection refused"} for _ in flight.waiting.question])
        return
    what = world.request_of(flight.node, flight, effect.what) if effect.op == "write" else effect.what
    answer: Any = refuse(op, what)
    if op == "lose-reply":
        _do(world, flight, what)
    elif op == "external-lost":
        with suppress(Refused):
            world.ask_outside(*what)
    elif op == "external-old":
        assert world.rare is not None
        found = _old_answer(world, world.rare, *what)
        answer = answer if found is None else found[0]
    wrote = op in ("conflict", "lose-reply", "external-lost")
    world.answered(item, flight._replace(waiting=None, begun=None), answer, wrote)


def _do(world: World, flight: Flight, request: Any) -> None:
    """The write whose answer nobody will hear, webhooks included."""
    if isinstance(flight.waiting, Commit):
        world.commit_now(flight.waiting)
        return
    value = world.write(request)
    while isinstance(value, Call):
        value = world.resumed(value)


def undone(op: str, effect: Effect, events: list[Any]) -> bool:
    """Whether a reply that was lost was a refusal: nothing was done."""
    return op == "lose-reply" and effect.op == "write" and not events


# -- crashes ---------------------------------------------------------------------------------------------------------


def losers(world: World) -> set[int]:
    """Controllers whose crash can be noticed: half done work, memory, or the news that something is gone would be
    lost. Everything else a restart brings back: its first list puts every key there is on the queue."""
    out = {loop for (loop, _), flight in world.flights.items() if flight.wrote}
    out.update(world.memory)
    listed: dict[int, set[Key]] = {}
    for loop, key in (*world.pending, *world.flights, *world.wakes):
        if loop not in out:
            if loop not in listed:
                listed[loop] = set(world.system.loops[loop].initial(world.store))
            if key not in listed[loop]:
                out.add(loop)
    for (loop, _), view in world.views.items():
        if loop not in out and view.how != "stall" and any(event.new is None for event, _ in view.waiting):
            out.add(loop)
    return out


def end(world: World, loop: int) -> None:
    """A controller's process ends: what was in flight, queued or remembered is lost, and so are its views."""
    for item in [item for item in world.flights if item[0] == loop]:
        del world.flights[item]
    for item in [item for item in world.pending if item[0] == loop]:
        world.take(item)
    for item in [item for item in world.wakes if item[0] == loop]:
        world.forget_wake(item)
    if loop in world.memory:
        world.memory = world.own(world.memory)
        del world.memory[loop]
    if any(place[0] == loop for place in world.views):
        world.views = {place: view for place, view in world.views.items() if place[0] != loop}


def crash(world: World, loop: int) -> None:
    """A controller's process ends and starts again: its first list is of what there is now."""
    end(world, loop)
    world.listed(loop, world.store)


# -- watches ---------------------------------------------------------------------------------------------------------


def hold(world: World, loop: int, gk: GK, op: str) -> None:
    """From here on a watch gets nothing; what was on its way waits too."""
    view = world.views.get((loop, gk), world.system.view())
    world.views = {**world.views, (loop, gk): view._replace(how=op)}


def merge(world: World, loop: int, gk: GK) -> None:
    """A watch that was slow, or missed something, is at the head again; what it tells is less than what happened."""
    view = _let_go(world, loop, gk)
    for event in coalesced(view.events, across=view.how == "miss"):
        world.tell(loop, event)


def relist(world: World, loop: int, gk: GK) -> None:
    """A watch that fell off the log lists anew: what changed is told by what it was and is, what is gone as it was
    last known, and everything else as an update that changes nothing (as client-go's reflector and DeltaFIFO do)."""
    view = _let_go(world, loop, gk)
    told: set[Key] = set()
    for event in coalesced(view.events, across=True):
        told.add(event.key)
        world.tell(loop, event)
    for obj in list(world.store.list(gk)):
        if obj.key not in told:
            world.tell(loop, Event(obj.rv, obj.key, obj, obj))


def _let_go(world: World, loop: int, gk: GK) -> View:
    view = world.views.get((loop, gk), View())
    world.views = {place: other for place, other in world.views.items() if place != (loop, gk)}
    return view


def rewind(world: World, loop: int) -> None:
    """A controller restarts on the API server that stalled: its lists are that old. From there its views catch up."""
    stalled = world.views[(loop, STALLED)]
    end(world, loop)
    views = dict(world.views)
    for event, before in stalled.waiting:
        place = (loop, (event.key.group, event.key.kind))
        views[place] = views.get(place, world.system.view((), REWOUND)).behind(event, before)
    world.views = views
    world.listed(loop, stalled.seen(world.store))


# -- instances -------------------------------------------------------------------------------------------------------


def successions(world: World, rare: Rare) -> list[Action]:
    """New versions that can take over, and old instances that can go."""
    out = []
    for relay in world.system.relays:
        name = world.system.loops[relay.first].name
        if relay.first in rare.down:
            continue
        if relay.second not in rare.down:
            out.append(Action("retire", name))
        elif relay.op == "upgrade":
            out.append(Action("upgrade", name))
    return out


def start(world: World, relay: Relay) -> None:
    """The second instance starts."""
    assert world.rare is not None
    world.rare = world.rare._replace(down=world.rare.down - {relay.second})
    world.listed(relay.second, world.store)
    if not relay.overlap:
        retire(world, relay.first)


def retire(world: World, loop: int) -> None:
    """An old instance ends for good; what it remembered is lost."""
    assert world.rare is not None
    end(world, loop)
    world.rare = world.rare._replace(down=world.rare.down | {loop})


def _relay(world: World, op: str, loop: int) -> Relay:
    return next(relay for relay in world.system.relays if relay.op == op and relay.first == loop)


# -- the clock -------------------------------------------------------------------------------------------------------


def jump(world: World) -> None:
    """The clock goes forward, past every delay that anybody waits for."""
    world.now += max(HOUR, world.system.horizon or 0)


def set_back(world: World) -> None:
    """The wall clock goes back. What is measured otherwise does not."""
    assert world.rare is not None
    world.rare = world.rare._replace(skew=world.rare.skew - HOUR)


# -- what befalls objects --------------------------------------------------------------------------------------------


def act(world: World, action: Action) -> None:
    """Somebody who is no controller makes requests. What is refused is not done."""
    found = world.system.acts[action.op]
    with suppress(Refused):
        found.do(lambda effect: world.exchange(None, found.who, effect), action.key, action.number)


# -- all of them -----------------------------------------------------------------------------------------------------


def beginnings(world: World, left: Left) -> list[Action]:
    """The faults that can happen now, but for those at a call."""
    loops, out = world.system.loops, []
    if "crash" in left.ops:
        out += [Action("crash", loops[loop].name) for loop in losers(world)]
    if left.at_a_kind:
        for loop, kinds in enumerate(world.system.informers):
            for gk in () if world.is_down(loop) else kinds:
                view = world.views.get((loop, gk))
                if view is None or not view.how:
                    out += [Action(op, loops[loop].name, Key(*gk, "", "")) for op in left.at_a_kind]
    out += [Action(op, "clock") for op in ("jump", "set-back") if op in left.ops]
    for op, what in world.system.acts.items():
        if op in left.ops:
            out += [Action(op, what.who, key, number) for key, number in what.targets(world.store)]
    if "stall" in left.ops:
        up = [n for n in range(len(loops)) if not world.is_down(n)]
        out += [Action("stall", loops[n].name) for n in up if (n, STALLED) not in world.views]
    if "lead" in left.ops and world.rare is not None:
        down = world.rare.down
        leads = [relay for relay in world.system.relays if relay.op == "lead" and relay.first not in down]
        out += [Action("lead", loops[relay.first].name) for relay in leads if relay.second in down]
    return out


def happen(world: World, op: str, loop: int, action: Action) -> None:
    """A fault begins, or what it began ends; a roll-out goes on."""
    gk = action.key.gk
    if op in BY_OP:
        world.budgets = world.system.budgets.spend(world.budgets, op)
    if op == "crash":
        crash(world, loop)
    elif op in ABOUT_A_KIND and op in AT_A_WATCH:
        hold(world, loop, gk, op)
    elif op == "merge":
        merge(world, loop, gk)
    elif op == "relist":
        relist(world, loop, gk)
    elif op == "stall":
        hold(world, loop, STALLED, op)
    elif op == "rewind":
        rewind(world, loop)
    elif op in ("lead", "upgrade"):
        start(world, _relay(world, op, loop))
    elif op == "retire":
        retire(world, loop)
    elif op in ACTS:
        act(world, action)
    elif op == "jump":
        jump(world)
    elif op == "set-back":
        set_back(world)
    else:
        raise ValueError(f"no such action: {action.label}")
