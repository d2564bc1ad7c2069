"""Writes docs/limits.md: every bound on what others can make this program hold, wait for or do, with its reason.

    python scripts/list_limits.py

A bound is a constant whose name says so (MAX, LIMIT, BURST, BYTES, SECONDS, AT_A_TIME, …), or a field of
`serve.limits.Limits`. Its reason is the text beside it in the source. `tests/test_limits_page.py` fails when the page
and the source disagree.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs/limits.md"
NAME: Final = re.compile(
    r"(?:^|_)(?:MAX|LIMIT|BURST|BYTES|SECONDS|KEPT|FEW|MEMORY|AT_A_TIME|AT_ONCE|TRIES|SLICE|BUDGET|CAPACITY)(?:_|$)"
)
FOLDERS: Final = (
    ("HTTP", "serve", "What a client meets first: connections, requests, streams, answers."),
    ("Objects and rules", "api", "What is read from bodies, and what rules, selectors and patches may cost."),
    ("The store", "kernel", "What is kept in memory beside the objects."),
    ("The journal", "journal", "What is written."),
    ("The control plane", "run", "Workspaces, controllers' queues, stops."),
    ("Controllers", "controllers", "How much one reconcile does; the next one goes on from there."),
)
HEAD: Final = """# Limits

Every bound on what others can make Steersman hold, wait for or do, with its reason. This page is written by
`scripts/list_limits.py` from the constants themselves. Validation limits of single fields (63 characters of a label
value, …) are Kubernetes' own and only listed where they bound work.

What a client that goes beyond one sees: 400 for what cannot be read, 413 and 431 for what is too large, 422 for objects
that break a rule, 429 and 503 (with Retry-After) for too much at a time, 408 or a closed connection for what is too
slow.
"""


class Bound(NamedTuple):
    """One limit."""

    name: str
    value: str
    reason: str


def bounds(path: Path, module: str) -> Iterator[Bound]:
    """The limits of one source file that have a reason beside them."""
    text = path.read_text()
    lines = text.splitlines()
    body = ast.parse(text).body
    values = None
    for number, node in enumerate(body):
        name = _name(node)
        if not name or not NAME.search(name):
            continue
        reason = _reason(body[number + 1] if number + 1 < len(body) else None, lines, node)
        values = values or vars(importlib.import_module(module))
        value = values[name]
        if reason and isinstance(value, int | float) and not isinstance(value, bool):
            yield Bound(name, _shown(name, value), reason)


def fields(path: Path) -> Iterator[Bound]:
    """The fields of `Limits`, each explained by the comment above it."""
    from steersman.serve.limits import Limits

    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if match := re.match(r"    (\w+): (?:int|float) = ", line):
            start = number
            while lines[start - 1].lstrip().startswith("#"):
                start -= 1
            reason = " ".join(each.strip().lstrip("# ") for each in lines[start:number])
            yield Bound(f"Limits.{match[1]}", _shown(match[1].upper(), getattr(Limits(), match[1])), reason)


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _reason(after: ast.stmt | None, lines: list[str], node: ast.stmt) -> str:
    """The text below a constant, behind it, or above it."""
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return " ".join(after.value.value.split())
    last = lines[(node.end_lineno or node.lineno) - 1]
    if "  # " in last:
        return last.partition("  # ")[2].strip()
    start = node.lineno - 1
    while start and lines[start - 1].startswith("#"):
        start -= 1
    return " ".join(line.lstrip("# ") for line in lines[start : node.lineno - 1])


def _shown(name: str, value: float) -> str:
    if value >= 1024 and value % 1024 == 0 and "SECONDS" not in name:
        for unit, size in (("Mi", 1 << 20), ("Ki", 1 << 10)):
            if value % size == 0:
                return f"{int(value) // size:,} {unit}"
    return f"{value:,}"


def page() -> str:
    """The whole page."""
    out = [HEAD]
    for title, folder, text in FOLDERS:
        out += [f"## {title}\n", f"{text}\n", "| limit | value | reason |", "|---|---|---|"]
        for path in sorted((ROOT / "src/steersman" / folder).rglob("*.py")):
            where = path.relative_to(ROOT / "src").with_suffix("").as_posix()
            found = list(bounds(path, where.replace("/", ".")))
            if where == "steersman/serve/limits":
                found = list(fields(path))
            for bound in found:
                reason = bound.reason.replace("|", "\\|")
                short = where.removeprefix("steersman/")
                out.append(f"| `{short}` {bound.name} | {bound.value} | {reason} |")
        out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
