"""Kubernetes resource quantities: `500m`, `1.5Gi`, `2e3`.

A quantity is exact, in steps of 10^-9; finer parts are rounded away from zero when it is parsed. It remembers its
family of suffixes and is written in that family again. `milli` and `value` are the fast ways to a plain int.
Source of the facts (grammar, rounding, canonical form, cap): apimachinery `pkg/api/resource`, release 1.36.

Two deliberate differences, both for quantities no cluster has: values beyond 10^18 units keep the suffix `E`
(Kubernetes drops it), and `milli` and `value` are exact for every size and sign (Kubernetes' 64 bits wrap or give
0, and negative amounts that left its fast path are rounded wrongly).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NANO: Final = 10**9
MILLI_IN_NANO: Final = 10**6

DECIMAL_SI: Final = "DecimalSI"  # 12M
BINARY_SI: Final = "BinarySI"  # 12Mi
DECIMAL_EXPONENT: Final = "DecimalExponent"  # 12e6

# Longer texts are no quantity a person or a program writes; the limit keeps hostile input cheap.
MAX_LENGTH: Final = 128
# 10^99 is beyond every physical amount; larger exponents would only make huge integers.
MAX_EXPONENT: Final = 99
# Kubernetes' cap of binary quantities: the largest signed 64-bit integer.
MAX_BINARY: Final = (1 << 63) - 1
# Distinct quantities in one cluster are few (sizes of templates and nodes); status values rarely hold any.
CACHE_SIZE: Final = 8192

GRAMMAR: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,19})")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX = {0: ""} | {bits: suffix for suffix, bits in _BINARY.items()}


class QuantityError(ValueError):
    """The text is no quantity. `text` is what was given; the message names it and what would be right."""

    def __init__(self, text: object, problem: str) -> None:
        shown = repr(text)
        if len(shown) > MAX_LENGTH:
            shown = shown[:MAX_LENGTH] + "..."
        super().__init__(f"invalid quantity {shown}: {problem}")
        self.text = text


class Quantity:
    """An exact amount. `nano` is the amount times 10^9; `format` its family of suffixes. Immutable by convention.

    Quantities compare and hash by amount alone: `1024Mi == 1Gi`.
    """

    __slots__ = ("_text", "format", "nano")

    def __init__(self, nano: int, format: str = DECIMAL_SI, text: str = "") -> None:
        self.nano = nano
        self.format = format
        self._text = text

    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _divide(self.nano, MILLI_IN_NANO)

    def value(self) -> int:
        """The amount in units, rounded away from zero."""
        return _divide(self.nano, NANO)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __bool__(self) -> bool:
        return self.nano != 0

    def __hash__(self) -> int:
        return self.nano

    def __str__(self) -> str:
        """The text Kubernetes stores: canonical, or as it was written where that is already close to canonical."""
        return self._text or self.canonical()

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def canonical(self) -> str:
        """The canonical text: no fraction, no precision lost, the largest suffix of its family that allows both."""
        if self.nano == 0:
            return "0"
        if self.format == BINARY_SI and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            units, bits = self.nano // NANO, 0
            while bits < 60 and units % 1024 == 0:
                units, bits = units // 1024, bits + 10
            return f"{units}{_BINARY_SUFFIX[bits]}"
        amount, exponent = self.nano, -9
        while amount % 1000 == 0 and (exponent < 18 or self.format == DECIMAL_EXPONENT):
            amount, exponent = amount // 1000, exponent + 3
        if self.format == DECIMAL_EXPONENT:
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIX[exponent]}"


def _divide(amount: int, by: int) -> int:
    """Division rounded away from zero."""
    return -(-amount // by) if amount >= 0 else amount // by


def parse(text: str | int | float) -> Quantity:
    """The quantity that `text` (or a JSON number) stands for.

    Raises QuantityError, which names the text and the remedy.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(text, 'give text such as "500m" or "1Gi", or a number')
    if not isinstance(text, str):
        text = _number_text(text)
    if not text or len(text) > MAX_LENGTH:
        raise QuantityError(text, f"give 1 to {MAX_LENGTH} characters, for example 500m or 1Gi")
    found = _NUMBER.fullmatch(text)
    assert found  # every text has at least the empty number
    sign, whole, fraction, suffix = found[1], found[2], found[3] or "", found[4]
    if not whole and not fraction and found[3] is None:
        raise QuantityError(text, f"quantities must match the regular expression '{GRAMMAR}'")
    exponent, bits, format = _suffix(text, suffix)
    nano = _scale(int(whole + fraction or "0"), len(fraction), exponent, bits)
    if format == BINARY_SI:
        if nano > MAX_BINARY * NANO:
            nano = MAX_BINARY * NANO
        elif 0 < nano < NANO:
            format = DECIMAL_SI
    kept = text if _keeps_text(whole.lstrip("0"), fraction, exponent, bits) else ""
    return Quantity(-nano if sign == "-" else nano, format, kept)


