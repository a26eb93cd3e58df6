"""Source text to tokens to a tree, with the macros expanded."""

import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from kubewright.schema.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    MapEntry,
    Select,
)
from kubewright.schema.cel.errors import CompileError, Issue
from kubewright.schema.cel.values import Uint
from kubewright.schema.json_tree import INT64_MAX

TokenKind = typing.Literal["name", "quoted name", "int", "uint", "double", "string", "bytes", "sign", "end"]

RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"),
        *("let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
_UINT64_MAX = 2**64 - 1
_TOKEN = re.compile(
    r"""
    (?P<space>[\t\n\f\r ]+|//[^\n]*)
  | (?P<double>(?:\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+))
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<string>(?:[bB][rR]?|[rR][bB]?)?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*")
      |(?:[bB]?[rR][bB]?)(?:'''(?:.|\n)*?'''|\"\"\"(?:.|\n)*?\"\"\"|'[^'\n\r]*'|"[^"\n\r]*"))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
  | (?P<sign>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL
)
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {
    char: char for char in "\\'\"`?"
}
ACCUMULATOR = "@result"
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


def is_identifier(text: str) -> bool:
    """Return True if a text is an identifier and not reserved."""
    return re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", text, re.ASCII) is not None and text not in RESERVED


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of source; literals carry their value."""

    kind: TokenKind
    text: str
    offset: int
    value: Any = None


def tokens(source: str) -> tuple[list[Token], list[Issue]]:
    """Return the tokens of an expression, with one for its end, and the syntax errors."""
    found: list[Token] = []
    issues: list[Issue] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            text = _unrecognized(source, at)
            issues.append(Issue(at, f"Syntax error: token recognition error at: '{text}'"))
            at += len(text)
            continue
        if match.lastgroup != "space":
            found.append(_literal_token(source, match))
        at = match.end()
    return [*found, Token("end", "<EOF>", len(source))], issues


def _unrecognized(source: str, at: int) -> str:
    """Return the unreadable text: one character, or the rest of the line after an open quote."""
    if source[at] not in "'\"":
        return source[at]
    end = source.find("\n", at)
    return source[at : end if end >= 0 else len(source)]


def _literal_token(source: str, match: re.Match[str]) -> Token:
    text, at = match.group(), match.start()
    kind = match.lastgroup
    if kind in ("int", "uint"):
        digits = text.rstrip("uU") if kind == "uint" else text
        number = int(digits, 16) if digits.startswith("0x") else int(digits)
        if kind == "uint":
            if number > _UINT64_MAX:
                raise CompileError(source, [Issue(at, "invalid uint literal")])
            return Token("uint", text, at, Uint(number))
        # The parser checks the range, because a minus sign may come before.
        return Token("int", text, at, number)
    if kind == "double":
        return Token("double", text, at, float(text))
    if kind == "string":
        return _string_token(source, text, at)
    if kind == "quoted":
        return Token("quoted name", text[1:-1], at)
    return Token("name" if kind == "name" else "sign", text, at)


def _string_token(source: str, text: str, at: int) -> Token:
    prefix = re.match("[bBrR]*", text)
    marks = prefix.group().lower() if prefix else ""
    body = text[len(marks) :]
    quote = 3 if body[:3] in ("'''", '"""') else 1
    body = body[quote:-quote].replace("\r\n", "\n").replace("\r", "\n")
    is_bytes = "b" in marks
    try:
        if is_bytes:
            content: Any = body.encode() if "r" in marks else _unescaped_bytes(body)
            return Token("bytes", text, at, content)
        return Token("string", text, at, body if "r" in marks else _ESCAPE.sub(_unescaped, body))
    except ValueError as error:
        raise CompileError(source, [Issue(at, str(error))]) from None


def _unescaped(match: re.Match[str]) -> str:
    code = match.group()[1:]
    if code in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[code]
    if len(code) > 1:
        rune = int(code, 8) if code[0] in "0123" else int(code[1:], 16)
        if 0xD800 <= rune <= 0xDFFF or rune > 0x10FFFF:
            raise ValueError("invalid unicode code point")
        return chr(rune)
    raise ValueError("unable to unescape string, unterminated or unknown escape sequence")


def _unescaped_bytes(body: str) -> bytes:
    content = bytearray()
    at = 0
    for match in _ESCAPE.finditer(body):
        content += body[at : match.start()].encode()
        code = match.group()[1:]
        if code[:1] in ("u", "U") and len(code) > 1:
            raise ValueError("unable to unescape bytes: unicode escapes are for strings")
        content += bytes([ord(_unescaped(match))]) if len(code) > 1 else _unescaped(match).encode()
        at = match.end()
    return bytes(content + body[at:].encode())


def in_int_range(number: int) -> bool:
    """Return True if an int literal fits into 64 bits."""
    return -INT64_MAX - 1 <= number <= INT64_MAX


def expand(source: str, offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr | None:
    """Return the expansion of a macro call, or None if it is an ordinary call."""
    builder = _MACROS.get((function, len(args), target is not None))
    return builder(_Builder(source, offset, function), target, args) if builder else None


class _Builder:
    """Builds the nodes of one expansion, all at the offset of the call."""

    def __init__(self, source: str, offset: int, function: str) -> None:
        self.source = source
        self.offset = offset
        self.function = function

    def accumulator(self) -> Expr:
        return Ident(self.offset, ACCUMULATOR)

    def constant(self, value: object) -> Expr:
        return Literal(self.offset, value)

    def call(self, function: str, *args: Expr) -> Expr:
        return Call(self.offset, function, list(args))

    def variable(self, arg: Expr, problem: str) -> str:
        if not isinstance(arg, Ident):
            raise CompileError(self.source, [Issue(arg.offset, problem)])
        if arg.name in (ACCUMULATOR, "__result__"):
            raise CompileError(
                self.source, [Issue(arg.offset, "iteration variable overwrites accumulator variable")]
            )
        return arg.name

    def variables(self, args: list[Expr], two: bool) -> tuple[str, str, list[Expr]]:
        if not two:
            return self.variable(args[0], "argument must be a simple name"), "", args[1:]
        first, second = (self.variable(arg, "argument must be a simple name") for arg in args[:2])
        if first == second:
            raise CompileError(self.source, [Issue(args[1].offset, f"duplicate variable name: {first}")])
        return first, second, args[2:]

    def loop(
        self,
        target: Expr,
        names: tuple[str, str],
        init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        parts: list[Expr],
    ) -> Expr:
        return Comprehension(
            self.offset, target, *names, ACCUMULATOR, init, condition, step, result, self.function, parts
        )


_Macro = Callable[[_Builder, Expr | None, list[Expr]], Expr]


def _has(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    field = args[0]
    if not isinstance(field, Select) or field.test:
        raise CompileError(builder.source, [Issue(field.offset, "invalid argument to has() macro")])
    return Select(builder.offset, field.operand, field.field, test=True)


def _quantifier(two: bool) -> _Macro:
    def build(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
        first, second, (predicate,) = builder.variables(args, two)
        assert target is not None
        if builder.function in ("exists_one", "existsOne"):
            init, condition = builder.constant(0), builder.constant(True)
            more = builder.call("_+_", builder.accumulator(), builder.constant(1))
            step = builder.call("_?_:_", predicate, more, builder.accumulator())
            result = builder.call("_==_", builder.accumulator(), builder.constant(1))
        elif builder.function == "all":
            init, result = builder.constant(True), builder.accumulator()
            condition = builder.call("@not_strictly_false", builder.accumulator())
            step = builder.call("_&&_", builder.accumulator(), predicate)
        else:
            init, result = builder.constant(False), builder.accumulator()
            negated = builder.call("!_", builder.accumulator())
            condition = builder.call("@not_strictly_false", negated)
            step = builder.call("_||_", builder.accumulator(), predicate)
        return builder.loop(target, (first, second), init, condition, step, result, [predicate])

    return build


def _mapped(builder: _Builder, target: Expr | None, args: list[Expr], two: bool) -> Expr:
    first, second, rest = builder.variables(args, two)
    transform = rest[-1]
    step = builder.call("_+_", builder.accumulator(), CreateList(builder.offset, [transform]))
    if len(rest) == 2:
        step = builder.call("_?_:_", rest[0], step, builder.accumulator())
    assert target is not None
    init: Expr = CreateList(builder.offset, [])
    return builder.loop(
        target,
        (first, second),
        init,
        builder.constant(True),
        step,
        builder.accumulator(),
        [*rest[:-1], transform],
    )


def _map_macro(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    return _mapped(builder, target, args, two=False)


def _transform_list(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    return _mapped(builder, target, args, two=True)


def _filter_macro(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    name = builder.variable(args[0], "argument is not an identifier")
    kept = builder.call("_+_", builder.accumulator(), CreateList(builder.offset, [args[0]]))
    step = builder.call("_?_:_", args[1], kept, builder.accumulator())
    assert target is not None
    init: Expr = CreateList(builder.offset, [])
    return builder.loop(
        target, (name, ""), init, builder.constant(True), step, builder.accumulator(), [args[1]]
    )


def _transform_map(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    first, second, rest = builder.variables(args, two=True)
    key: list[Expr] = [] if builder.function == "transformMapEntry" else [Ident(builder.offset, first)]
    step = builder.call("cel.@mapInsert", builder.accumulator(), *key, rest[-1])
    if len(rest) == 2:
        step = builder.call("_?_:_", rest[0], step, builder.accumulator())
    assert target is not None
    init: Expr = CreateMap(builder.offset, [])
    return builder.loop(
        target, (first, second), init, builder.constant(True), step, builder.accumulator(), rest
    )


def _optional_map(flat: bool) -> _Macro:
    def build(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
        name = builder.variable(args[0], f"{builder.function}() variable name must be a simple identifier")
        assert target is not None
        has_value = Call(builder.offset, "hasValue", [], target)
        value = Call(builder.offset, "value", [], target)
        bound = Comprehension(
            builder.offset,
            CreateList(builder.offset, []),
            "#unused",
            "",
            name,
            value,
            builder.constant(False),
            Ident(builder.offset, name),
            args[1],
            "bind",
        )
        present: Expr = bound if flat else builder.call("optional.of", bound)
        return builder.call("_?_:_", has_value, present, builder.call("optional.none"))

    return build


def _sort_by(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    """Rewrite `list.sortBy(x, key)` as a sort by the list of keys."""
    assert target is not None
    name = builder.variable(args[0], "sortBy can only be applied with a simple variable name")
    inner = _Builder(builder.source, builder.offset, "map")
    keys = _mapped(inner, target, [args[0], args[1]], two=False)
    del name
    return Call(builder.offset, "@sortByAssociatedKeys", [keys], target)


_MACROS: dict[tuple[str, int, bool], _Macro] = {
    ("has", 1, False): _has,
    ("map", 2, True): _map_macro,
    ("map", 3, True): _map_macro,
    ("filter", 2, True): _filter_macro,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map,
    ("transformMapEntry", 4, True): _transform_map,
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
    ("sortBy", 2, True): _sort_by,
    **{(name, 2, True): _quantifier(two=False) for name in ("all", "exists", "exists_one", "existsOne")},
    **{(name, 3, True): _quantifier(two=True) for name in ("all", "exists", "existsOne")},
}


def parse(source: str, *, plain: bool = False) -> Expr:
    """Return the tree of an expression; `plain`: without macros and optional values, with quoted field names."""
    return _Parser(source, plain=plain).parse()


def called_functions(source: str) -> frozenset[str]:
    """Return the names of the functions, macros and operators of an expression; none if it cannot be parsed.

    A function of a namespace has it in its name (`lists.range`). The name of a macro with two variables ends in `/2`.
    """
    try:
        pending = [parse(source)]
    except (CompileError, RecursionError):
        return frozenset()
    found: set[str] = set()
    while pending:
        node = pending.pop()
        pending += node.children()
        if isinstance(node, Comprehension):
            found.add(f"{node.macro}/2" if node.second else node.macro)
        elif isinstance(node, Call):
            found.add(node.function)
            if isinstance(node.target, Ident):
                found.add(f"{node.target.name}.{node.function}")
    return frozenset(found)


def too_deep(source: str) -> CompileError:
    """Return the error for an expression that is nested too deeply."""
    return CompileError(source, [Issue(0, f"expression recursion limit exceeded: {_MAX_DEPTH}")])


def _balanced(function: str, terms: list[Expr], offsets: list[int]) -> Expr:
    if len(terms) == 1:
        return terms[0]
    middle = (len(terms) + 1) // 2
    left = _balanced(function, terms[:middle], offsets[: middle - 1])
    right = _balanced(function, terms[middle:], offsets[middle:])
    return Call(offsets[middle - 1], function, [left, right])


def _mismatch(token: Token, expected: str) -> Issue:
    return Issue(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {expected}")


class _Parser:
    def __init__(self, source: str, *, plain: bool) -> None:
        self._source = source
        self._plain = plain
        self._tokens, self._issues = tokens(source)
        self._at = 0
        self._depth = 0

    def parse(self) -> Expr:
        """Parse the whole expression."""
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
        """Parse operators of at least this precedence, by precedence climbing."""
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
        """Parse `a && b && c`, of any length, to a balanced tree."""
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
                optional = self._optional("[?")
                index = self._expression()
                self._expect("]")
                node = Call(offset, "_[?_]" if optional else "_[_]", [node, index])
            else:
                return node

    def _field(self, node: Expr) -> Expr:
        dot = self._next()
        optional = self._optional(".?")
        name = self._next()
        if name.kind == "quoted name":
            if self._plain:
                return Select(dot.offset, node, name.text)
            self._fail(name.offset, _QUOTED)
        if name.kind != "name" or name.text in _KEYWORDS or name.text == "in":
            self._not_a_name(dot, name, optional=optional)
        if optional:
            return Call(dot.offset, "_?._", [node, Literal(name.offset, name.text)])
        if self._is("("):
            opening = self._next()
            return self._call(opening.offset, name.text, node, self._arguments(")"))
        return Select(dot.offset, node, name.text)

    def _call(self, offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr:
        expanded = None if self._plain else expand(self._source, offset, function, target, args)
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
            if token.text == ".":
                return self._rooted(token)
        if token.kind == "name" and token.text in _KEYWORDS:
            return Literal(token.offset, _KEYWORDS[token.text])
        if token.kind != "name" or token.text == "in":
            self._at -= 1
            self._mismatched(token, _EXPECTED)
        return self._named(token, "")

    def _rooted(self, dot: Token) -> Expr:
        """Parse a name after a dot that starts an expression."""
        name = self._next()
        if name.kind != "name" or name.text in _KEYWORDS or name.text == "in":
            self._not_a_name(dot, name)
        return self._named(name, ".")

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
        entries: list[MapEntry] = []
        more = not self._take(",")
        while more and not self._is("}"):
            entries.append(self._struct_field(first=not entries))
            more = self._take(",")
        self._expect("}")
        return CreateStruct(opening.offset, name, entries)

    def _struct_field(self, *, first: bool) -> MapEntry:
        optional = self._optional()
        field = self._next()
        if field.kind == "quoted name":
            self._fail(field.offset, _QUOTED)
        if field.kind != "name" or field.text in ("true", "false", "null", "in"):
            self._mismatched(field, "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}" if first else "'}'")
        if not self._is(":"):
            self._fail(self._now.offset, f"Syntax error: missing ':' at '{self._now.text}'")
        colon = self._next()
        return MapEntry(colon.offset, Literal(field.offset, field.text), self._expression(), optional)

    def _list(self, offset: int) -> Expr:
        elements: list[Expr] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._optional():
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._take(","):
                break
        self._expect("]")
        return CreateList(offset, elements, frozenset(optional))

    def _entries(self) -> list[MapEntry]:
        entries: list[MapEntry] = []
        while not self._is("}"):
            optional = self._optional()
            key = self._expression()
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self._expression(), optional))
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

    def _optional(self, syntax: str = "?") -> bool:
        """Take the sign of an optional value."""
        offset = self._now.offset
        taken = self._take("?")
        if taken and self._plain:
            self._fail(offset, f"unsupported syntax '{syntax}'")
        return taken

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
        raise CompileError(self._source, [*self._issues, _mismatch(token, expected)])

    def _not_a_name(self, dot: Token, token: Token, *, optional: bool = False) -> NoReturn:
        if optional:
            self._issues.append(_mismatch(token, "{IDENTIFIER, ESC_IDENTIFIER}"))
            self._fail(token.offset, "unsupported ident kind")
        length = {"end": 0, "quoted name": len(token.text) + 2}.get(token.kind, len(token.text))
        text = self._source[dot.offset : token.offset + length]
        if text[1:] in _KEYWORDS:
            self._mismatched(token, "IDENTIFIER")
        self._fail(token.offset, f"Syntax error: no viable alternative at input '{text}'")

    def _fail(self, offset: int, message: str) -> NoReturn:
        raise CompileError(self._source, [*self._issues, Issue(max(offset, 0), message)])
