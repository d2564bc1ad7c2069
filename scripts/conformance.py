"""Compares this API server with kube-apiserver, sequence by sequence (tests/interop/conformance).

    scripts/conformance.py record --binaries DIR [--out DIR]   starts the real one, plays, and writes test vectors
    scripts/conformance.py record --server URL --tokens FILE   plays against one that runs
    scripts/conformance.py diff [--cases GLOB] [--all]         replays the vectors in this process; exit 1 if it differs
    scripts/conformance.py diff --server URL --tokens FILE     … against a server over HTTP (`steersman run`)

DIR holds the programs that scripts/oracle.py has built (OUT/bin). FILE is JSON: {"admin": TOKEN, "alice": …}.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.interop.conformance import vectors
from tests.interop.conformance.cases import all_cases
from tests.interop.conformance.compare import Difference, differences, unexplained
from tests.interop.conformance.normal import normal
from tests.interop.conformance.play import Local, Remote, Transport, play
from tests.interop.conformance.real import real_server

OPEN = vectors.FOLDER.parent / "open.yaml"


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("record", "diff"))
    parser.add_argument("--server", metavar="URL")
    parser.add_argument("--tokens", type=Path, metavar="FILE")
    parser.add_argument("--binaries", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="DIR", default=vectors.FOLDER)
    parser.add_argument("--cases", metavar="GLOB", default="*")
    parser.add_argument("--all", action="store_true", help="accepted divergences, too")
    parser.add_argument("--write", action="store_true", help="write down how many answers differ (open.yaml)")
    parser.add_argument("--summary", action="store_true", help="counts only")
    options = parser.parse_args()
    if options.server and not options.tokens:
        parser.error("--server needs --tokens FILE")
    if options.command == "record":
        if not options.server and not options.binaries:
            parser.error("record needs --binaries DIR or --server URL")
        record(options)
    else:
        raise SystemExit(1 if diff(options) else 0)


def record(options: argparse.Namespace) -> None:
    """Plays every sequence against the real server."""
    chosen = [case for case in all_cases() if fnmatch.fnmatchcase(case.name, options.cases)]
    done = []
    with tempfile.TemporaryDirectory() as folder, _real(options, Path(folder)) as server:
        for case in chosen:
            done.append((case, normal(play(case, server))))
            if sys.stderr.isatty():
                print(f"\r{len(done)}/{len(chosen)} {case.name:70}", end="", file=sys.stderr)
    vectors.save(options.out, done)
    print(f"{len(done)} sequences, {sum(len(answers) for _, answers in done)} answers in {options.out}")


@contextmanager
def _real(options: argparse.Namespace, folder: Path) -> Iterator[Transport]:
    if options.server:
        yield Remote(options.server, json.loads(options.tokens.read_text()))
        return
    with real_server(options.binaries, folder) as real:
        yield Remote(real.url, real.tokens)


def diff(options: argparse.Namespace) -> int:
    """The number of differences, which are printed by family."""
    found: list[Difference] = []
    count = total = 0
    for path in sorted(options.out.glob("*.json.xz")):
        for case, real in vectors.load(path):
            if fnmatch.fnmatchcase(case.name, options.cases):
                count, total = count + 1, total + len(real)
                compare = differences if options.all else unexplained
                found += compare(case, real, _replay(case, options))
    if not options.summary:
        print("\n".join(map(str, found)))
    for (family, path), number in collections.Counter(map(_group, found)).most_common(60):
        print(f"{number:6} {family:12} {path}")
    cases = len({difference.case for difference in found})
    answers = {(difference.case, difference.index) for difference in found}
    print(f"{len(found)} differences in {len(answers)} of {total} answers, in {cases} of {count} sequences")
    if options.write:
        still = collections.Counter(case.partition("/")[0] for case, _ in sorted(answers))
        text = "".join(f"{family}: {number}\n" for family, number in sorted(still.items()))
        OPEN.write_text("# Answers that still differ without an accepted reason; they may only become fewer.\n" + text)
    return len(found)


def _replay(case, options):  # type: ignore[no-untyped-def]
    if options.server:
        return normal(play(case, Remote(options.server, json.loads(options.tokens.read_text()))))
    server = Local()
    try:
        return normal(play(case, server))
    finally:
        server.close()


def _group(found: Difference) -> tuple[str, str]:
    path = re.sub(r"\.\d+", ".#", found.path)
    if found.path == "code":
        path = f"code {str(found.real)[:3]} -> {str(found.ours)[:3]}"
    return found.case.partition("/")[0], path


if __name__ == "__main__":
    main()
