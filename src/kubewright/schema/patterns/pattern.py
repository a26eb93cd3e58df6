"""Compiled patterns, matched by the standard library's `re` if that is safe and by the linear-time automaton if not.

`re` is faster but backtracks: a pattern of an untrusted CRD could block the event loop. The number of ways in which
`re` could try a text is therefore estimated from the tree; above the limit the automaton is used.
"""

import re
from functools import cached_property, lru_cache
from typing import NamedTuple

from kubewright.schema.patterns.automaton import Automaton
from kubewright.schema.patterns.charset import Ranges
from kubewright.schema.patterns.syntax import (
    UNBOUNDED,
    Alternation,
    Assertion,
    CharClass,
    Concatenation,
    Node,
    Parser,
    Position,
    Repeat,
)

_MAX_BACKTRACKS = 1_000_000


class Pattern:
    """A compiled RE2 pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._node = Parser(text).parse()
        self._backtracking_cost = _backtracking_cost(self._node)

    def search(self, text: str) -> bool:
        """Return True if the pattern matches anywhere in the text."""
        if self._backtracking_cost.within_limit(len(text)):
            return self._regex.search(text) is not None
        return self._automaton.search(text)

    def find(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        """Return the span of the leftmost match from `begin` on."""
        if self._backtracking_cost.within_limit(len(text)):
            match = self._regex.search(text, begin)
            return match.span() if match else None
        return self._automaton.find(text, begin)

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return the matches that do not overlap, at most `limit` of them."""
        found: list[str] = []
        at, previous_end = 0, -1
        while at <= len(text) and (limit < 0 or len(found) < limit):
            span = self.find(text, at)
            if span is None:
                break
            begin, end = span
            # Go drops an empty match that touches the match before it.
            if begin != end or begin != previous_end:
                found.append(text[begin:end])
            at = end if end > begin else end + 1
            previous_end = end
        return found

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(translate_to_re(self._node))

    @cached_property
    def _automaton(self) -> Automaton:
        return Automaton(self._node, self.text)


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern; raise PatternError if RE2 rejects it."""
    return Pattern(text)


class _BacktrackingCost(NamedTuple):
    """The number of ways in which a backtracking matcher could try a text: factor * length ** degree."""

    factor: float = 1
    degree: int = 0

    def within_limit(self, length: int) -> bool:
        """Return True if the cost for a text of this length is acceptable."""
        return self.factor * (length + 1) ** (self.degree + 1) <= _MAX_BACKTRACKS

    def times(self, other: "_BacktrackingCost") -> "_BacktrackingCost":
        """Return the cost of one part followed by another."""
        return _BacktrackingCost(self.factor * other.factor, self.degree + other.degree)


_NO_BACKTRACKING = _BacktrackingCost()
_UNLIMITED = _BacktrackingCost(float("inf"))


def _backtracking_cost(node: Node) -> _BacktrackingCost:
    if isinstance(node, Concatenation):
        total = _NO_BACKTRACKING
        for part in node.parts:
            total = total.times(_backtracking_cost(part))
        return total
    if isinstance(node, Alternation):
        options = [_backtracking_cost(option) for option in node.options]
        return _BacktrackingCost(
            sum(option.factor for option in options), max(option.degree for option in options)
        )
    if not isinstance(node, Repeat):
        return _NO_BACKTRACKING
    inner = _backtracking_cost(node.part)
    if node.most == UNBOUNDED:
        return _BacktrackingCost(1, 1) if inner == _NO_BACKTRACKING else _UNLIMITED
    if inner == _NO_BACKTRACKING:
        return _BacktrackingCost(node.most - node.least + 1)
    return _UNLIMITED if node.most > 1 else _BacktrackingCost(inner.factor + 1, inner.degree)


_POSITIONS: dict[Position, str] = {
    "text start": r"\A",
    "text end": r"\Z",
    "line start": r"(?m:^)",
    "line end": r"(?m:$)",
    "word boundary": r"(?a:\b)",
    # Python's \B does not match in an empty text, RE2's does.
    "no word boundary": r"(?:(?a:\B)|\A\Z)",
}


def translate_to_re(node: Node) -> str:
    """Return the pattern in the syntax of `re`; the parser has already applied all flags."""
    if isinstance(node, CharClass):
        return _class(node.ranges)
    if isinstance(node, Assertion):
        return _POSITIONS[node.position]
    if isinstance(node, Concatenation):
        return "".join(translate_to_re(part) for part in node.parts)
    if isinstance(node, Alternation):
        return "(?:" + "|".join(translate_to_re(option) for option in node.options) + ")"
    count = f"{{{node.least},{'' if node.most == UNBOUNDED else node.most}}}"
    return f"(?:{translate_to_re(node.part)}){count}{'' if node.greedy else '?'}"


def _class(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    members = "".join(
        f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges
    )
    return f"[{members}]"
