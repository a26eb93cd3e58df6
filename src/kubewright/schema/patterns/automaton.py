"""Matching in time linear in the text: a nondeterministic program, run as a lazily built automaton."""

from dataclasses import dataclass, field

from kubewright.schema.patterns.charset import PERL, Ranges, contains
from kubewright.schema.patterns.syntax import (
    UNBOUNDED,
    At,
    Chars,
    Choice,
    Node,
    PatternError,
    Position,
    Repeat,
    Sequence,
)

_MAX_INSTRUCTIONS = 100_000
_MAX_STATES = 4_000
_MATCH = -1


@dataclass(frozen=True, slots=True)
class _Read:
    """Consume one character of a set."""

    ranges: Ranges
    then: int


@dataclass(frozen=True, slots=True)
class _When:
    """Go on where a condition on the position holds."""

    position: Position
    then: int


@dataclass(frozen=True, slots=True)
class _Fork:
    """Go on in several places, the earlier preferred."""

    targets: tuple[int, ...]


@dataclass(slots=True, eq=False)
class _State:
    """A set of places in the program, before a character whose predecessor is known."""

    places: tuple[int, ...]
    before: str
    moves: dict[str, "_State"] = field(default_factory=dict[str, "_State"])
    ends_in_match: bool | None = None


class Automaton:
    """A compiled pattern that never backtracks."""

    def __init__(self, node: Node, text: str) -> None:
        self._text = text
        self._program: list[_Read | _When | _Fork] = []
        self._start = self._compile(node, _MATCH)
        self._matched = _State((), "")
        self._states: dict[tuple[tuple[int, ...], str], _State] = {}
        self._initial = self._state((self._start,), "")

    def search(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in the text."""
        state = self._initial
        for char in text:
            following = state.moves.get(char)
            if following is None:
                following = self._move(state, char)
            if following is self._matched:
                return True
            state = following
        if state.ends_in_match is None:
            state.ends_in_match = self._readable(state.places, state.before, "") is None
        return state.ends_in_match

    def find(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        """Return the span of the leftmost match from `begin` on, as Perl would prefer it."""
        threads: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for at in range(begin, len(text) + 1):
            before, after = text[at - 1] if at else "", text[at : at + 1]
            if best is None:
                threads.append((self._start, at))
            readable: list[tuple[int, int]] = []
            seen: set[int] = set()
            for place, origin in threads:
                if self._follow(place, origin, before, after, seen, readable):
                    best = (origin, at)
                    break
            threads = []
            for place, origin in readable:
                instruction = self._program[place]
                if isinstance(instruction, _Read) and after and contains(instruction.ranges, ord(after)):
                    threads.append((instruction.then, origin))
            if best is not None and not threads:
                break
        return best

    def _follow(
        self,
        place: int,
        origin: int,
        before: str,
        after: str,
        seen: set[int],
        readable: list[tuple[int, int]],
    ) -> bool:
        """Add the reading places reachable from one place, in order; stop and tell where a match is among them."""
        pending = [place]
        while pending:
            current = pending.pop()
            if current == _MATCH:
                return True
            if current in seen:
                continue
            seen.add(current)
            instruction = self._program[current]
            if isinstance(instruction, _Read):
                readable.append((current, origin))
            elif isinstance(instruction, _Fork):
                pending.extend(reversed(instruction.targets))
            elif _holds(instruction.position, before, after):
                pending.append(instruction.then)
        return False

    def _state(self, places: tuple[int, ...], before: str) -> _State:
        key = (places, _context(before))
        if key not in self._states:
            self._states[key] = _State(places, before)
        return self._states[key]

    def _move(self, state: _State, char: str) -> _State:
        if len(self._states) > _MAX_STATES:
            self._states.clear()
            self._initial = self._state((self._start,), "")
        reading = self._readable(state.places, state.before, char)
        if reading is None:
            following = self._matched
        else:
            rune = ord(char)
            places = {read.then for read in reading if contains(read.ranges, rune)}
            following = self._state((*sorted(places - {self._start}), self._start), char)
        state.moves[char] = following
        return following

    def _readable(self, places: tuple[int, ...], before: str, after: str) -> list[_Read] | None:
        """Return what can be read from here, or None where the pattern has matched."""
        seen: set[int] = set()
        readable: list[tuple[int, int]] = []
        for place in places:
            if self._follow(place, 0, before, after, seen, readable):
                return None
        return [read for place, _ in readable if isinstance(read := self._program[place], _Read)]

    def _compile(self, node: Node, then: int) -> int:
        """Add the instructions of a part that goes on at `then`; return where it begins."""
        if isinstance(node, Chars):
            return self._add(_Read(node.ranges, then))
        if isinstance(node, At):
            return self._add(_When(node.position, then))
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Choice):
            return self._add(_Fork(tuple(self._compile(option, then) for option in node.options)))
        return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.most == UNBOUNDED:
            begin = self._add(_Fork(()))
            body = self._compile(node.part, begin)
            choice = _Fork((body, then) if node.greedy else (then, body))
            self._program[begin] = choice
            if _may_be_empty(node.part):
                # A part that matched nothing ends the loop instead of trying its other options, as in Perl.
                begin = self._add(choice)
        else:
            begin = then
            for _ in range(node.most - node.least):
                body = self._compile(node.part, begin)
                begin = self._add(_Fork((body, then) if node.greedy else (then, body)))
        for _ in range(node.least):
            begin = self._compile(node.part, begin)
        return begin

    def _add(self, instruction: _Read | _When | _Fork) -> int:
        if len(self._program) >= _MAX_INSTRUCTIONS:
            raise PatternError("expression too large", self._text)
        self._program.append(instruction)
        return len(self._program) - 1


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Sequence):
        return all(_may_be_empty(part) for part in node.parts)
    if isinstance(node, Choice):
        return any(_may_be_empty(option) for option in node.options)
    if isinstance(node, Repeat):
        return node.least == 0 or _may_be_empty(node.part)
    return isinstance(node, At)


def _context(before: str) -> str:
    """Reduce the character before a position to what the conditions can see of it."""
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
