"""The pattern the rest of the package uses: the standard library's matcher where it is surely quick, else ours.

`re` is faster but backtracks: a pattern of an untrusted CRD could stop the event loop. So the number of ways in which
`re` could try a text is estimated from the tree; beyond the limit the linear automaton answers.
"""

import re
from functools import cached_property, lru_cache
from typing import NamedTuple

from kubewright.schema.patterns.automaton import Automaton
from kubewright.schema.patterns.charset import Ranges
from kubewright.schema.patterns.syntax import (
    UNBOUNDED,
    At,
    Chars,
    Choice,
    Node,
    Parser,
    Position,
    Repeat,
    Sequence,
)

_MAX_TRIES = 1_000_000


class Pattern:
    """A compiled RE2 pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._node = Parser(text).parse()
        self._effort = _effort(self._node)

    def search(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in the text."""
        if self._effort.within_limit(len(text)):
            return self._quick.search(text) is not None
        return self._automaton.search(text)

    def find(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        """Return the span of the leftmost match from `begin` on."""
        if self._effort.within_limit(len(text)):
            match = self._quick.search(text, begin)
            return match.span() if match else None
        return self._automaton.find(text, begin)

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return the texts of the matches that do not overlap, at most `limit` of them."""
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
    def _quick(self) -> re.Pattern[str]:
        return re.compile(_translated(self._node))

    @cached_property
    def _automaton(self) -> Automaton:
        return Automaton(self._node, self.text)


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern; raises PatternError where RE2 would refuse it."""
    return Pattern(text)


class _Effort(NamedTuple):
    """How many ways a backtracking matcher could try: factor * length ** degree."""

    factor: float = 1
    degree: int = 0

    def within_limit(self, length: int) -> bool:
        """Tell whether the effort is bearable for a text of this length."""
        return self.factor * (length + 1) ** (self.degree + 1) <= _MAX_TRIES

    def times(self, other: "_Effort") -> "_Effort":
        """Return the effort of one part after another."""
        return _Effort(self.factor * other.factor, self.degree + other.degree)


_NO_CHOICE = _Effort()
_ENDLESS = _Effort(float("inf"))


def _effort(node: Node) -> _Effort:
    if isinstance(node, Sequence):
        total = _NO_CHOICE
        for part in node.parts:
            total = total.times(_effort(part))
        return total
    if isinstance(node, Choice):
        options = [_effort(option) for option in node.options]
        return _Effort(sum(option.factor for option in options), max(option.degree for option in options))
    if not isinstance(node, Repeat):
        return _NO_CHOICE
    inner = _effort(node.part)
    if node.most == UNBOUNDED:
        return _Effort(1, 1) if inner == _NO_CHOICE else _ENDLESS
    if inner == _NO_CHOICE:
        return _Effort(node.most - node.least + 1)
    return _ENDLESS if node.most > 1 else _Effort(inner.factor + 1, inner.degree)


_POSITIONS: dict[Position, str] = {
    "text start": r"\A",
    "text end": r"\Z",
    "line start": r"(?m:^)",
    "line end": r"(?m:$)",
    "word boundary": r"(?a:\b)",
    # Python's \B does not match in an empty text, RE2's does.
    "no word boundary": r"(?:(?a:\B)|\A\Z)",
}


def _translated(node: Node) -> str:
    """Write the tree in the syntax of `re`; all modes are already resolved into it."""
    if isinstance(node, Chars):
        return _class(node.ranges)
    if isinstance(node, At):
        return _POSITIONS[node.position]
    if isinstance(node, Sequence):
        return "".join(_translated(part) for part in node.parts)
    if isinstance(node, Choice):
        return "(?:" + "|".join(_translated(option) for option in node.options) + ")"
    count = f"{{{node.least},{'' if node.most == UNBOUNDED else node.most}}}"
    return f"(?:{_translated(node.part)}){count}{'' if node.greedy else '?'}"


def _class(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    members = "".join(
        f"\\U{low:08x}" if low == high else f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges
    )
    return f"[{members}]"
