"""Control planes in threads of this process: however they are started and ended, nothing is left of them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.run import embed
from steersman.run.daemon import FAULTS
from steersman.run.embed import Embedded
from steersman.run.load import StartError

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def named(name: str) -> dict:
    return {**CONFIG, "metadata": {"name": name, "namespace": "default"}}


def trace() -> tuple[set[str], int, float]:
    return {thread.name for thread in threading.enumerate()}, len(os.listdir("/proc/self/fd")), sys.getswitchinterval()


def left(before: tuple[set[str], int, float]) -> bool:
    """Whether nothing more is there than before."""
    threads, files, interval = trace()
    return threads <= before[0] and files <= before[1] and interval == before[2]


def alone(scene: Callable[..., None], *given: object) -> None:
    """Plays a scene in a process of its own: what other tests left here has threads and files that come and go."""
    process = multiprocessing.get_context("spawn").Process(target=after_one, args=(scene, *given))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def after_one(scene: Callable[..., None], *given: object) -> None:
    """Plays it when there is all that is made once in a process."""
    with Embedded():
        pass
    scene(*given)


def test_two_end_in_any_order_and_leave_nothing():
    alone(two_end)


def two_end() -> None:
    before = trace()
    first, second = Embedded(), Embedded()
    planes = [first.start(), second.start()]
    for plane in planes:
        plane.client.create(named("c"))
    folders = [plane.kubeconfig.parent for plane in planes]
    first.stop()
    assert sys.getswitchinterval() == pytest.approx(embed.SWITCH_SECONDS)
    assert planes[1].client.get(planes[1].client.key("v1/ConfigMap", "c", "default")).data.a == "b"
    second.stop()
    second.stop()
    assert left(before) and not any(folder.exists() for folder in folders)


def test_one_that_does_not_start_leaves_nothing(tmp_path):
    alone(one_does_not_start, tmp_path)


def one_does_not_start(folder: Path) -> None:
    before = trace()
    with pytest.raises(StartError, match="neither a subclass"):
        Embedded(controllers=[3])
    lost = Embedded(store=f"sqlite:{folder}")
    with pytest.raises(FAULTS):
        lost.start()
    assert left(before) and not lost._folder.path.exists()
    interrupted = Embedded()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(embed, "read_token", lambda path: exec("raise KeyboardInterrupt"))
        interrupted.start()
    assert left(before) and not interrupted._folder.path.exists()


def test_an_error_within_ends_it():
    alone(errors_within)


def errors_within() -> None:
    before = trace()
    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error), Embedded() as plane:
            folder = plane.kubeconfig.parent
            raise error
        assert not folder.exists()
    assert left(before)


def test_a_child_after_a_fork_takes_nothing_from_its_parent():
    with Embedded() as plane:
        child = os.fork()
        if child == 0:
            plane._owner.stop()
            plane._owner._folder._end()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert plane.kubeconfig.exists()
        plane.client.create(named("after"))


def test_its_client_says_where_it_cannot_be_used():
    with Embedded() as plane:

        async def write() -> None:
            plane.client.create(named("never"))

        with pytest.raises(RuntimeError, match="to_thread"):
            asyncio.run_coroutine_threadsafe(write(), plane.heads.loop).result(5)


def test_workspaces_without_a_name_get_new_ones_in_a_store_that_lasts(tmp_path):
    for _ in range(2):
        with Embedded(store=f"sqlite:{tmp_path}/plane.db") as plane:
            names = [plane.workspace().name for _ in range(2)]
    assert names == ["workspace-3", "workspace-4"]
    assert Path(f"{tmp_path}/plane.db").exists()
