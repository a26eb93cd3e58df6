"""Patterns: RE2's syntax, its errors, and matching in linear time."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.schema.patterns import PatternError, compile_pattern
from kubewright.schema.patterns.automaton import Automaton
from kubewright.schema.patterns.pattern import translate_to_re
from kubewright.schema.patterns.syntax import Parser

_ATOMS = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", r"\w", r"\d", "^", "$", r"\b", "c"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "*?", "+?"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
    ),
    max_leaves=6,
)


@given(_PATTERNS, st.text("abc1\n", max_size=8))
def test_both_matchers_find_the_same_match(pattern: str, text: str) -> None:
    node = Parser(pattern).parse()
    automaton = Automaton(node, pattern)
    match = re.search(translate_to_re(node), text)
    assert automaton.search(text) == (match is not None)
    assert automaton.find(text) == (match.span() if match else None)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a+", "xaay", True),
        ("^a$", "a\n", False),
        ("(?i)straße", "STRAßE", True),
        ("(?i)k", "K", True),
        (r"^\pL+$", "äöü", True),
        (r"\p{Greek}", "α", True),
        (r"[[:alpha:]]+", "1", False),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\x{1F600}", "😀", True),
        (r"(?s)a.b", "a\nb", True),
        (r"(?P<n>a)(?<m>b)", "ab", True),
        (r"(?m)^b$", "a\nb", True),
        (r"a{,2}", "a{,2}", True),
        (r"\d", "٣", False),
    ],
)
def test_matches_like_re2(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern).search(text) is expected


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x", "a*a*a*a*a*a*b", "(a|b|ab)*c"]
)
def test_matches_in_linear_time(pattern: str) -> None:
    """A backtracking engine would take longer than the timeout of a test."""
    assert compile_pattern(pattern).search("a" * 5000 + "!") is False


@pytest.mark.parametrize(
    "pattern", [r"a(?=b)", r"(a)\1", "(", "[", "a**", "a++", "*", "a{1001}", r"\y", "(?z)", r"\pX"]
)
def test_rejects_patterns_that_re2_rejects(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        compile_pattern(pattern)


@given(st.text(max_size=20))
def test_any_text_compiles_or_raises_pattern_error(pattern: str) -> None:
    with contextlib.suppress(PatternError):
        assert compile_pattern(pattern).search("abc") in (True, False)
