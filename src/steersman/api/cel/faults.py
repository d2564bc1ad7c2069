"""What can be wrong with an expression: when it is compiled, and when it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable

MAX_SNIPPET = 16_384
"""Longest line that is quoted in a compile error (cel-go's limit)."""


class CompileError(ValueError):
    """The text cannot be compiled. `str` is what cel-go reports: every fault with its place and the line."""

    def __init__(self, source: str, faults: Iterable[tuple[int, str]]) -> None:
        lines = source.split("\n")
        told = []
        for at, message in sorted(faults, key=lambda fault: fault[0]):
            number = source.count("\n", 0, max(at, 0))
            column = max(at, 0) - (source.rfind("\n", 0, max(at, 0)) + 1)
            told.append(_told(number + 1, column, message, lines[number]) if at >= 0 else f"ERROR: <input>: {message}")
        if not source:  # has no place
            told = [line.split("\n")[0].replace("<input>:1:1:", "<input>:1:0:") for line in told]
        super().__init__("\n".join(told))


def _told(line: int, column: int, message: str, text: str) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if len(text) > MAX_SNIPPET:
        return head
    dots = "".join("．" if ord(char) > 127 else "." for char in text[:column])
    mark = "＾" if column < len(text) and ord(text[column]) > 127 else "^"
    return f"{head}\n | {text.replace(chr(9), ' ')}\n | {dots}{mark}"


class CelError(Exception):
    """The evaluation came to an error, which `&&` and `||` may absorb."""


class CostExceeded(Exception):
    """The evaluation was cut off at its budget."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")
