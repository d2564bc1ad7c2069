"""An operator of kopf's daemons, timers and indexes."""

import asyncio

import kopf

PLACE = ("example.com", "v1", "examples")


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.consistency_timeout = 1000
    settings.peering.standalone = True


@kopf.daemon(*PLACE, labels={"kind": "daemon"})
def in_a_thread(stopped, patch, name, **_):
    patch.status["thread"] = "ended"
    stopped.wait(100)
    print(f"told: thread stopped {name}\n", end="")


@kopf.daemon(*PLACE, labels={"kind": "daemon"}, cancellation_timeout=1)
async def in_the_loop(name, retry, **_):
    if retry < 2:
        raise kopf.TemporaryError("not yet", delay=0.05)
    try:
        await asyncio.sleep(100)
    finally:
        print(f"told: loop stopped {name}\n", end="")


@kopf.timer(*PLACE, labels={"kind": "timer"}, interval=0.1)
def ticks(patch, status, **_):
    patch.status["ticks"] = (status.get("ticks") or 0) + 1


@kopf.index("pods")
def by_label(name, labels, **_):
    return {labels.get("app"): name}


@kopf.timer(*PLACE, labels={"kind": "index"}, interval=0.2)
def counts(by_label, patch, **_):
    patch.status["pods"] = sorted(by_label.get("web", []))
