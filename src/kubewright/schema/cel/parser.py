"""Tokens to a tree, by precedence."""

from typing import NoReturn

from kubewright.schema.cel.ast import (
    Call,
    CreateList,
    CreateMap,
    CreateStruct,
    Entry,
    Expr,
    Ident,
    Literal,
    Select,
)
from kubewright.schema.cel.errors import CompileError, Issue
from kubewright.schema.cel.lexer import RESERVED, Token, in_int_range, tokens
from kubewright.schema.cel.macros import expand

_MAX_DEPTH = 250
_PRECEDENCE = {
    "||": 0,
    "&&": 1,
    "+": 3,
    "-": 3,
    "*": 4,
    "/": 4,
    "%": 4,
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 2),
}
_OPERATORS = {
    sign: f"_{sign}_" for sign in ["||", "&&", "<", "<=", ">=", ">", "==", "!=", "+", "-", "*", "/", "%"]
} | {"in": "@in"}
_KEYWORDS = {"true": True, "false": False, "null": None}
_QUOTED = "unsupported syntax: '`'"
_EXPECTED = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def parse(source: str) -> Expr:
    """Return the tree of an expression."""
    return _Parser(source).parse()


def too_deep(source: str) -> CompileError:
    """Return the error for an expression that nests deeper than it may."""
    return CompileError(source, [Issue(0, f"expression recursion limit exceeded: {_MAX_DEPTH}")])


