"""`kill -9` of a server under write load over HTTP, at random times: the gate of the durable face.

Nothing acknowledged is lost; nothing that is not in the journal was ever seen, be it by a watch, a list or a reply.
6 rounds on one store, each starting on what the last kill left; STEERSMAN_KILLS=200 (or `make soak`) is the gate, in
batches with a store each. The death of the machine instead of the process is covered by the torn logs of tests/journal.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import steersman.journal as sj
from tests.run import laws_of
from tests.run.client import Client, Served

ROUNDS = int(os.environ.get("STEERSMAN_KILLS", "6"))
SOAK_ROUNDS = int(os.environ.get("STEERSMAN_KILLS", "200"))
BATCH = 20  # rounds on one store, in one test: a batch takes a minute
SEED = int(os.environ.get("STEERSMAN_SEED", "1"))
WRITERS = 4
LONGEST = 0.7  # seconds under load before the kill
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
GONE = (OSError, http.client.HTTPException, json.JSONDecodeError)


class Seen(NamedTuple):
    """A version of an object that a client was shown: its revision, uid and name, and the data it had."""

    rev: int
    name: str
    uid: str
    data: str
    how: str


class Load:
    """Clients of one round, each in a thread; what they were told."""

    def __init__(self, served: Served, number: int) -> None:
        self.served = served
        self.number = number
        self.acknowledged: list[Seen] = []
        self.shown: list[Seen] = []
        self.refused: list[Any] = []
        self.deleted: list[str] = []
        self.killed = False
        self.faults: list[BaseException] = []
        jobs: list[Any] = [(self._write, (writer,)) for writer in range(WRITERS)]
        jobs += [(self._deploy, ()), (self._read, ()), (self._watch, (CONFIG_MAPS,)), (self._watch, (PODS,))]
        self.threads = [threading.Thread(target=self._guarded, args=job, daemon=True) for job in jobs]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()
        if self.faults:
            raise self.faults[0]

    def _guarded(self, job: Any, args: tuple[Any, ...]) -> None:
        client = None
        try:
            client = Client(self.served.kubeconfig)
            job(client, *args)
        except GONE as error:
            if not self.killed:
                self.faults.append(error)
        except BaseException as error:
            self.faults.append(error)
        finally:
            if client is not None:
                client.close()

    def _write(self, client: Client, writer: int) -> None:
        """Creates, changes and deletes its own objects, one after the other."""
        for number in range(1_000_000):
            name = f"r{self.number}-w{writer}-{number}"
            body = {"metadata": {"name": name}, "data": {"n": "0"}}
            self._done(client.ask("POST", CONFIG_MAPS, body))
            for value in ("1", "2"):
                patch = {"data": {"n": value, "pad": "x" * (number * 97 % 3000)}}
                answer = client.ask("PATCH", f"{CONFIG_MAPS}/{name}", patch, "application/merge-patch+json")
                self._done(answer)
            if number % 3 == 0:
                code, document = client.ask("DELETE", f"{CONFIG_MAPS}/{name}")
                if code == 200:
                    self.deleted.append(name)
                else:
                    self.refused.append(document)

    def _done(self, answer: tuple[int, Any]) -> None:
        code, document = answer
        if code in (200, 201):
            self.acknowledged.append(_seen(document, "acknowledged"))
        else:
            self.refused.append(document)

    def _deploy(self, client: Client) -> None:
        """Gives the controllers work."""
        container = {"name": "c", "image": "i"}
        for number in range(1_000_000):
            labels = {"app": f"r{self.number}-{number}"}
            spec = {"replicas": 2, "selector": {"matchLabels": labels}}
            spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
            name = f"r{self.number}-d{number}"
            self._done(client.ask("POST", DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec}))
            if number:
                code, document = client.ask("DELETE", f"{DEPLOYMENTS}/r{self.number}-d{number - 1}")
                assert code == 200, document
            time.sleep(0.05)

    def _read(self, client: Client) -> None:
        while True:
            _, document = client.ask("GET", f"{CONFIG_MAPS}?limit=50&labelSelector=")
            self.shown.extend(_seen(item, "list") for item in document["items"])
            time.sleep(0.01)

    def _watch(self, client: Client, path: str) -> None:
        _, document = client.ask("GET", f"{path}?limit=1")
        rev = document["metadata"]["resourceVersion"]
        for event in client.watch(f"{path}?watch=1&resourceVersion={rev}"):
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
            self.shown.append(_seen(event["object"], event["type"]))


def _seen(document: dict[str, Any], how: str) -> Seen:
    meta = document["metadata"]
    data = json.dumps(document.get("data"), sort_keys=True)
    return Seen(int(meta["resourceVersion"]), meta["name"], meta["uid"], data, how)


def check(journal: sj.Journal, load: Load) -> int:
    """Everything the clients were told is in the journal; the number of things checked."""
    for seen in [*load.acknowledged, *load.shown]:
        commit = journal.at(seen.rev)
        assert commit is not None, f"{seen} was told to a client, and is lost"
        stored = json.loads(commit.object)
        assert (commit.key.name, commit.uid) == (seen.name, seen.uid), seen
        if commit.verb != "delete":
            assert json.dumps(stored.get("data"), sort_keys=True) == seen.data, seen
        else:
            assert seen.how == "DELETED", seen
    for name in load.deleted:
        newest = journal.latest(sj.Key("", "ConfigMap", "default", name))
        assert newest is not None and newest.verb == "delete", f"the deletion of {name} is lost"
    assert not load.refused, load.refused[0]
    return len(load.acknowledged) + len(load.shown) + len(load.deleted)


def rounds(folder: Path, count: int, seed: int = SEED) -> None:
    chance = random.Random(seed)
    store = f"sqlite:{folder / 'store.db'}"
    checked = acknowledged = 0
    for number in range(count):
        served = Served(folder, store=store)
        if number % 5 == 4:  # killed while it starts
            time.sleep(chance.random())
            served.kill()
            continue
        with served:
            load = Load(served, number)
            load.start()
            time.sleep(0.1 + chance.random() * LONGEST)
            load.killed = True
            served.kill()
            load.join()
        journal = sj.open(store)
        checked += check(journal, load)
        acknowledged += len(load.acknowledged)
        journal.close()
    executed = laws_of.hold(store)
    assert acknowledged > count * 5, "the kills came before any work: nothing was tested"
    print(
        f"{count} kills, {acknowledged} writes acknowledged, {checked} things told to clients, none lost; "
        f"{executed} reconciles executed again, with the same writes"
    )


def batches(count: int) -> list[tuple[int, int]]:
    """(seed, rounds) of each batch."""
    return [(SEED + start, min(BATCH, count - start)) for start in range(0, count, BATCH)]


@pytest.mark.parametrize(("seed", "count"), batches(ROUNDS))
def test_kills_lose_nothing_and_show_nothing_that_is_lost(tmp_path, seed, count):
    rounds(tmp_path, count, seed)


@pytest.mark.soak
@pytest.mark.parametrize(("seed", "count"), batches(SOAK_ROUNDS))
def test_many_kills(tmp_path, seed, count):
    rounds(tmp_path, count, seed)
