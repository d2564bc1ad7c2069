"""Named formats: `format.dns1123Label().validate(text)`, `format.named("uuid")`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final

from steersman.api import names
from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.library.net import Url
from steersman.api.cel.types import OPAQUE
from steersman.api.cel.values import NONE, Opaque, Optional
from steersman.api.times import TimeError, parse_time

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Format(Opaque):
    """A format; `length` stands for the length of its pattern where a check is priced."""

    __slots__ = ("length", "name", "problems")
    kind = OPAQUE["format"].name

    def __init__(self, name: str, problems: Callable[[str], list[str]], length: int) -> None:
        self.name = name
        self.problems = problems
        self.length = length

    def cel_equal(self, other: Any) -> bool:
        """The same format."""
        return bool(self.name == other.name)


def _uri(text: str) -> list[str]:
    try:
        Url(text)
    except CelError as problem:
        return [str(problem).partition(": ")[2]]
    return []


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except TimeError:
        return False
    return True


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    return lambda text: check(names.as_prefix(text))


FORMATS: Final = {
    name: Format(name, check, length)
    for name, check, length in (
        ("dns1123Label", names.dns1123_label, 30),
        ("dns1123Subdomain", names.dns1123_subdomain, 60),
        ("dns1035Label", names.dns1035_label, 30),
        ("qualifiedName", names.qualified_name, 60),
        ("dns1123LabelPrefix", _prefix(names.dns1123_label), 30),
        ("dns1123SubdomainPrefix", _prefix(names.dns1123_subdomain), 60),
        ("dns1035LabelPrefix", _prefix(names.dns1035_label), 30),
        ("labelValue", names.label_value, 40),
        ("uri", _uri, 1200),
        ("uuid", lambda text: [] if _UUID.fullmatch(text) else ["does not match the UUID format"], 90),
        ("byte", _byte, 84),
        ("date", lambda t: [] if _DATE.fullmatch(t) and _is_time(t + "T00:00:00Z") else ["invalid date"], 150),
        ("datetime", lambda text: [] if _is_time(text) else ["invalid datetime"], 150),
    )
}


def _validate(form: Format, text: str) -> Optional:
    problems = form.problems(text)
    return Optional(True, problems) if problems else NONE


def _named(name: str) -> Optional:
    return Optional(True, FORMATS[name]) if name in FORMATS else NONE


def _constant(form: Format) -> Callable[[], Format]:
    return lambda: form


def formats() -> Registry:
    """The library."""
    return functions(
        [
            *[(f"format.{name}", "-> format", _constant(form)) for name, form in FORMATS.items()],
            ("format.named", "string -> optional(format)", _named),
            ("validate", ". format string -> optional(list(string))", _validate),
        ]
    )
