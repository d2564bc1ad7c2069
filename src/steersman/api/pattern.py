"""Regular expressions of other people, in custom schemas and in CEL: Go's dialect, matched in linear time.

Kubernetes reads them with Go's regexp package, whose syntax and whose promise are RE2's: no pattern makes the match
take longer than the text is long. Python's `re` promises nothing of the kind: `^(a+)+$` against forty characters takes
longer than anybody waits. So RE2 itself does it here. Source of the syntax: RE2's wiki and Go's regexp/syntax.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

PATTERN_LIMIT: Final = 4096
"""Longest pattern in characters: those of real definitions stay below 1000."""
PATTERN_MEMORY: Final = 8 << 20
"""Bytes that a compiled pattern and its automata may take; a larger one is refused, as is one that repeats too much."""
PATTERNS_KEPT: Final = 1024
"""Compiled patterns that are kept: those of some hundred definitions."""
_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""RE2's words for a fault → those of Go's regexp/syntax, where they differ."""
_BYTE: Final = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = PATTERN_MEMORY


class PatternError(ValueError):
    """A pattern that cannot be used; the text says why."""


@lru_cache(maxsize=PATTERNS_KEPT)
def compile_pattern(text: str) -> Any:
    """The compiled pattern; use its `search`. Raises PatternError."""
    if len(text) > PATTERN_LIMIT:
        raise PatternError(f"error parsing regexp: it is longer than {PATTERN_LIMIT} characters")
    if "\\C" in text and _BYTE.match(text):
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")  # a byte: RE2 has it, Go has not
    try:
        return re2.compile(text, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as error:
        detail = error.args[0] if error.args else ""
        told = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise PatternError(_in_go(told)) from None


def _in_go(told: str) -> str:
    """What Go says of a pattern that RE2 refuses: `missing ]: [a` is told as ``missing closing ]: `[a` ``."""
    fault, colon, part = told.partition(": ")
    fault = _GO_WORDS.get(fault, fault)
    return f"error parsing regexp: {fault}: `{part}`" if colon else f"error parsing regexp: {fault}"
