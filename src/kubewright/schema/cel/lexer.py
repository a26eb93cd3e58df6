"""Source text to tokens."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from kubewright.schema.cel.errors import CompileError, Issue
from kubewright.schema.cel.values import Uint
from kubewright.schema.values import INT64_MAX

TokenKind = Literal["name", "quoted name", "int", "uint", "double", "string", "bytes", "sign", "end"]

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
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {
    char: char for char in "\\'\"`?"
}


def is_identifier(text: str) -> bool:
    """Tell whether an expression can name something so."""
    return re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", text, re.ASCII) is not None and text not in RESERVED


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of source; literals carry their value."""

    kind: TokenKind
    text: str
    offset: int
    value: Any = None


def tokens(source: str) -> tuple[list[Token], list[Issue]]:
    """Split an expression into tokens, of which the last marks its end, and mistakes."""
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
            found.append(_token(source, match))
        at = match.end()
    return [*found, Token("end", "<EOF>", len(source))], issues


def _unrecognized(source: str, at: int) -> str:
    """Return what cannot be read here: one character, or the rest of the line after an open quote."""
    if source[at] not in "'\"":
        return source[at]
    end = source.find("\n", at)
    return source[at : end if end >= 0 else len(source)]


def _token(source: str, match: re.Match[str]) -> Token:
    text, at = match.group(), match.start()
    kind = match.lastgroup
    if kind in ("int", "uint"):
        digits = text.rstrip("uU") if kind == "uint" else text
        number = int(digits, 16) if digits.startswith("0x") else int(digits)
        if kind == "uint":
            if number > _UINT64_MAX:
                raise CompileError(source, [Issue(at, "invalid uint literal")])
            return Token("uint", text, at, Uint(number))
        # The parser checks the range, because a minus may stand before it.
        return Token("int", text, at, number)
    if kind == "double":
        return Token("double", text, at, float(text))
    if kind == "string":
        return _string(source, text, at)
    if kind == "quoted":
        return Token("quoted name", text[1:-1], at)
    return Token("name" if kind == "name" else "sign", text, at)


def _string(source: str, text: str, at: int) -> Token:
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
    if code in _SIMPLE:
        return _SIMPLE[code]
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
    """Tell whether an int literal fits."""
    return -INT64_MAX - 1 <= number <= INT64_MAX
