"""Records what the real kube-controller-manager makes of workloads (tests/run/scenarios.py) on our API server.

    scripts/record_controllers.py --binaries DIR [NAME ...]

DIR holds the programs that scripts/oracle.py has built (OUT/bin). Our controllers are off; scheduler and virtual nodes
are ours. `make test` replays the vectors with our controllers (tests/run/test_recorded_controllers.py).
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import steersman as sm
from steersman.serve.table import computed
from tests.interop.conformance.real import guest, running
from tests.run import scenarios
from tests.run.scenarios import silence

QUIET: Final = 4.0
"""Seconds without a change after which a cluster is at rest: longer than any pause of the real controllers here."""
PAUSES: Final = {
    "node-lost": 65.0,
    "job-backoff": 15.0,
    "namespace": 8.0,
    "volumes": 8.0,
    "volumes-classes": 16.0,
    "job-indexes": 15.0,
    "volume-expansion": 16.0,
}
"""Where they pause longer: a lost node is waited for, a Job's pod is tried again later."""
PAUSES_OF_STEPS: Final = {"node-silent": (65.0, 12.0), "node-unready": (12.0, 12.0, 12.0)}
"""The same, step by step: a node that speaks is silent again after a while."""
MOST: Final = 90.0
WINDOW: Final = "0s"
"""What metrics say of the time they are about: virtual pods tell what they use at this very moment, and our autoscaler
is told so."""
HASTE: Final = ("--horizontal-pod-autoscaler-sync-period=1s", "--legacy-service-account-token-clean-up-period=1s")
"""What is done every now and then is done more often; what is done is the same."""


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binaries", type=Path, metavar="DIR", required=True)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the scenarios to record anew; all if there is none")
    options = parser.parse_args()
    setattr(computed, "WINDOW", WINDOW)  # noqa: B010 - it is Final for everybody else
    known = scenarios.load() if options.names else {}
    for name in options.names or scenarios.SCENARIOS:
        known[name] = record(options.binaries, name)
        data = orjson.dumps(known, option=orjson.OPT_SORT_KEYS)
        scenarios.VECTORS.write_bytes(lzma.compress(data, preset=9))
        print(f"{name:28} {[len(each) for each in known[name]]}", flush=True)


def record(binaries: Path, name: str) -> list[list[str]]:
    """The scenario's steps, each in a control plane of its own."""
    bare = name in silence.SCENARIOS
    off = ["*", "-*", *(["-kubelet"] if bare else [])]
    with (
        tempfile.TemporaryDirectory() as text,
        sm.testing.control_plane(virtual_nodes=0 if bare else 3, controllers=off, instant=True) as cp,
    ):
        scenarios.BEFORE.get(name, lambda c: None)(cp.client)
        folder = Path(text)
        command = guest(binaries / "kube-controller-manager", folder, Path(cp.kubeconfig), elect=False)
        with running([*command, *HASTE], folder / "log"):
            cp.client.wait(lambda: cp.client.list("v1/ServiceAccount", scenarios.NAMESPACE), 60, "the default account")
            time.sleep(QUIET)  # its informers are there
            pauses = PAUSES_OF_STEPS.get(name) or [PAUSES.get(name, QUIET)] * len(scenarios.SCENARIOS[name])
            return list(scenarios.play(cp.client, name, lambda c, step: settled(c, pauses[step])))


def settled(c: Any, quiet: float) -> list[str]:
    """What is seen when nothing has changed for so many seconds."""
    found, begun = scenarios.seen(c), time.monotonic()
    since = begun
    while (now := time.monotonic()) - since < quiet and now - begun < MOST:
        time.sleep(0.2)
        after = scenarios.seen(c)
        if after != found:
            found, since = after, time.monotonic()
    return found


if __name__ == "__main__":
    main()
