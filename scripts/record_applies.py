"""Records what a real kube-apiserver makes of random applies (tests/api/patching/sequences.py).

    scripts/record_applies.py record --binaries DIR [--each N]    starts the real one, plays, and writes the vectors
    scripts/record_applies.py diff                                replays them in this process and prints what differs

DIR holds the programs that scripts/oracle.py has built (OUT/bin).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.api.patching import recorded
from tests.api.patching.sequences import SORTS, prepare, sequence, told
from tests.interop.conformance.normal import normal
from tests.interop.conformance.play import Remote, play
from tests.interop.conformance.real import real_server


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("record", "diff"))
    parser.add_argument("--binaries", type=Path, metavar="DIR")
    parser.add_argument("--each", type=int, metavar="N", default=50, help="sequences about each kind")
    options = parser.parse_args()
    if options.command == "diff":
        found = [line for case, answers in recorded.load() for line in recorded.differences(case, answers)]
        print("\n".join(found))
        raise SystemExit(1 if found else 0)
    if options.binaries is None:
        parser.error("record needs --binaries DIR")
    with tempfile.TemporaryDirectory() as folder, real_server(options.binaries, Path(folder)) as real:
        server = Remote(real.url, real.tokens)
        prepare(server)
        cases = [sequence(name, number) for name in SORTS for number in range(options.each)]
        done = [(case, told(normal(play(case, server)))) for case in cases]
    print(f"{len(done)} sequences, {recorded.save(done)} bytes")


if __name__ == "__main__":
    main()
