"""Laws of the simulation. S1: it is a path of the unreduced check system. D1: equal runs give equal bytes, in every
process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steersman.api.kinds import Kinds
from steersman.controllers.builtin import builtin
from steersman.kernel.effect import MICRO
from steersman.kernel.system import Learned, System
from steersman.kernel.transition import apply, enabled
from steersman.kernel.world import World
from steersman.sim import simulate
from steersman.sim.cluster import given
from steersman.sim.drive import system_of, world_of
from steersman.sim.lives import Lives
from steersman.sim.script import script_of
from steersman.trace import sktrace
from steersman.trace.recording import Trace, TraceEvent
from tests.sim import traces

CASES = {
    "grows beyond its nodes": (traces.scaling(), traces.nodes(1)),
    "ties between nodes": (traces.trace((0, [traces.deployment(replicas=3)], []), (5, [], [])), traces.nodes(3)),
    "a rollout": (
        traces.trace((0, [traces.deployment()], []), (40, [traces.deployment(cpu="500m")], [])),
        traces.nodes(2),
    ),
}


def follow(trace: Trace, machines: list[dict], seed: int, labels: list[str]) -> World:
    """Takes every step of a simulation in the check system: each must be enabled. As a search does, it begins again
    when it learns what must hold from the start."""
    learned: list[Learned] = []
    while True:
        system = check_system(trace, seed)
        for each in learned:
            system.learn(each)
        world = world_of(system, given(machines), trace.start * MICRO).start()
        try:
            return path(world, labels)
        except Learned as error:
            assert len(learned) < 10
            learned.append(error)


def check_system(trace: Trace, seed: int) -> System:
    kinds = Kinds.builtin()
    system = system_of(script_of(trace, kinds), Lives(trace), builtin(), seed, kinds=kinds, persistent=True)
    assert system.persistent and not system.atomic
    return system


def path(world: World, labels: list[str]) -> World:
    for number, label in enumerate(labels):
        offered = {action.label: action for action in enabled(world)}
        assert label in offered, f"step {number}: {label} is not among {sorted(offered)}"
        world = apply(world, offered[label])
    return world


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("case", CASES)
def test_s1_a_simulation_is_a_path_of_the_check_system(case, seed):
    trace, machines = CASES[case]
    labels: list[str] = []
    report = simulate(trace, machines, seed, labels=labels)
    assert not report.faults and not report.refused
    world = follow(trace, machines, seed, labels)
    full, head_only = world.store.digest
    assert f"{(full + head_only) % (1 << 128):032x}" == report.store_digest


def test_s1_a_step_that_was_not_taken_is_noticed():
    trace, machines = CASES["ties between nodes"]
    labels: list[str] = []
    simulate(trace, machines, 0, labels=labels)
    with pytest.raises(AssertionError, match="is not among"):
        follow(trace, machines, 0, labels[1:])


RUN = """
import sys
from pathlib import Path
from steersman.sim import simulate
labels = []
report = simulate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), labels=labels)
sys.stdout.buffer.write(report.json() + "\\n".join(labels).encode())
"""


def run_apart(path: Path, seed: int, hash_seed: str, nodes: int = 2) -> bytes:
    command = [sys.executable, "-c", RUN, path.name, str(nodes), str(seed)]
    done = subprocess.run(command, cwd=path.parent, env={"PYTHONHASHSEED": hash_seed}, capture_output=True, check=True)
    return done.stdout


def test_d1_two_processes_agree_to_the_byte(tmp_path):
    path = tmp_path / "small.sktrace"
    spread = [traces.deployment(f"d{n}", replicas=1, cpu="100m", namespace=f"ns-{n}") for n in range(8)]
    first, *others = traces.scaling().events
    events = (TraceEvent(first.ts, (*first.applied, *spread)), *others)
    sktrace.write(path, replace(traces.scaling(), events=events))
    first = run_apart(path, 3, "1")
    assert first == run_apart(path, 3, "2")
    assert b'"digest"' in first and b"run deployment/" in first
    assert first != run_apart(path, 4, "1")


def test_d1_two_processes_agree_on_a_real_recording(real_inputs):
    path = real_inputs / "dsb-scaling.sktrace"
    first = run_apart(path, 0, "1", nodes=20)
    assert first == run_apart(path, 0, "2", nodes=20)
    assert b"run deployment/" in first
