"""Parser of RE2 syntax: a pattern becomes a tree of nodes, or a PatternError with RE2's message."""

from dataclasses import dataclass
from typing import Literal

from kubewright.schema.patterns import charset
from kubewright.schema.patterns.charset import Ranges

Position = Literal["line start", "line end", "text start", "text end", "word boundary", "no word boundary"]
UNBOUNDED = -1
_MAX_REPEAT = 1000
_MAX_DEPTH = 200
_POSITIONS: dict[str, Position] = {
    "A": "text start",
    "z": "text end",
    "b": "word boundary",
    "B": "no word boundary",
}
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PatternError(ValueError):
    """A pattern that RE2 rejects; the message is the API server's."""

    def __init__(self, problem: str, fragment: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{fragment}`")


@dataclass(frozen=True, slots=True)
class CharClass:
    """One character of a set of characters."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Assertion:
    """An empty-width assertion, such as a word boundary."""

    position: Position


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Parts that match one after the other; without parts it matches the empty string."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Alternatives; the earlier ones are preferred."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that is repeated between `least` and `most` times."""

    part: "Node"
    least: int
    most: int
    greedy: bool


Node = CharClass | Assertion | Concatenation | Alternation | Repeat


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that `(?imsU)` sets."""

    fold: bool = False
    multiline: bool = False
    dot_all: bool = False
    ungreedy: bool = False


class Parser:
    """A recursive descent parser of one pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at: int = 0
        self.flags: Flags = Flags()
        self.names: set[str] = set()
        self.depth: int = 0

    def parse(self) -> Node:
        """Return the tree of the whole pattern."""
        node = self._choice()
        if self.at < len(self.text):
            raise PatternError("unexpected )", self.text)
        return node

    def _choice(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise PatternError("expression nests too deeply", self.text)
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self.depth -= 1
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        last_repeat = -1
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text.startswith("\\Q", self.at):
                # Single characters: a repetition that follows repeats the last one.
                parts += self._quoted_literal()
                last_repeat = -1
                continue
            start = self.at
            bounds = self._bounds()
            if bounds is None:
                node = self._atom()
                if node is not None:
                    parts.append(node)
                last_repeat = -1
                continue
            if not parts:
                raise PatternError("missing argument to repetition operator", self.text[start : self.at])
            greedy = not self._take("?")
            if last_repeat >= 0:
                raise PatternError("invalid nested repetition operator", self.text[last_repeat : self.at])
            parts[-1] = Repeat(parts[-1], *bounds, greedy != self.flags.ungreedy)
            if not _repeats_within(parts[-1], _MAX_REPEAT):
                raise PatternError("invalid repeat count", self.text[start : self.at])
            last_repeat = start
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _bounds(self) -> tuple[int, int] | None:
        """Read a repetition operator; return None if there is none, so that a brace stays a literal."""
        char = self.text[self.at]
        if char in "*+?":
            self.at += 1
            return {"*": (0, UNBOUNDED), "+": (1, UNBOUNDED), "?": (0, 1)}[char]
        if char != "{":
            return None
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if end < 0 or not _is_count(low) or (comma and high and not _is_count(high)):
            return None
        least = int(low)
        most = least if not comma else int(high) if high else UNBOUNDED
        if least > _MAX_REPEAT or most > _MAX_REPEAT or (most != UNBOUNDED and most < least):
            raise PatternError("invalid repeat count", self.text[self.at : end + 1])
        self.at = end + 1
        return least, most

    def _atom(self) -> Node | None:
        char = self.text[self.at]
        if char == "(":
            return self._group()
        if char == "[":
            return CharClass(self._class())
        if char == "\\":
            return self._escape()
        self.at += 1
        if char == ".":
            return CharClass(charset.ANY if self.flags.dot_all else charset.NOT_NEWLINE)
        if char == "^":
            return Assertion("line start" if self.flags.multiline else "text start")
        if char == "$":
            return Assertion("line end" if self.flags.multiline else "text end")
        return self._literal(ord(char))

    def _literal(self, rune: int) -> CharClass:
        ranges: Ranges = ((rune, rune),)
        return CharClass(charset.folded(ranges) if self.flags.fold else ranges)

    def _group(self) -> Node | None:
        start, outer = self.at, self.flags
        self.at += 1
        if self._take("?"):
            if self.text.startswith(("P<", "<"), self.at) and not self.text.startswith(("<=", "<!"), self.at):
                self._name(start)
            elif not self._flags(start):
                return None
        node = self._choice()
        if not self._take(")"):
            raise PatternError("missing closing )", self.text)
        self.flags = outer
        return Concatenation((node,))

    def _name(self, start: int) -> None:
        begin = self.text.index("<", self.at) + 1
        end = self.text.find(">", begin)
        if end < 0:
            raise PatternError("invalid named capture", self.text[start:])
        name = self.text[begin:end]
        if not name or not all(char == "_" or (char.isascii() and char.isalnum()) for char in name):
            raise PatternError("invalid named capture", self.text[start : end + 1])
        if name in self.names:
            raise PatternError("duplicate capture group name", name)
        self.names.add(name)
        self.at = end + 1

    def _flags(self, start: int) -> bool:
        """Read flags; return True if a group follows, as in (?i:...), and False for (?i)."""
        values = {
            "i": self.flags.fold,
            "m": self.flags.multiline,
            "s": self.flags.dot_all,
            "U": self.flags.ungreedy,
        }
        on, seen = True, False
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in values:
                values[char], seen = on, True
            elif char == "-" and on:
                on, seen = False, False
            elif char in ":)" and (seen or on):
                self.flags = Flags(values["i"], values["m"], values["s"], values["U"])
                return char == ":"
            else:
                raise PatternError("invalid or unsupported Perl syntax", self.text[start : self.at])
        raise PatternError("missing closing )", self.text)

    def _escape(self) -> Node | None:
        char = self.text[self.at + 1 : self.at + 2]
        if char in _POSITIONS:
            self.at += 2
            return Assertion(_POSITIONS[char])
        ranges = self._class_escape()
        if ranges is not None:
            return CharClass(ranges)
        return self._literal(self._rune())

    def _quoted_literal(self) -> list[Node]:
        end = self.text.find("\\E", self.at + 2)
        literal = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
        self.at = end + 2 if end >= 0 else len(self.text)
        return [self._literal(ord(char)) for char in literal]

    def _class_escape(self) -> Ranges | None:
        r"""Read \d, \W, \pL, \p{Greek} and the like; return None if the escape is a single character."""
        start, char = self.at, self.text[self.at + 1 : self.at + 2]
        if char and char.lower() in charset.PERL:
            self.at += 2
            ranges, negative = charset.PERL[char.lower()], char.isupper()
        elif char in ("p", "P"):
            self.at += 2
            name = self._unicode_name(start)
            negative = (char == "P") != name.startswith("^")
            found = charset.unicode_class(name.removeprefix("^"))
            if found is None:
                raise PatternError("invalid character class range", self.text[start : self.at])
            ranges = found
        else:
            return None
        ranges = charset.folded(ranges) if self.flags.fold else ranges
        return charset.negated(ranges) if negative else ranges

    def _unicode_name(self, start: int) -> str:
        if not self._take("{"):
            self.at += 1
            return self.text[self.at - 1 : self.at]
        end = self.text.find("}", self.at)
        if end < 0:
            raise PatternError("invalid character class range", self.text[start:])
        name = self.text[self.at : end]
        self.at = end + 1
        return name

    def _rune(self) -> int:
        """Read an escaped single character."""
        start, char = self.at, self.text[self.at + 1 : self.at + 2]
        if not char:
            raise PatternError("trailing backslash at end of expression", "")
        self.at += 2
        if char in _CONTROL:
            return ord(_CONTROL[char])
        if char == "x":
            return self._hexadecimal(start)
        following = self.text[self.at : self.at + 1]
        if char == "0" or (char in "1234567" and following and following in "01234567"):
            digits = char
            while len(digits) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
                digits += self.text[self.at]
                self.at += 1
            return int(digits, 8)
        if char.isascii() and not char.isalnum():
            return ord(char)
        raise self._bad_escape(start)

    def _hexadecimal(self, start: int) -> int:
        if self._take("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at : max(end, self.at)]
            self.at = end + 1 if end >= 0 else len(self.text)
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            if len(digits) != 2:
                raise self._bad_escape(start)
        if not digits or any(char not in "0123456789abcdefABCDEF" for char in digits):
            raise self._bad_escape(start)
        rune = int(digits, 16)
        if rune > charset.MAX_RUNE:
            raise self._bad_escape(start)
        return rune

    def _bad_escape(self, start: int) -> PatternError:
        return PatternError("invalid escape sequence", self.text[start : self.at])

    def _class(self) -> Ranges:
        start = self.at
        self.at += 1
        negative = self._take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while self.at < len(self.text) and (first or self.text[self.at] != "]"):
            first = False
            ranges += self._class_members(start)
        if not self._take("]"):
            raise PatternError("missing closing ]", self.text[start:])
        members = charset.normalized(ranges)
        members = charset.folded(members) if self.flags.fold else members
        return charset.negated(members) if negative else members

    def _class_members(self, start: int) -> Ranges:
        posix = self._posix()
        if posix is not None:
            return posix
        escaped = self._class_escape() if self.text[self.at] == "\\" else None
        return escaped if escaped is not None else self._range(start)

    def _posix(self) -> Ranges | None:
        end = self.text.find(":]", self.at + 2) if self.text.startswith("[:", self.at) else -1
        if end < 0:
            return None
        begin, name = self.at, self.text[self.at + 2 : end]
        ranges = charset.POSIX.get(name.removeprefix("^"))
        self.at = end + 2
        if ranges is None:
            raise PatternError("invalid character class range", self.text[begin : self.at])
        return charset.negated(ranges) if name.startswith("^") else ranges

    def _range(self, start: int) -> Ranges:
        begin = self.at
        low = high = self._class_rune(start)
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
            self.at += 1
            high = self._class_rune(start)
        if high < low:
            raise PatternError("invalid character class range", self.text[begin : self.at])
        return ((low, high),)

    def _class_rune(self, start: int) -> int:
        if self.at >= len(self.text):
            raise PatternError("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            return self._rune()
        self.at += 1
        return ord(self.text[self.at - 1])

    def _take(self, char: str) -> bool:
        if self.text.startswith(char, self.at):
            self.at += 1
            return True
        return False


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or not text.startswith("0"))


def _repeats_within(node: Node, limit: int) -> bool:
    """Return True if the product of nested repeat counts is within the limit."""
    if isinstance(node, Repeat):
        most = node.most if node.most != UNBOUNDED else node.least
        return most <= limit and _repeats_within(node.part, limit // most if most > 0 else limit)
    if isinstance(node, Concatenation):
        return all(_repeats_within(part, limit) for part in node.parts)
    if isinstance(node, Alternation):
        return all(_repeats_within(option, limit) for option in node.options)
    return True
