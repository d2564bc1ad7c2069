"""Holds the journal of a control plane with the built-in controllers against both laws.

    python -m tests.run.laws_of STORE

In a process of its own: pytest rewrites the asserts of installed plugins' packages, and so the digests of their code.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import steersman.journal as sj
from steersman.api.admission.standard import standard
from steersman.api.begin import Api
from steersman.api.controller import Loop, controller_name
from steersman.api.kinds import Kinds
from steersman.controllers.builtin import ALL, CLUSTER
from steersman.run.load import check_history
from steersman.run.replay import History, execute_again


def hold(store: str) -> int:
    """Asserts that the laws hold on the journal at `store`; how many reconciles were executed again."""
    command = [sys.executable, "-m", "tests.run.laws_of", store]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return int(result.stdout)


def main() -> int:
    journal = sj.open(sys.argv[1])
    found = [str(problem) for problem in journal.verify().problems] + check_history(journal)
    api = Api(Kinds.builtin(), admission=standard(controllers=[controller_name(each) for each in (*ALL, *CLUSTER)]))
    loops = {loop.name: loop for loop in (Loop(controller, api) for controller in (*ALL, *CLUSTER))}
    history = History(journal)
    for record in history.reconciles:
        verdict = execute_again(record, loops[record.controller], api, history)
        unrepeatable = record.end == "crashed" or "no history is kept" in verdict.skipped
        if verdict.differences or (verdict.skipped and not unrepeatable):
            found.append(f"{record.controller} on {record.key}: {verdict}")
    print("\n".join(found[:10]) if found else len(history.reconciles))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
