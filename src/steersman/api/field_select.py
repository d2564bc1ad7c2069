"""Field selectors: `metadata.name=web,status.phase!=Running`, compiled to a matcher.

Which fields a kind can be selected by is the caller's: nothing is looked up here. Source of the facts (grammar,
escapes, messages): apimachinery `pkg/fields` and `pkg/runtime/conversion.go`, release 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman.api.errors import ApiError, bad_request, quote
from steersman.kernel.object import Object

MAX_LENGTH: Final = 64 * 1024  # servers limit query strings to tens of kilobytes
MAX_TERMS: Final = 1000  # each costs a look-up per object listed

# What every kind can be selected by.
METADATA: Final = ("metadata.name", "metadata.namespace")


class _Anything(Collection[str]):
    """A set of fields that has every field."""

    def __contains__(self, field: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


ANY_FIELD: Final = _Anything()
"""For a selector of which only what it says counts, whatever the kind."""
_ESCAPED = {"\\": "\\\\", ",": "\\,", "=": "\\="}
_REMEDY = 'write terms like "metadata.name=web" or "status.phase!=Running", separated by commas'


def escape(value: str) -> str:
    """`value` with backslash, comma and equals sign escaped, as it must stand in a field selector."""
    return "".join(_ESCAPED.get(char, char) for char in value)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One condition: the field has (`equal`) or has not the value. A field that is not there is the empty text."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of terms in sorted order; an empty one matches everything."""

    terms: tuple[FieldTerm, ...] = ()
    equalities: tuple[tuple[str, str], ...] = ()
    """(field, value) pairs that matching objects must hold: any of them may be looked up in an index."""

    def matches(self, getter: Callable[[str], object]) -> bool:
        """Whether an object satisfies every term. `getter(field)` gives its value; None stands for an absent one.

        Values are compared as text: booleans as `true` and `false`, numbers in decimal.
        """
        return all((_text(getter(term.field)) == term.value) is term.equal for term in self.terms)

    def required(self, field: str) -> str | None:
        """The value that `field` must have, if some term demands one."""
        return next((value for name, value in self.equalities if name == field), None)

    @property
    def empty(self) -> bool:
        """Whether everything matches."""
        return not self.terms

    def __str__(self) -> str:
        """The expression that parses to this selector again."""
        return ",".join(map(str, self.terms))

    @staticmethod
    def parse(text: str, supported: Collection[str] = METADATA) -> FieldSelector:
        """The selector of an expression over the `supported` fields.

        `supported` may be a mapping from older names of fields to the names that `matches` asks for
        (`spec.host` to `spec.nodeName`). Raises ApiError 400 with the term, its position and the remedy.
        """
        if not isinstance(text, str) or len(text) > MAX_LENGTH:
            raise bad_request(f"a field selector is a text of at most {MAX_LENGTH} characters; shorten it")
        parts = [(part, at) for part, at in _split(text) if part]
        if len(parts) > MAX_TERMS:
            raise bad_request(f"a field selector may have at most {MAX_TERMS} terms; this one has {len(parts)}")
        found = (_term(part, at, text, supported) for part, at in sorted(parts))
        terms = tuple(term for term in found if term)
        return FieldSelector(terms, tuple((term.field, term.value) for term in terms if term.equal))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split(text: str) -> list[tuple[str, int]]:
    """The terms between unescaped commas, with their positions."""
    parts: list[tuple[str, int]] = []
    start, escaped = 0, False
    for at, char in enumerate(text):
        if escaped or char == "\\":
            escaped = not escaped
        elif char == ",":
            parts.append((text[start:at], start))
            start = at + 1
    parts.append((text[start:], start))
    return parts


def _term(part: str, at: int, text: str, supported: Collection[str]) -> FieldTerm | None:
    """The first operator splits the term, for field names have no escapes. A bare operator is no term."""
    found = part.find("=")
    if found < 0:
        shown = f"invalid selector: '{text[:200]}'; can't understand '{part[:200]}'"
        raise _located(shown, at, text)
    equal = part[found - 1 : found] != "!"
    name = part[: found if equal else found - 1]
    value = part[found + (2 if equal and part[found + 1 : found + 2] == "=" else 1) :]
    unescaped = _unescape(value, at + len(part) - len(value), text)
    if not name and not unescaped:
        return None
    if name not in supported:
        raise _unsupported(name, supported)
    if isinstance(supported, Mapping):
        name = supported[name]
    return FieldTerm(name, unescaped, equal)


def _unescape(value: str, at: int, text: str) -> str:
    chars: list[str] = []
    escaped = False
    for offset, char in enumerate(value):
        if escaped:
            if char not in _ESCAPED:
                problem = f"invalid field selector: invalid escape sequence: \\{char}"
                raise _located(problem, at + offset - 1, text)
            chars.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "=":  # commas have already separated terms
            problem = f"invalid field selector: unescaped character in value: {ord(char)}"
            raise _located(problem, at + offset, text)
        else:
            chars.append(char)
    if escaped:
        raise _located("invalid field selector: invalid escape sequence: \\", at + len(value) - 1, text)
    return "".join(chars)


def _located(problem: str, at: int, text: str) -> ApiError:
    return bad_request(f"{problem} (at character {at + 1} of {quote(text[:200])}; {_REMEDY})")


def _unsupported(name: str, supported: Collection[str]) -> ApiError:
    """Kubernetes has two wordings: kinds with fields of their own, and kinds with the metadata fields only."""
    listed = ", ".join(quote(field) for field in sorted(supported))
    if set(supported) == set(METADATA):
        return bad_request(f"{quote(name[:200])} is not a known field selector: only {listed}")
    return bad_request(f"field label not supported: {name[:200]} (use one of {listed})")


def demanded(text: str) -> tuple[tuple[str, str], ...]:
    """The (field, value) pairs that a field selector of any kind demands; none where it is wrong."""
    try:
        return FieldSelector.parse(text, ANY_FIELD).equalities if text else ()
    except ApiError:
        return ()


def required_name(text: str) -> str:
    """The one name that a field selector lets pass, whatever else it says; "" where it names none or is wrong."""
    return next((value for field, value in demanded(text) if field == "metadata.name"), "")


def field_of(obj: Object, path: str) -> Any:
    """The value at a dotted path, for field selectors; "" where there is none."""
    if path == "spec.nodeName" and obj.node:
        return obj.node
    first, *names_below = path.split(".")
    value: Any
    if first == "metadata":
        value = obj.meta.value
    elif first == "status":
        value = None if obj.status is None else obj.status.peek()
    elif first == "spec":
        value = None if obj.spec is None else obj.spec.peek()
    else:
        value = None if obj.rest is None else obj.rest.peek().get(first)
    for name in names_below:
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else value
