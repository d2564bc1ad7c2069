"""How long simulations take, from the start of the process. By hand: `python tests/bench/bench_simulate.py [TRACE]`.

Lines: importing alone; the trace (by default dsb-scaling.sktrace of the real inputs) on 20 nodes, as a person would run
it; and Deployments of 10 replicas that all start at once, in this process: reconciles, writes, scheduling, kubelets.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2]))

from steersman.sim import simulate
from tests.sim.traces import deployment, trace

ROOT = Path(__file__).parents[2]
REPLICAS = 10
RUNS = 5
"""Of each process; the fastest counts, since the rest is other people's noise."""


def process(*command: str) -> float:
    times = []
    for _ in range(RUNS):
        begun = perf_counter()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        times.append(perf_counter() - begun)
    return min(times)


def main() -> None:
    data = Path(os.environ.get("STEERSMAN_DATA") or ROOT.parent / "shared" / "data")
    path = sys.argv[1] if len(sys.argv) > 1 else str(data / "dsb-scaling.sktrace")
    print(f"import steersman.sim            {process('-c', 'import steersman.sim'):6.2f} s")
    run = "from steersman.cli import main; main()"
    print(f"{Path(path).name:30}  {process('-c', run, 'simulate', path, '--nodes', '20'):6.2f} s   (limit 5 s)")
    for pods in (100, 1_000):
        made = trace((0, [deployment(f"d{n}", REPLICAS, "100m") for n in range(pods // REPLICAS)], []), (300, [], []))
        report = simulate(made, 50)
        cost = 1e6 * report.wall_seconds / report.writes
        took = f"{report.wall_seconds:6.2f} s   {report.writes:,} writes, {cost:.0f} µs each"
        print(f"{pods:6,} pods at once             {took}")


if __name__ == "__main__":
    main()