def _balanced(function: str, terms: list[Expr], offsets: list[int]) -> Expr:
    if len(terms) == 1:
        return terms[0]
    middle = (len(terms) + 1) // 2
    left = _balanced(function, terms[:middle], offsets[: middle - 1])
    right = _balanced(function, terms[middle:], offsets[middle:])
    return Call(offsets[middle - 1], function, [left, right])


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens, self._issues = tokens(source)
        self._at = 0
        self._depth = 0

    def parse(self) -> Expr:
        """Read the whole expression."""
        node = self._expression()
        if self._now.kind != "end":
            self._fail(self._now.offset, f"Syntax error: extraneous input '{self._now.text}' expecting <EOF>")
        if self._issues:
            raise CompileError(self._source, self._issues)
        return node

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _expression(self) -> Expr:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise too_deep(self._source)
        node = self._binary()
        if self._is("?"):
            offset = self._next().offset
            then = self._binary()
            self._expect(":")
            node = Call(offset, "_?_:_", [node, then, self._expression()])
        self._depth -= 1
        return node

    def _binary(self, least: int = 0) -> Expr:
        """Read operators of at least this precedence, by climbing."""
        node = self._unary()
        while (level := self._precedence()) >= least:
            sign = self._now
            if sign.text in ("&&", "||"):
                node = self._chain(node, level)
            else:
                self._next()
                node = Call(sign.offset, _OPERATORS[sign.text], [node, self._binary(level + 1)])
        return node

    def _precedence(self) -> int:
        token = self._now
        return _PRECEDENCE.get(token.text, -1) if token.kind in ("sign", "name") else -1

    def _chain(self, first: Expr, level: int) -> Expr:
        """Read `a && b && c`, of any length, as a balanced tree."""
        sign = self._now.text
        terms, offsets = [first], list[int]()
        while self._is(sign):
            offsets.append(self._next().offset)
            terms.append(self._binary(level + 1))
        return _balanced(_OPERATORS[sign], terms, offsets)

    def _unary(self) -> Expr:
        sign, count = self._now, 0
        if sign.kind != "sign" or sign.text not in ("!", "-"):
            return self._member(self._primary())
        while self._is(sign.text):
            self._next()
            count += 1
        token = self._now
        if sign.text == "-" and count == 1 and token.kind in ("int", "double"):
            self._next()
            if token.kind == "int" and not in_int_range(-token.value):
                self._fail(sign.offset, "invalid int literal")
            return self._member(Literal(sign.offset, -token.value))
        operand = self._member(self._primary())
        if count % 2 == 0:
            return operand
        return Call(sign.offset, "!_" if sign.text == "!" else "-_", [operand])

    def _member(self, node: Expr) -> Expr:
        while True:
            if self._is("."):
                node = self._field(node)
            elif self._is("["):
                offset = self._next().offset
                optional = self._take("?")
                index = self._expression()
                self._expect("]")
                node = Call(offset, "_[?_]" if optional else "_[_]", [node, index])
            else:
                return node

    def _field(self, node: Expr) -> Expr:
        dot = self._next()
        optional = self._take("?")
        name = self._next()
        if name.kind == "quoted name":
            self._fail(name.offset, _QUOTED)
        if name.kind != "name" or name.text in ("true", "false", "null", "in"):
            self._fail(name.offset, f"Syntax error: no viable alternative at input '.{name.text}'")
        if optional:
            return Call(dot.offset, "_?._", [node, Literal(name.offset, name.text)])
        if self._is("("):
            opening = self._next()
            return self._call(opening.offset, name.text, node, self._arguments(")"))
        return Select(dot.offset, node, name.text)

    def _call(self, offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr:
        expanded = expand(self._source, offset, function, target, args)
        return expanded if expanded is not None else Call(offset, function, args, target)

    def _primary(self) -> Expr:
        token = self._next()
        if token.kind in ("int", "uint", "double", "string", "bytes"):
            if token.kind == "int" and not in_int_range(token.value):
                self._fail(token.offset, "invalid int literal")
            return Literal(token.offset, token.value)
        if token.kind == "sign":
            if token.text == "(":
                node = self._expression()
                self._expect(")")
                return node
            if token.text == "[":
                return self._list(token.offset)
            if token.text == "{":
                return CreateMap(token.offset, self._entries())
            if token.text == "." and self._now.kind == "name":
                return self._named(self._next(), ".")
        if token.kind == "name" and token.text in _KEYWORDS:
            return Literal(token.offset, _KEYWORDS[token.text])
        if token.kind != "name" or token.text == "in":
            self._at -= 1
            self._mismatched(token, _EXPECTED)
        return self._named(token, "")

    def _named(self, token: Token, dot: str) -> Expr:
        if token.text in RESERVED:
            self._fail(token.offset, f"reserved identifier: {token.text}")
        if self._is("("):
            opening = self._next()
            return self._call(opening.offset, dot + token.text, None, self._arguments(")"))
        if self._is_struct():
            return self._struct(dot + token.text)
        return Ident(token.offset, dot + token.text)

    def _is_struct(self) -> bool:
        """Look ahead for `.name.name{`, which makes the names a type."""
        at = self._at
        while self._tokens[at].text == "." and self._tokens[at + 1].kind == "name":
            at += 2
        return self._tokens[at].text == "{" and self._tokens[at].kind == "sign"

    def _struct(self, name: str) -> Expr:
        while self._take("."):
            name += f".{self._next().text}"
        opening = self._expect("{")
        entries: list[Entry] = []
        more = not self._take(",")
        while more and not self._is("}"):
            entries.append(self._struct_field(first=not entries))
            more = self._take(",")
        self._expect("}")
        return CreateStruct(opening.offset, name, entries)

    def _struct_field(self, *, first: bool) -> Entry:
        optional = self._take("?")
        field = self._next()
        if field.kind == "quoted name":
            self._fail(field.offset, _QUOTED)
        if field.kind != "name" or field.text in ("true", "false", "null", "in"):
            self._mismatched(field, "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}" if first else "'}'")
        if not self._is(":"):
            self._fail(self._now.offset, f"Syntax error: missing ':' at '{self._now.text}'")
        colon = self._next()
        return Entry(colon.offset, Literal(field.offset, field.text), self._expression(), optional)

    def _list(self, offset: int) -> Expr:
        elements: list[Expr] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._take("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._take(","):
                break
        self._expect("]")
        return CreateList(offset, elements, frozenset(optional))

    def _entries(self) -> list[Entry]:
        entries: list[Entry] = []
        while not self._is("}"):
            optional = self._take("?")
            key = self._expression()
            colon = self._expect(":")
            entries.append(Entry(colon.offset, key, self._expression(), optional))
            if not self._take(","):
                break
        self._expect("}")
        return entries

    def _arguments(self, closing: str) -> list[Expr]:
        args: list[Expr] = []
        if not self._is(closing):
            args.append(self._expression())
            while self._take(","):
                args.append(self._expression())
        self._expect(closing)
        return args

    def _is(self, sign: str) -> bool:
        return self._now.kind == "sign" and self._now.text == sign

    def _take(self, sign: str) -> bool:
        if self._is(sign):
            self._at += 1
            return True
        return False

    def _next(self) -> Token:
        token = self._now
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, sign: str) -> Token:
        if not self._is(sign):
            if self._now.kind == "end":
                self._fail(self._now.offset, f"Syntax error: missing '{sign}' at '<EOF>'")
            self._mismatched(self._now, f"'{sign}'")
        return self._next()

    def _mismatched(self, token: Token, expected: str) -> NoReturn:
        self._fail(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {expected}")

    def _fail(self, offset: int, message: str) -> NoReturn:
        raise CompileError(self._source, [*self._issues, Issue(max(offset, 0), message)])
