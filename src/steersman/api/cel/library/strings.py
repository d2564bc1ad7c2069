"""Strings: cel-go's string extension, version 2, and Kubernetes' `find` and `findAll`.

Regular expressions are RE2's, by RE2 itself: its time is linear in the text whatever the pattern.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.library.format import format_text
from steersman.api.cel.values import checked_text
from steersman.api.pattern import PatternError, compile_pattern

WHITE: Final = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What trim takes away: Unicode's White_Space."""
_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}
_QUOTED: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
                  "\\": "\\\\", '"': '\\"'}  # fmt: skip


def pattern(text: str) -> Any:
    """A compiled pattern. Raises `CelError`."""
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise CelError(str(error)) from None


def matches(text: str, regex: str) -> bool:
    """Whether the pattern is found in the text."""
    return pattern(regex).search(text) is not None


def find(text: str, regex: str) -> str:
    """The first match, "" without one."""
    found = _regex(regex).search(text)
    return "" if found is None else str(found[0])


def find_all(text: str, regex: str, most: int = -1) -> list[str]:
    """All matches, or the first so many."""
    out: list[str] = []
    for found in _regex(regex).finditer(text):
        if len(out) == most:
            break
        out.append(str(found[0]))
    return out


def _regex(text: str) -> Any:
    try:
        return pattern(text)
    except CelError as error:
        raise CelError(f"Illegal regex: {error}") from None


def char_at(text: str, index: int) -> str:
    """The character at an index; "" at the very end."""
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Where a part begins, from `start` on; -1 when it is nowhere."""
    if not part:
        return start
    if not 0 <= start <= len(text):
        if start > len(text):
            return -1
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Where a part begins last, at `start` at the latest."""
    if start is None:
        return text.rfind(part) if part else len(text)
    if not part:
        return start
    if not 0 <= start <= len(text):
        if start > len(text):
            return -1
        raise CelError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def join(items: list[Any], between: str = "") -> str:
    """All texts of a list, one after the other."""
    for item in items:
        if type(item) is not str:
            raise CelError(f"join: invalid input: {item}")
    checked_text(sum(map(len, items)) + len(between) * len(items))
    return between.join(items)


def replace(text: str, old: str, new: str, most: int = -1) -> str:
    """The text with some occurrences replaced, all of them when `most` is negative."""
    count = text.count(old)
    checked_text(len(text) + max(0, len(new) - len(old)) * (count if most < 0 else min(most, count)))
    return text.replace(old, new, -1 if most < 0 else most)


def split(text: str, by: str, most: int = -1) -> list[str]:
    """The parts between the separators; single characters for an empty one."""
    if most == 0:
        return []
    if by:
        return text.split(by, -1 if most < 0 else most - 1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def substring(text: str, start: int, end: int | None = None) -> str:
    """The characters from `start` up to, not including, `end`."""
    if end is None:
        if not 0 <= start <= len(text):
            raise CelError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    return text[start:end]


def quote(text: str) -> str:
    """The text as a literal."""
    return '"' + "".join([_QUOTED.get(char, char) for char in text]) + '"'


def strings() -> Registry:
    """The library."""
    return functions(
        [
            ("contains", ". string string -> bool", lambda text, part: part in text),
            ("endsWith", ". string string -> bool", lambda text, part: text.endswith(part)),
            ("startsWith", ". string string -> bool", lambda text, part: text.startswith(part)),
            ("matches", "string string -> bool", matches),
            ("matches", ". string string -> bool", matches),
            ("find", ". string string -> string", find),
            ("findAll", ". string string -> list(string)", find_all),
            ("findAll", ". string string int -> list(string)", find_all),
            ("charAt", ". string int -> string", char_at),
            ("indexOf", ". string string -> int", index_of),
            ("indexOf", ". string string int -> int", index_of),
            ("lastIndexOf", ". string string -> int", last_index_of),
            ("lastIndexOf", ". string string int -> int", last_index_of),
            ("lowerAscii", ". string -> string", lambda text: text.translate(_LOWER)),
            ("upperAscii", ". string -> string", lambda text: text.translate(_UPPER)),
            ("replace", ". string string string -> string", replace),
            ("replace", ". string string string int -> string", replace),
            ("split", ". string string -> list(string)", split),
            ("split", ". string string int -> list(string)", split),
            ("substring", ". string int -> string", substring),
            ("substring", ". string int int -> string", substring),
            ("trim", ". string -> string", lambda text: text.strip(WHITE)),
            ("join", ". list(string) -> string", join),
            ("join", ". list(string) string -> string", join),
            ("format", ". string list(dyn) -> string", format_text),
            ("strings.quote", "string -> string", quote),
        ]
    )
