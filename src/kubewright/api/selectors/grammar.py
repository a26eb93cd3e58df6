"""The grammar of label selectors, with the error messages of Kubernetes' parser."""

import re
from collections.abc import Callable
from typing import Generic, TypeVar

from kubewright.api.errors import SelectorError

_WORD = r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)"
_OPERATORS = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_SPECIAL = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">", ""})


T = TypeVar("T")


def parse_terms(
    text: str, check_key: Callable[[str], None], make: Callable[[str, str, tuple[str, ...]], T]
) -> list[T]:
    """Read the requirements of a selector; `check_key` and `make` refuse where the real parser does."""
    return _Parser(text, check_key, make).terms()


class _Parser(Generic[T]):
    def __init__(
        self, text: str, check_key: Callable[[str], None], make: Callable[[str, str, tuple[str, ...]], T]
    ) -> None:
        # The empty word at the end stands for the end of the text.
        self.tokens = [*re.findall(_WORD, text.partition("\0")[0]), ""]
        self.position = 0
        self.check_key, self.make = check_key, make

    def peek(self) -> str:
        return self.tokens[min(self.position, len(self.tokens) - 1)]

    def take(self) -> str:
        word = self.peek()
        self.position += 1
        return word

    def terms(self) -> list[T]:
        found: list[T] = []
        while True:
            word = self.peek()
            if word == "":
                return found
            if word in _SPECIAL and word != "!":
                raise SelectorError(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self.term())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from error
            after = self.take()
            if after == "":
                return found
            if after != ",":
                raise SelectorError(f"found '{after}', expected: ',' or 'end of string'")
            if self.peek() in _SPECIAL and self.peek() != "!":
                raise SelectorError(f"found '{self.peek()}', expected: identifier after ','")

    def term(self) -> T:
        word = self.take()
        absent = word == "!"
        key = self.take() if absent else word
        if key in _SPECIAL:
            raise SelectorError(f"found '{key}', expected: identifier")
        self.check_key(key)
        if absent:
            return self.make(key, "!", ())
        if self.peek() in ("", ","):
            return self.make(key, "exists", ())
        sign = self.take()
        operator = _OPERATORS.get(sign)
        if operator is None:
            raise SelectorError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = self.value_set() if operator in ("in", "notin") else self.exact_value()
        return self.make(key, operator, values)

    def exact_value(self) -> tuple[str, ...]:
        if self.peek() in ("", ","):
            return ("",)
        word = self.take()
        if word in _SPECIAL:
            raise SelectorError(f"found '{word}', expected: identifier")
        return (word,)

    def value_set(self) -> tuple[str, ...]:
        word = self.take()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        first = self.peek()
        if first == ")":
            self.take()
            return ("",)
        if first in _SPECIAL and first != ",":
            raise SelectorError(f"found '{first}', expected: ',', ')' or identifier")
        values = self.values()
        self.take()
        return tuple(sorted(values))

    def values(self) -> set[str]:
        """Read up to the closing parenthesis; nothing between two commas is the empty value."""
        found: set[str] = set()
        while True:
            word = self.take()
            following = self.peek()
            if word == ",":
                if not found or following in (",", ")"):
                    found.add("")
                if following == ")":
                    return found
            elif word in _SPECIAL:
                raise SelectorError(f"found '{word}', expected: ',', or identifier")
            else:
                found.add(word)
                if following == ")":
                    return found
                if following != ",":
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
