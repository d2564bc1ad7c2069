"""What becomes of the journals of workspaces: damaged ones, lost ones, and those of deleted ones."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from steersman.api.errors import ServiceUnavailable
from steersman.run import workspaces
from steersman.run.embed import Embedded, Plane
from steersman.run.place import Place


def config(data: str) -> dict:
    meta = {"name": "kept", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": data}}


def status(root: Plane, name: str) -> dict:
    return (root.client.get(root.client.key("steersman.dev/v1/Workspace", name)) or {}).get("status") or {}


def ended(root: Plane, name: str, phase: str) -> dict:
    root.client.wait(lambda: status(root, name).get("phase") == phase, what=f"{name} {phase}")
    return status(root, name)


def file_of(folder: Path, name: str) -> Path:
    return next(path for path in folder.iterdir() if path.name.startswith(f"{name}.") and path.suffix == ".db")


def find(root: Plane, name: str):
    return asyncio.run_coroutine_threadsafe(root._owner.plane.workspaces.find(name), root.heads.loop).result(10)


def gone(folder: Path, name: str) -> bool:
    end = time.monotonic() + 10
    while list(folder.glob(f"{name}.*")) and time.monotonic() < end:
        time.sleep(0.02)
    return not list(folder.glob(f"{name}.*"))


def test_damaged_and_lost_ones_fail_and_say_why(tmp_path):
    store, folder = f"sqlite:{tmp_path}/p.db", tmp_path / "p.db.workspaces"
    names = ["good", "lost", "empty", "cut", "folder"]
    with Embedded(store=store) as root:
        for name in names:
            root.workspace(name).client.create(config(name))
            ended(root, name, "Ready")
    backup = file_of(folder, "lost").read_bytes()
    where = file_of(folder, "lost")
    where.unlink()
    file_of(folder, "empty").write_bytes(b"")
    cut = file_of(folder, "cut")
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    odd = file_of(folder, "folder")
    odd.unlink()
    odd.mkdir()
    for _ in range(2):  # the second time too: what was lost is not made anew by a start
        with Embedded(store=store) as root:
            assert find(root, "good").heads.store.rev
            for name in names[1:]:
                said = ended(root, name, "Failed")["message"]
                assert str(folder) in said
                with pytest.raises(ServiceUnavailable, match="could not be opened"):
                    find(root, name)
                assert "is gone; restore it" in said or name not in ("lost", "empty")
    where.write_bytes(backup)
    with Embedded(store=store) as root:
        found = ended(root, "lost", "Ready")
        assert "message" not in found and found["url"].endswith("/clusters/lost")
        for name in names[1:]:
            root.client.delete(root.client.key("steersman.dev/v1/Workspace", name))
        assert all(gone(folder, name) for name in names[1:-1])
        assert odd.is_dir()  # the log tells
        root.workspace("empty").client.create(config("again"))


def test_files_of_deleted_ones_are_removed_at_the_next_start_and_no_others(tmp_path, monkeypatch):
    store, folder = f"sqlite:{tmp_path}/p.db", tmp_path / "p.db.workspaces"
    with monkeypatch.context() as killed, Embedded(store=store) as root:
        for name in ("kept", "dead"):
            root.workspace(name)
            ended(root, name, "Ready")
        killed.setattr(Place, "forget", Place.shut)  # as if the process had been killed before
        root.client.delete(root.client.key("steersman.dev/v1/Workspace", "dead"))
    names = set(os.listdir(folder))
    assert any(name.startswith("dead.") for name in names)
    uid = "00000000-0000-4000-8000-000000000001"
    mine = folder / f"kept.{uid}.db"  # nobody deleted it: the root may be an older backup
    mine.write_bytes(b"x")
    with Embedded(store=store) as root:
        ended(root, "kept", "Ready")
        assert not list(folder.glob("dead.*")) and mine.exists()
        assert find(root, "kept").heads.store.rev


def test_nothing_is_told_of_the_next_one_of_a_name(monkeypatch):
    """One that is deleted while it opens, and made again, is told of by its own opening alone."""
    first: list[str] = []

    class Slow(workspaces.Workspace):
        async def open(self) -> None:
            if not first:
                first.append("")
                await asyncio.sleep(0.3)
                raise OSError("the first one's trouble")
            await super().open()

    monkeypatch.setattr(workspaces, "Workspace", Slow)
    with Embedded() as root:
        key = root.client.key("steersman.dev/v1/Workspace", "w")
        body = {"apiVersion": "steersman.dev/v1", "kind": "Workspace", "metadata": {"name": "w"}}
        root.client.create(body)
        root.client.delete(key)
        root.client.create(body)
        ended(root, "w", "Ready")
        time.sleep(0.5)
        assert status(root, "w")["phase"] == "Ready" and "message" not in status(root, "w")


def test_stopping_while_they_open_and_go_ends_all(tmp_path):
    store = f"sqlite:{tmp_path}/p.db"
    with Embedded(store=store) as root:
        key = root.client.key
        for number in range(6):
            body = {"apiVersion": "steersman.dev/v1", "kind": "Workspace", "metadata": {"name": f"w{number}"}}
            root.client.create(body)
            if number % 2:
                root.client.delete(key("steersman.dev/v1/Workspace", f"w{number}"))
    left = {name.split(".")[0] for name in os.listdir(tmp_path / "p.db.workspaces")}
    assert left == {"w0", "w2", "w4"}
