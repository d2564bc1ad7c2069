"""Kamera beside this checker: the same scenarios in both, wall time, reconciles, states, and what each says of them.

    scripts/bench_kamera.py [KAMERA] [--rounds 5] [--only trivial,writers-4]

KAMERA is a checkout of github.com/tgoodwin/kamera; where there is none, one is made of COMMIT. Needs Go. The scenarios
are scripts/kamera (Go, on Kamera's public API) and tests/check/kamera.py; Kamera's side is compiled inside its module
by an overlay, so that nothing is written into the checkout. Rounds alternate; seconds are medians of wall time, from a
scenario to its verdict, without the start of a process. Both take whole reconciles as steps.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from steersman.check import Bounds, Explorer, Scenario
from steersman.check.properties.names import EVERY
from tests.check import kamera
from tests.check.models import writers

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = "https://github.com/tgoodwin/kamera"
COMMIT: Final = "cb1c3f3"
"""Of November 2025: what the scenarios were made for."""
OVERLAY: Final = "cmd/beside"
LONG: Final = 5.0
"""Seconds from which one round is enough."""
WRITERS: Final = (2, 3, 4, 5, 6, 7)
AGAIN: Final = (2, 3, 4, 5)


def several(count: int, again: bool) -> Callable[[], Scenario]:
    """Independent writers."""
    return lambda: writers(count, again)


SPEED: Final[dict[str, Callable[[], Scenario]]] = {
    "trivial": lambda: kamera.trivial()[0],
    "foo-bar": lambda: kamera.foo_bar()[0],
    "simclock": lambda: kamera.simclock()[0],
    "racecondition": lambda: kamera.toggle(kamera.Claim)[0],
    "dueling": lambda: kamera.toggle(kamera.Duel)[0],
    **{f"writers-{count}": several(count, False) for count in WRITERS},
    **{f"again-{count}": several(count, True) for count in AGAIN},
}
ANSWERS: Final[dict[str, tuple[Callable[[], Scenario], dict[str, Any]]]] = {
    "foo-bar": (lambda: kamera.foo_bar()[0], {}),
    "lock": (lambda: kamera.lock()[0], {"lag": 1}),
    "order": (lambda: kamera.order()[0], {"crashes": 1}),
    "census": (lambda: kamera.census()[0], {}),
    "poll": (lambda: kamera.poll()[0], {}),
    "held": (lambda: kamera.held()[0], {}),
}
"""With every call a step, and these bounds."""


class Ours(NamedTuple):
    """One search of ours: its wall time, and what it cost."""

    seconds: float
    reconciles: int
    states: int
    ends: int
    word: str


def checkout(folder: Path) -> Path:
    """A work tree of Kamera, made when there is none."""
    if not (folder / "go.mod").exists():
        subprocess.run(["git", "clone", "--quiet", SOURCE, str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", COMMIT], check=True)
    return folder.resolve()


def built(tree: Path, scratch: Path) -> Path:
    """Kamera with our scenarios, as a program."""
    if shutil.which("go") is None:
        raise SystemExit("bench_kamera: needs Go in the PATH: https://go.dev/dl")
    sources = (ROOT / "scripts/kamera").glob("*.go")
    overlay, program = scratch / "overlay.json", scratch / "beside"
    overlay.write_text(json.dumps({"Replace": {str(tree / OVERLAY / path.name): str(path) for path in sources}}))
    command = ["go", "build", "-overlay", str(overlay), "-o", str(program), f"./{OVERLAY}"]
    if subprocess.run(command, cwd=tree).returncode:
        raise SystemExit(f"bench_kamera: {tree} could not be built: see above; it is to be Kamera at {COMMIT}")
    return program


def theirs(program: Path, name: str) -> dict[str, Any]:
    """What Kamera makes of a scenario."""
    run = subprocess.run([program, name], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def ours(scenario: Scenario, defaults: bool = False, **bounds: Any) -> Ours:
    """What this checker makes of it; `defaults`: with the properties that need not be asked for."""
    began = time.perf_counter()
    explorer = Explorer(scenario, Bounds(**bounds), without=() if defaults else [about.name for about in EVERY])
    verdict = explorer.run()
    seconds = time.perf_counter() - began
    kinds = {f"{violation.kind}: {violation.name}" for violation in verdict.violations}
    word = ", ".join([verdict.word, *sorted(kinds)])
    return Ours(seconds, explorer.system.reexec.ended, verdict.states, verdict.converged, word)


def quick(seconds: float) -> str:
    """Seconds or milliseconds, in three figures."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def times(ratio: float) -> str:
    """A ratio in two figures."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def compared(program: Path, name: str, made: Callable[[], Scenario], rounds: int) -> str:
    """A row of the table of speed."""
    other: list[dict[str, Any]] = []
    plain: list[Ours] = []
    full: list[Ours] = []
    for _ in range(rounds):
        if not other or other[-1]["seconds"] < LONG:
            other.append(theirs(program, name))
        plain.append(ours(made(), atomic=True))
        full.append(ours(made(), defaults=True, atomic=True))
    slow = statistics.median(run["seconds"] for run in other)
    fast = statistics.median(run.seconds for run in plain)
    more = statistics.median(run.seconds for run in full)
    found, mine = other[-1], plain[-1]
    stopped = f"more than {quick(slow)} (stopped)" if found["stopped"] else quick(slow)
    ends = f"{len(found['ends'])}" + (f", {sum(found['aborted'].values()):,} given up" if found["aborted"] else "")
    return (
        f"| {name} | {found['reconciles']:,} | {found['visits']:,} | {found['states']:,} | {ends} | {stopped} "
        f"| {mine.reconciles:,} | {mine.states:,} | {mine.ends} | {quick(fast)} | {quick(more)} "
        f"| {times(slow / fast)} |"
    )


def answered(program: Path, name: str, made: Callable[[], Scenario], bounds: dict[str, Any]) -> str:
    """A row of the table of answers."""
    found, mine = theirs(program, name), ours(made(), defaults=True, **bounds)
    ends = "; ".join(sorted({told(end) for end in found["ends"]})) or "none"
    failed = "".join(f"; {count} × {why}" for why, count in sorted(found["aborted"].items()))
    option = " ".join(f"{key}={value}" for key, value in bounds.items()) or "no bounds"
    return f"| {name} | {ends}{failed} | {option}: {mine.ends} ends, {mine.states} states, {mine.word} |"


def told(end: dict[str, Any]) -> str:
    """The objects of an end, and what their status says."""
    objects = [f"{name} {json.dumps(obj['status'])}" if "status" in obj else name for name, obj in sorted(end.items())]
    return ", ".join(objects)


def main() -> None:
    """Builds Kamera, and prints the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kamera", nargs="?", type=Path, default=Path.home() / ".cache/steersman-kamera")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    names = set(filter(None, chosen.only.split(",")))
    if unknown := sorted(names - {*SPEED, *ANSWERS}):
        parser.error(f"--only {', '.join(unknown)}: one of {', '.join({**SPEED, **ANSWERS})}")
    with tempfile.TemporaryDirectory() as scratch:
        program = built(checkout(chosen.kamera), Path(scratch))
        print("| scenario | Kamera: reconciles | visits | states | ends | time ", end="")
        print("| Steersman: reconciles | states | ends | time | with default properties | times as fast |")
        print("|" + "---|" * 12)
        for name, made in SPEED.items():
            if not names or name in names:
                print(compared(program, name, made, chosen.rounds), flush=True)
        print("\n| scenario | Kamera: where it ends | Steersman |\n|---|---|---|")
        for name, (make, bounds) in ANSWERS.items():
            if not names or name in names:
                print(answered(program, name, make, bounds), flush=True)


if __name__ == "__main__":
    main()
