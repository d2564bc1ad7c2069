"""Patterns of custom schemas: Go's regular expressions (RE2), read with Python's re.

Kubernetes reads `pattern` with Go's regexp. The two languages agree on most text; this module translates
the rest, so that a pattern means here what it means there: `$` is the very end, `\\d` and `\\w` are ASCII,
`(?i)` may stand anywhere, `\\z`, `\\Q…\\E`, `\\x{…}` and `[[:alpha:]]` exist, look-around and
back-references do not. Source: the syntax page of RE2 and of Go's regexp/syntax package.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

PATTERN_LIMIT: Final = 4096
"""Longest pattern in characters: those of real definitions stay below 1000."""

_FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAME: Final = re.compile(r"\(\?P?<(\w+)>")
_HEX: Final = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}")
_POSIX: Final = re.compile(r"\[:(\^?)(\w+):\]")
_POSIX_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class PatternError(ValueError):
    """A pattern that cannot be used; the text says why."""


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> re.Pattern[str]:
    """The compiled pattern; use its `search`. Raises PatternError."""
    if len(text) > PATTERN_LIMIT:
        raise PatternError(f"it is longer than {PATTERN_LIMIT} characters")
    try:
        return re.compile(_Translation(text).run(), re.ASCII)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise PatternError(str(error)) from None


class _Group:
    """An open group: the flag groups opened inside its current branch, and whether `$` ends lines."""

    def __init__(self, multiline: bool) -> None:
        self.opened: list[str] = []
        self.multiline = multiline


class _Translation:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.groups = [_Group(False)]

    def run(self) -> str:
        steps = {"\\": self.escape, "[": self.character_class, "(": self.open, ")": self.close}
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in steps:
                steps[char]()
                continue
            self.at += 1
            if char == "|":
                opened = self.groups[-1].opened
                self.out += [")" * len(opened), "|", *opened]
            elif char == "$" and not self.groups[-1].multiline:
                self.out.append(r"\Z")
            else:
                self.out.append(char)
        if len(self.groups) > 1:
            raise PatternError("a parenthesis is not closed")
        return "".join(self.out) + ")" * len(self.groups[0].opened)

    def escape(self, in_class: bool = False) -> None:
        """A backslash and what belongs to it."""
        rest = self.text[self.at + 1 :]
        char = rest[:1]
        if char == "Q" and not in_class:
            quoted, _, _ = rest[1:].partition(r"\E")
            self.out.append(re.escape(quoted))
            self.at += min(len(rest) + 1, len(quoted) + 4)
        elif match := _HEX.match(rest):
            self.out.append(re.escape(chr(int(match[1], 16))))
            self.at += 1 + match.end()
        elif char == "z" and not in_class:
            self.out.append(r"\Z")
            self.at += 2
        elif char in ("p", "P", "C", "Z", "u", "U", "N") or (char in "123456789" and char):
            raise PatternError(f"\\{char} is not supported")
        else:
            self.out.append("\\" + char)
            self.at += 2

    def character_class(self) -> None:
        """From `[` to its `]`, with POSIX classes written out."""
        start = self.at
        self.out.append("[")
        self.at += 1
        if self.text.startswith("^", self.at):
            self.out.append("^")
            self.at += 1
        first = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "]" and self.at > first:
                self.out.append("]")
                self.at += 1
                return
            if char == "\\":
                self.escape(in_class=True)
            elif match := _POSIX.match(self.text, self.at):
                if match[1] or match[2] not in _POSIX_CLASSES:
                    raise PatternError(f"{match[0]} is not supported")
                self.out.append(_POSIX_CLASSES[match[2]])
                self.at = match.end()
            else:  # Python gives [, &&, || and ~~ in a class a meaning of their own
                self.out.append("\\" + char if char in "[]&|~" else char)
                self.at += 1
        raise PatternError(f"the class at character {start + 1} is not closed")

    def open(self) -> None:
        """`(` and the forms that begin with `(?`."""
        group = self.groups[-1]
        if match := _FLAGS.match(self.text, self.at):
            on, off = match[1], match[2] or ""
            if "U" in on + off:
                raise PatternError("the flag U is not supported")
            multiline = (group.multiline or "m" in on) and "m" not in off
            written = f"(?{on}-{off}:" if off else f"(?{on}:"
            if match[3] == ":":
                self.groups.append(_Group(multiline))
            else:  # the flags hold to the end of the group, over its alternatives
                group.opened.append(written)
                group.multiline = multiline
            self.out.append(written)
            self.at = match.end()
        elif match := _NAME.match(self.text, self.at):
            self.groups.append(_Group(group.multiline))
            self.out.append(f"(?P<{match[1]}>")
            self.at = match.end()
        elif self.text.startswith("(?", self.at):
            raise PatternError(f"{self.text[self.at : self.at + 4]!r} (look-around) is not supported")
        else:
            self.groups.append(_Group(group.multiline))
            self.out.append("(")
            self.at += 1

    def close(self) -> None:
        if len(self.groups) == 1:
            raise PatternError("a parenthesis is closed that was not opened")
        self.out.append(")" * (1 + len(self.groups.pop().opened)))
        self.at += 1
