"""Fail when a test was skipped, or expected to fail, for a reason that nobody reviewed.

Usage: check_skips.py JUNIT_XML ALLOWED_REASONS

Reads the JUnit XML that pytest writes. Exit codes: 0 every reason is on the list, 1 some reason is not,
2 the input is at fault (no file, not XML, or no test in it: a run of nothing must not pass).
"""

import ast
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

# pytest's message when a whole module is skipped; the reason is in the text.
COLLECTION = "collection skipped"


class InputError(Exception):
    """The report or the list cannot be used; the message says which and why."""


def read_allowed(path: Path) -> frozenset[str]:
    """The reviewed reasons of the file `path`: one a line, without blank lines and `#` comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def read_skips(path: Path) -> list[tuple[str, str]]:
    """(test, reason) of every skipped or expected-to-fail test of the JUnit report `path`, in its order."""
    try:
        root = ET.parse(path).getroot()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except ET.ParseError as error:
        raise InputError(f"{path}: not a JUnit report: {error}") from error
    cases = list(root.iter("testcase"))
    if not cases:
        raise InputError(f"{path}: no test was run")
    return list(_skips(cases))


def _skips(cases: list[ET.Element]) -> Iterator[tuple[str, str]]:
    for case in cases:
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        for skipped in case.iter("skipped"):
            yield name, _reason(skipped)


def _reason(skipped: ET.Element) -> str:
    message = (skipped.get("message") or "").strip()
    if message != COLLECTION:
        return message
    # The text is the repr of (path, line, "Skipped: reason").
    try:
        longrepr = ast.literal_eval((skipped.text or "").strip())
    except (ValueError, SyntaxError):
        return message
    if isinstance(longrepr, tuple) and len(longrepr) == 3:
        return str(longrepr[2]).removeprefix("Skipped:").strip()
    return message


def main(arguments: list[str]) -> int:
    """Print how many tests were skipped for which reason; return the exit code of the module docstring."""
    if len(arguments) != 2:
        print("usage: check_skips.py JUNIT_XML ALLOWED_REASONS", file=sys.stderr)
        return 2
    report, listed = map(Path, arguments)
    try:
        allowed = read_allowed(listed)
        skips = read_skips(report)
    except InputError as error:
        print(f"check_skips: {error}", file=sys.stderr)
        return 2

    by_reason: dict[str, list[str]] = {}
    for test, reason in skips:
        by_reason.setdefault(reason, []).append(test)
    for reason, tests in sorted(by_reason.items()):
        state = "allowed" if reason in allowed else "NOT ALLOWED"
        print(f"check_skips: {len(tests)} skipped, {state}: {reason or '(no reason given)'}")
        if reason not in allowed:
            print("".join(f"    {test}\n" for test in tests), end="")
    refused = sum(len(tests) for reason, tests in by_reason.items() if reason not in allowed)
    if refused:
        print(f"check_skips: {refused} skips need a fix, or a reviewed line in {listed}", file=sys.stderr)
        return 1
    print(f"check_skips: {len(skips)} skipped, all for reviewed reasons")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
