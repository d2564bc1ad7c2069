"""Walks on a Ray cluster find what one process finds. Tests marked `ray` need Ray, which `make test-ray` installs."""

import socket
import subprocess
import sys

import pytest

import steersman as sm
from examples.check import false_ready, live_volumes
from steersman.check import search
from steersman.check.explore import Bounds, Explorer
from steersman.check.mistake import ScenarioError
from steersman.check.strategies import Strategy
from tests.check.models import writers
from tests.check.test_workers import facts


def test_a_search_is_refused():
    with pytest.raises(ScenarioError, match="engine ray: a search stays on this machine"):
        sm.check(writers(2, False), engine="ray")


def test_workers_are_the_clusters_own():
    with pytest.raises(ScenarioError, match="leave workers out"):
        sm.check(writers(2, False), engine="ray", walks=5, workers=2)


def test_an_unknown_engine_is_named():
    with pytest.raises(ScenarioError, match="engine 'spark' is unknown; it is ray, or ray://HOST:PORT"):
        sm.check(writers(2, False), engine="spark", walks=5)


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ScenarioError, match=r"needs Ray; pip install 'steersman\[ray\]'"):
        sm.check(writers(2, False), engine="ray", walks=100)


@pytest.mark.ray
def test_without_a_cluster_it_is_said_how_to_start_one(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ScenarioError, match=r"engine ray: no cluster at .127\.0\.0\.1:1."):
        sm.check(writers(2, False), engine="ray", walks=100)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of this machine, started as a person does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
    options = [
        f"--port={address.partition(':')[2]}",
        "--num-cpus=2",
        "--include-dashboard=false",
        "--disable-usage-stats",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", address)
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as head:
            try:
                assert any("Ray runtime started" in line for line in head.stdout)
                yield address
            finally:
                head.terminate()
                head.stdout.read()


CASES = {
    "false ready": (lambda: false_ready.scenario(false_ready.Existence), {"crashes": 1}, "mixed"),
    "live volumes": (lambda: live_volumes.scenario(live_volumes.CleanByName), {"lag": 1}, "pct"),
    "writers": (lambda: writers(3, True), {"conflicts": 1}, "swarm"),
}


@pytest.mark.ray
@pytest.mark.parametrize("case", CASES)
def test_a_cluster_changes_nothing(case, cluster, monkeypatch):
    from steersman.check import cluster as engine

    monkeypatch.setattr(search, "ALONE", 2)
    monkeypatch.setattr(engine, "BATCH", 5)
    make, bounds, strategy = CASES[case]
    found = []
    for elsewhere in (False, True):
        scenario, chosen = make(), Strategy(strategy)
        recipe = engine.Recipe(scenario, Bounds(**bounds), {}, 30, 1, chosen)
        far = engine.Cluster("ray", recipe) if elsewhere else None
        walker = search.Walker(Explorer(scenario, Bounds(**bounds)), 30, 1, chosen, cluster=far)
        verdict = walker.run()
        assert verdict.failed is None, str(verdict.failed)
        found.append(facts(verdict, walker))
    assert found[0] == found[1] and found[0][1]


@pytest.mark.ray
def test_a_scenario_that_cannot_travel_is_named(cluster):
    import threading

    lock = threading.Lock()
    scenario = writers(2, False)
    scenario.always("locked", lambda s: not lock.locked())
    with pytest.raises(ScenarioError, match="the scenario cannot be sent to other machines"):
        sm.check(scenario, engine="ray", walks=100)


@pytest.mark.ray
def test_time_is_up_on_a_cluster_too(cluster):
    verdict = sm.check(writers(4, True), engine="ray", walks=10_000_000, max_seconds=4.0)
    assert verdict.incomplete == "random walks, stopped after 4 s" and verdict.transitions
