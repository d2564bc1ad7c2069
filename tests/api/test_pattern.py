"""Patterns mean what they mean to Go, and no pattern takes longer than its text."""

import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.pattern import PATTERN_LIMIT, PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a$", ["a"], ["a\n", "b"]),
        ("(?m)^a$", ["a\nb"], ["ab"]),
        (r"^a\z", ["a"], ["a\n"]),
        ("^(?i)(abort|warn)?$", ["", "ABORT", "warn"], ["aborts"]),
        ("^(a(?i)b|c)$", ["aB", "C"], ["Ab", "AB"]),
        ("^(?:(?i)a)b$", ["Ab", "ab"], ["aB"]),
        ("^(?i:a)b$", ["Ab"], ["aB"]),
        ("^[[:alpha:]_]+$", ["ab_"], ["a1"]),
        (r"^\d\w$", ["1a"], ["١a", "1é"]),
        (r"^\Qa.b\E$", ["a.b"], ["axb"]),
        (r"\Qa", ["a"], ["b"]),
        (r"^\x{e9}$", ["é"], ["e"]),
        (r"^[]a]$", ["]", "a"], ["b"]),
        (r"^[^]a]$", ["b"], ["]"]),
        (r"^[\]a[]$", ["]", "[", "a"], ["b"]),
        ("^[a&&b]+$", ["a&b"], ["c"]),
        ("(?P<x>a)(?<y>b)", ["ab"], ["ba"]),
        ("[$]", ["$"], [""]),
        (r"^\$$", ["$"], [""]),
        (r"^\pL$", ["é"], ["1"]),
        ("^[[:^alpha:]]$", ["1"], ["a"]),
        (r"^\\C$", ["\\C"], ["a"]),
    ],
)
def test_means_what_go_means(pattern, yes, no):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compile_pattern(pattern)
    assert [text for text in yes if not compiled.search(text)] == []
    assert [text for text in no if compiled.search(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[a",
        "a(?=b)",
        "(?<!a)b",
        r"(a)\1",
        r"\Z",
        r"\C",
        r"\\\C",
        "(a{1000}){1000}",
        "[[:x:]]",
        "\\",
        "*",
        "a" * (PATTERN_LIMIT + 1),
    ],
)
def test_refused(pattern):
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet="ab()[]{}?*+|^$\\.:=<>imsQEzx-&1P", max_size=14))
def test_hostile_patterns_are_refused_not_crashed_on(pattern):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile_pattern(pattern)
        except PatternError as error:
            assert str(error)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$", "(?:a?){30}a{30}$", "^(([a-z])+.)+[A-Z]+$"])
def test_no_pattern_takes_longer_than_its_text(pattern):
    start = time.perf_counter()
    compile_pattern(pattern).search("a" * 50_000 + "!")
    assert time.perf_counter() - start < 1
