"""Golden values come from apimachinery v0.36.0 (`ParseQuantity`, `String`, `Value`, `MilliValue`)."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api import quantity
from steersman.api.quantity import Quantity, QuantityError, canonical, milli, parse, value

SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
SUFFIXES |= {name: Fraction(10 ** (3 * power)) for power, name in enumerate("kMGTP", 1)}
SUFFIXES |= {name + "i": Fraction(1024**power) for power, name in enumerate("KMGTP", 1)}
SUFFIXES |= {"e3": Fraction(1000), "E3": Fraction(1000), "e-3": Fraction(1, 1000), "e0": Fraction(1)}


@pytest.mark.parametrize(
    ("text", "stored", "units", "thousandths"),
    [
        ("0", "0", 0, 0),
        ("0.0", "0", 0, 0),
        (".", "0", 0, 0),
        ("0e3", "0", 0, 0),
        ("0.5", "500m", 1, 500),
        (".5", "500m", 1, 500),
        ("1.5", "1500m", 2, 1500),
        ("1.500", "1.500", 2, 1500),
        ("1.", "1.", 1, 1000),
        ("+1", "+1", 1, 1000),
        ("-1.0005", "-1000500u", -2, -1001),
        ("1024Mi", "1Gi", 1 << 30, 1000 << 30),
        ("1.5Gi", "1536Mi", 1536 << 20, 1536000 << 20),
        ("0.5Ki", "512", 512, 512000),
        ("01Ki", "01Ki", 1024, 1024000),
        ("1000", "1k", 1000, 1000000),
        ("1000m", "1", 1, 1000),
        ("100u", "100u", 1, 1),
        ("0.1n", "1n", 1, 1),
        ("1e3", "1e3", 1000, 1000000),
        ("1000e0", "1e3", 1000, 1000000),
        ("1e-3", "1e-3", 1, 1),
        ("1E", "1E", 10**18, 10**21),
        ("12E", "12E", 12 * 10**18, 12 * 10**21),
        ("8Ei", "9223372036854775807", 2**63 - 1, (2**63 - 1) * 1000),
        ("0.0001Ki", "102400u", 1, 103),
    ],
)
def test_golden(text, stored, units, thousandths):
    assert (canonical(text), value(text), milli(text)) == (stored, units, thousandths)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 ", " 1", "a", "-", "+", "1K", "1ki", "1kk", "1e", "1e3.5", "1.2.3", "1Kii", "--1", "1e+"),
        *("1e100", "9" * 129, "1\n", "\u0661", "1e99999999999999999999", "NaN", "inf"),
    ],
)
def test_wrong_texts_are_named(text):
    with pytest.raises(QuantityError) as caught:
        milli(text)
    assert repr(text)[:50] in str(caught.value)
    assert caught.value.text == text


@pytest.mark.parametrize("odd", [None, True, False, [], {}, b"1", object(), 10**200, float("inf"), float("nan")])
def test_other_types_are_refused_even_after_equal_numbers_were_cached(odd):
    for number in (1, 1.0):
        milli(number), value(number), canonical(number)
    for use in (milli, value, canonical):
        with pytest.raises(QuantityError):
            use(odd)


def test_json_numbers_are_quantities():
    assert (milli(2), milli(0.5), value(1e-9), canonical(1000)) == (2000, 500, 1, "1k")


numbers = st.builds(
    lambda sign, whole, fraction: f"{sign}{whole}{fraction}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**15).map(str),
    st.one_of(st.just(""), st.integers(0, 10**9).map(lambda n: f".{n}")),
)
texts = st.tuples(numbers, st.sampled_from(sorted(SUFFIXES)))


@given(texts)
@settings(max_examples=400, deadline=None)
def test_the_amount_is_exact_to_a_nano_rounded_away_from_zero(parts):
    number, suffix = parts
    exact = Fraction(number) * SUFFIXES[suffix]
    got = Fraction(parse(number + suffix).nano, 10**9)
    capped = Fraction(2**63 - 1) if suffix.endswith("i") and abs(exact) > 2**63 - 1 else None
    if capped:
        assert abs(got) == capped
    else:
        assert abs(exact) <= abs(got) < abs(exact) + Fraction(1, 10**9)
    assert got * exact >= 0


@given(texts)
@settings(max_examples=400, deadline=None)
def test_canonical_text_is_stable_and_keeps_amount_and_family(parts):
    found = parse("".join(parts))
    again = parse(found.canonical())
    assert again == found
    assert again.canonical() == found.canonical()
    assert "." not in found.canonical()
    assert parse(str(found)) == found
    if found.format == quantity.DECIMAL_SI:
        assert "i" not in found.canonical() and "e" not in found.canonical()


@given(texts, texts)
@settings(max_examples=200, deadline=None)
def test_arithmetic_and_order_follow_the_amounts(left, right):
    a, b = parse("".join(left)), parse("".join(right))
    assert (a + b).nano == a.nano + b.nano
    assert (a - b).nano == a.nano - b.nano
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        *(a.nano < b.nano, a.nano <= b.nano, a.nano == b.nano, a.nano >= b.nano, a.nano > b.nano),
    )
    assert (a + b).format == (a.format if a else b.format)
    assert (-a).nano == -a.nano


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=12))
@settings(max_examples=500, deadline=None)
def test_any_text_gives_a_quantity_or_a_quantity_error(text):
    with contextlib.suppress(QuantityError):
        assert isinstance(parse(text), Quantity)


def test_the_family_survives_a_sum_and_zero_takes_the_other():
    assert str(parse("1Gi") + parse("1Gi")) == "2Gi"
    assert str(parse("0") + parse("1024Mi")) == "1Gi"
    assert str(parse("1e3") + parse("1k")) == "2e3"
    assert str(parse("1Gi") - parse("1Gi")) == "0"


def test_equal_amounts_are_equal_and_hash_alike():
    assert len({parse("1Gi"), parse("1024Mi"), parse("1073741824")}) == 1
    assert parse("1") != "1"


def test_the_caches_are_bounded():
    assert quantity._milli.cache_info().maxsize == quantity.CACHE_SIZE
