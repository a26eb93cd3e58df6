"""Matching in time linear in the length of the text, without backtracking.

A pattern is compiled to a program of three instructions: consume a character, assert a condition on the position, or
split into several threads (a Thompson NFA, as in RE2). A thread is the index of its next instruction, its program
counter. `search` runs all threads at once and caches each set of them as a state of a deterministic automaton, built
while texts are read and dropped when it has too many states. `find` keeps the threads in order of preference.

Invariant: for each character, each instruction runs at most once, so the time is bounded by the size of the program
times the length of the text.
"""

from dataclasses import dataclass, field

from kubewright.schema.patterns.charset import PERL, Ranges, contains
from kubewright.schema.patterns.syntax import (
    UNBOUNDED,
    Alternation,
    Assertion,
    CharClass,
    Concatenation,
    Node,
    PatternError,
    Position,
    Repeat,
)

_MAX_INSTRUCTIONS = 100_000
_MAX_STATES = 4_000
_MATCH = -1


@dataclass(frozen=True, slots=True)
class _Consume:
    """Consume one character of a set."""

    ranges: Ranges
    then: int


@dataclass(frozen=True, slots=True)
class _Assert:
    """Continue if a condition on the position holds."""

    position: Position
    then: int


@dataclass(frozen=True, slots=True)
class _Split:
    """Continue at several instructions; the earlier ones are preferred."""

    targets: tuple[int, ...]


@dataclass(slots=True, eq=False)
class _State:
    """A set of program counters, together with the character before the current position."""

    counters: tuple[int, ...]
    before: str
    moves: dict[str, "_State"] = field(default_factory=dict[str, "_State"])
    ends_in_match: bool | None = None


class Automaton:
    """A compiled pattern that never backtracks."""

    def __init__(self, node: Node, text: str) -> None:
        self._text = text
        self._program: list[_Consume | _Assert | _Split] = []
        self._start = self._compile(node, _MATCH)
        self._matched = _State((), "")
        self._states: dict[tuple[tuple[int, ...], str], _State] = {}
        self._initial = self._state((self._start,), "")

    def search(self, text: str) -> bool:
        """Return True if the pattern matches anywhere in the text."""
        state = self._initial
        for char in text:
            following = state.moves.get(char)
            if following is None:
                following = self._move(state, char)
            if following is self._matched:
                return True
            state = following
        if state.ends_in_match is None:
            state.ends_in_match = self._readable(state.counters, state.before, "") is None
        return state.ends_in_match

    def find(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        """Return the span of the leftmost match from `begin` on, with Perl's order of preference."""
        threads: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for at in range(begin, len(text) + 1):
            before, after = text[at - 1] if at else "", text[at : at + 1]
            if best is None:
                threads.append((self._start, at))
            readable: list[tuple[int, int]] = []
            seen: set[int] = set()
            for counter, origin in threads:
                if self._follow(counter, origin, before, after, seen, readable):
                    best = (origin, at)
                    break
            threads = []
            for counter, origin in readable:
                instruction = self._program[counter]
                if isinstance(instruction, _Consume) and after and contains(instruction.ranges, ord(after)):
                    threads.append((instruction.then, origin))
            if best is not None and not threads:
                break
        return best

    def _follow(
        self,
        counter: int,
        origin: int,
        before: str,
        after: str,
        seen: set[int],
        readable: list[tuple[int, int]],
    ) -> bool:
        """Append the consuming instructions reachable from one counter, in order; return True at the first match."""
        pending = [counter]
        while pending:
            current = pending.pop()
            if current == _MATCH:
                return True
            if current in seen:
                continue
            seen.add(current)
            instruction = self._program[current]
            if isinstance(instruction, _Consume):
                readable.append((current, origin))
            elif isinstance(instruction, _Split):
                pending.extend(reversed(instruction.targets))
            elif _holds(instruction.position, before, after):
                pending.append(instruction.then)
        return False

    def _state(self, counters: tuple[int, ...], before: str) -> _State:
        key = (counters, _context(before))
        if key not in self._states:
            self._states[key] = _State(counters, before)
        return self._states[key]

    def _move(self, state: _State, char: str) -> _State:
        if len(self._states) > _MAX_STATES:
            self._states.clear()
            self._initial = self._state((self._start,), "")
        reading = self._readable(state.counters, state.before, char)
        if reading is None:
            following = self._matched
        else:
            rune = ord(char)
            counters = {read.then for read in reading if contains(read.ranges, rune)}
            following = self._state((*sorted(counters - {self._start}), self._start), char)
        state.moves[char] = following
        return following

    def _readable(self, counters: tuple[int, ...], before: str, after: str) -> list[_Consume] | None:
        """Return the consuming instructions reachable from the counters, or None if the pattern has matched."""
        seen: set[int] = set()
        readable: list[tuple[int, int]] = []
        for counter in counters:
            if self._follow(counter, 0, before, after, seen, readable):
                return None
        return [read for counter, _ in readable if isinstance(read := self._program[counter], _Consume)]

    def _compile(self, node: Node, then: int) -> int:
        """Add the instructions of a node that continues at `then`; return its first instruction."""
        if isinstance(node, CharClass):
            return self._add(_Consume(node.ranges, then))
        if isinstance(node, Assertion):
            return self._add(_Assert(node.position, then))
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Alternation):
            return self._add(_Split(tuple(self._compile(option, then) for option in node.options)))
        return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.most == UNBOUNDED:
            begin = self._add(_Split(()))
            body = self._compile(node.part, begin)
            choice = _Split((body, then) if node.greedy else (then, body))
            self._program[begin] = choice
            if _may_be_empty(node.part):
                # A part that matched the empty string ends the loop instead of trying its other options, as in Perl.
                begin = self._add(choice)
        else:
            begin = then
            for _ in range(node.most - node.least):
                body = self._compile(node.part, begin)
                begin = self._add(_Split((body, then) if node.greedy else (then, body)))
        for _ in range(node.least):
            begin = self._compile(node.part, begin)
        return begin

    def _add(self, instruction: _Consume | _Assert | _Split) -> int:
        if len(self._program) >= _MAX_INSTRUCTIONS:
            raise PatternError("expression too large", self._text)
        self._program.append(instruction)
        return len(self._program) - 1


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Concatenation):
        return all(_may_be_empty(part) for part in node.parts)
    if isinstance(node, Alternation):
        return any(_may_be_empty(option) for option in node.options)
    if isinstance(node, Repeat):
        return node.least == 0 or _may_be_empty(node.part)
    return isinstance(node, Assertion)


def _context(before: str) -> str:
    """Return the class of the character before a position, as far as assertions distinguish it."""
    if before in ("", "\n"):
        return before
    return "w" if _is_word(before) else "-"


def _is_word(char: str) -> bool:
    return char != "" and contains(PERL["w"], ord(char))


def _holds(position: Position, before: str, after: str) -> bool:
    if position == "text start":
        return before == ""
    if position == "text end":
        return after == ""
    if position == "line start":
        return before in ("", "\n")
    if position == "line end":
        return after in ("", "\n")
    return (_is_word(before) != _is_word(after)) == (position == "word boundary")
