"""Quantities and semantic versions."""

from __future__ import annotations

import re
from typing import Any, Final

from steersman.api import quantity
from steersman.api.cel.faults import CelError
from steersman.api.cel.functions import Registry, functions
from steersman.api.cel.types import OPAQUE
from steersman.api.cel.values import INT_MAX, INT_MIN, Opaque
from steersman.api.quantity import NANO, QuantityError

MAX_SEMVER: Final = 1024
"""Characters of a version: more than any has."""
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,19}", re.ASCII)
_PART: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)


class QuantityValue(Opaque):
    """A quantity."""

    __slots__ = ("amount",)
    kind = OPAQUE["quantity"].name

    def __init__(self, amount: quantity.Quantity) -> None:
        self.amount = amount

    def cel_equal(self, other: Any) -> bool:
        """Equal amounts, however they are written."""
        return bool(self.amount == other.amount)


def to_quantity(text: str) -> QuantityValue:
    """The quantity. Raises `CelError`."""
    try:
        return QuantityValue(quantity.parse(text))
    except QuantityError as problem:
        if "unable to parse quantity's suffix" in str(problem):
            raise CelError("unable to parse quantity's suffix") from None
        raise CelError(f"quantities must match the regular expression '{quantity.GRAMMAR}'") from None


def is_quantity(text: str) -> bool:
    """Whether it is one."""
    try:
        quantity.parse(text)
    except QuantityError:
        return False
    return True


def _is_integer(value: QuantityValue) -> bool:
    return value.amount.nano % NANO == 0 and INT_MIN <= value.amount.nano // NANO <= INT_MAX


def _integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return value.amount.nano // NANO


def _sum(a: QuantityValue, b: Any, sign: int) -> QuantityValue:
    other = b.amount if isinstance(b, QuantityValue) else quantity.Quantity(b * NANO)
    return QuantityValue(a.amount + other if sign > 0 else a.amount - other)


def _order(a: QuantityValue, b: QuantityValue) -> int:
    return int(a.amount > b.amount) - int(a.amount < b.amount)


class Semver(Opaque):
    """A semantic version; build metadata takes no part in comparisons."""

    __slots__ = ("numbers", "pre")
    kind = OPAQUE["semver"].name

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre

    def key(self) -> Any:
        """What orders versions: a release is above its pre-releases, numbers are below words."""
        pre = tuple([(0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre])
        return (self.numbers, not self.pre, pre)

    def cel_equal(self, other: Any) -> bool:
        """Equal in order."""
        return bool(self.key() == other.key())


def to_semver(text: str, normalize: bool = False) -> Semver:
    """The version. Raises `CelError`."""
    if len(text) > MAX_SEMVER:
        raise CelError("the version is too long")
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    core, plus, build = text.partition("+")
    numbers, minus, pre = core.partition("-")
    parts = numbers.split(".")
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    for name, part in zip(("Major", "Minor", "Patch"), parts, strict=True):
        if part.isdigit() and len(part) > 1 and part[0] == "0":
            raise CelError(f'{name} number must not contain leading zeroes "{part}"')
        if not _NUMBER.fullmatch(part):
            raise CelError(f'Invalid character(s) found in {name.lower()} number "{part}"')
    pieces = pre.split(".") if minus else []
    for part in pieces:
        _check_part(part, "prerelease")
        if part.isdigit() and len(part) > 1 and part[0] == "0":
            raise CelError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
    for part in build.split(".") if plus else ():
        _check_part(part, "build meta data")
    return Semver((int(parts[0]), int(parts[1]), int(parts[2])), tuple(pieces))


def _check_part(part: str, what: str) -> None:
    if not part:
        raise CelError(f"{what[0].upper()}{what[1:]} is empty")
    if not _PART.fullmatch(part):
        raise CelError(f'Invalid character(s) found in {what} "{part}"')


def _normalized(text: str) -> str:
    """Without a v, with all three numbers, without leading zeroes."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(parts) == 3:
        return ".".join(parts)
    if any(char in parts[-1] for char in "+-"):
        raise CelError("Short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        to_semver(text, normalize)
    except CelError:
        return False
    return True


def _newer(a: Semver, b: Semver) -> int:
    return int(a.key() > b.key()) - int(a.key() < b.key())


def amounts() -> Registry:
    """The library."""
    table: list[tuple[str, str, Any]] = [
        ("quantity", "string -> quantity", to_quantity),
        ("isQuantity", "string -> bool", is_quantity),
        ("sign", ". quantity -> int", lambda q: int(q.amount.nano > 0) - int(q.amount.nano < 0)),
        ("asApproximateFloat", ". quantity -> double", lambda q: q.amount.nano / NANO),
        ("asInteger", ". quantity -> int", _integer),
        ("isInteger", ". quantity -> bool", _is_integer),
        ("semver", "string -> semver", to_semver),
        ("semver", "string bool -> semver", to_semver),
        ("isSemver", "string -> bool", _is_semver),
        ("isSemver", "string bool -> bool", _is_semver),
        ("major", ". semver -> int", lambda v: v.numbers[0]),
        ("minor", ". semver -> int", lambda v: v.numbers[1]),
        ("patch", ". semver -> int", lambda v: v.numbers[2]),
    ]
    for kind, order in (("quantity", _order), ("semver", _newer)):
        table += [
            ("isGreaterThan", f". {kind} {kind} -> bool", _above(order)),
            ("isLessThan", f". {kind} {kind} -> bool", _below(order)),
            ("compareTo", f". {kind} {kind} -> int", order),
        ]
    for other in ("quantity", "int"):
        table += [
            ("add", f". quantity {other} -> quantity", lambda a, b: _sum(a, b, 1)),
            ("sub", f". quantity {other} -> quantity", lambda a, b: _sum(a, b, -1)),
        ]
    return functions(table)


def _above(order: Any) -> Any:
    return lambda a, b: order(a, b) > 0


def _below(order: Any) -> Any:
    return lambda a, b: order(a, b) < 0