def _number_text(number: int | float) -> str:
    if isinstance(number, int) and number.bit_length() > 512:
        raise QuantityError("a number of more than 512 bits", "give a smaller number")
    return str(number)


def _suffix(text: str, suffix: str) -> tuple[int, int, str]:
    """The decimal exponent, the binary exponent and the family of a suffix."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0, DECIMAL_SI
    if suffix in _BINARY:
        return 0, _BINARY[suffix], BINARY_SI
    found = _EXPONENT.fullmatch(suffix)
    if not found:
        known = ", ".join([*(s for s in _DECIMAL if s), *_BINARY])
        raise QuantityError(text, f"unable to parse quantity's suffix; use one of {known}, or e3")
    exponent = int(found[1])
    if exponent > MAX_EXPONENT:
        raise QuantityError(text, f"the exponent is larger than {MAX_EXPONENT}")
    return exponent, 0, DECIMAL_EXPONENT


def _scale(digits: int, places: int, exponent: int, bits: int) -> int:
    """`digits` × 10^(exponent - places) × 2^bits in 10^-9, rounded up."""
    power = exponent - places + 9
    if power >= 0:
        return (digits << bits) * _power(power)
    if power < -2 * MAX_LENGTH:  # smaller than any step whatever the digits: round up to one step
        return 1 if digits else 0
    return _divide(digits << bits, _power(-power))


def _power(exponent: int) -> int:
    ten: int = 10**exponent
    return ten


def _keeps_text(whole: str, fraction: str, exponent: int, bits: int) -> bool:
    """Whether Kubernetes stores the text unchanged: its parser skips the canonical form for these texts.

    That is why `1.500` stays `1.500` in a stored object although `1.5` becomes `1500m`.
    """
    shifted = (whole or "0") + fraction
    if bits:
        precision = 15 - len(whole or "0") - bits * 3 // 10 - 1
        return not fraction and precision >= 0 and int(shifted) & 7 != 0
    scale = exponent - len(fraction)
    if 18 - len(shifted) < 0 or scale < -9:
        return False
    return scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


@lru_cache(CACHE_SIZE, typed=True)
def _milli(text: str | int | float) -> int:
    return parse(text).milli()


@lru_cache(CACHE_SIZE, typed=True)
def _value(text: str | int | float) -> int:
    return parse(text).value()


@lru_cache(CACHE_SIZE, typed=True)
def _canonical(text: str | int | float) -> str:
    return str(parse(text))


def milli(text: str | int | float) -> int:
    """The quantity in thousandths (CPU: millicores), rounded away from zero. Raises QuantityError."""
    try:
        return _milli(text)
    except TypeError:  # not hashable, hence not a quantity
        raise QuantityError(text, 'give text such as "500m", or a number') from None


def value(text: str | int | float) -> int:
    """The quantity in units (memory: bytes), rounded away from zero. Raises QuantityError."""
    try:
        return _value(text)
    except TypeError:
        raise QuantityError(text, 'give text such as "1Gi", or a number') from None


def canonical(text: str | int | float) -> str:
    """The text Kubernetes stores for `text`: `1024Mi` gives `1Gi`, `0.5` gives `500m`. Raises QuantityError."""
    try:
        return _canonical(text)
    except TypeError:
        raise QuantityError(text, 'give text such as "1Gi", or a number') from None
