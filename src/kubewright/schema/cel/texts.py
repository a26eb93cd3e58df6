"""Functions on texts: the strings extension, Kubernetes' find, and format."""

import math
import re
from collections.abc import Callable
from typing import Any

from kubewright.api import problems
from kubewright.schema.cel.conversions import plain_or_exponent
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import DYN, INT, STRING, list_of
from kubewright.schema.cel.values import Duration, Timestamp, TypeValue, Value, type_name
from kubewright.schema.patterns import Pattern, PatternError, compile_pattern

_STRINGS = list_of(STRING)
_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?(.?))", re.DOTALL)


def text_library() -> Library:
    """Return the functions on texts."""
    library = Library()
    method = library.method
    method("charAt", "string_char_at_int", (STRING, INT), STRING, _char_at)
    method("indexOf", "string_index_of_string", (STRING, STRING), INT, _index_of)
    method("indexOf", "string_index_of_string_int", (STRING, STRING, INT), INT, _index_of)
    method("lastIndexOf", "string_last_index_of_string", (STRING, STRING), INT, _last_index_of)
    method("lastIndexOf", "string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of)
    method("lowerAscii", "string_lower_ascii", (STRING,), STRING, _ascii(str.lower))
    method("upperAscii", "string_upper_ascii", (STRING,), STRING, _ascii(str.upper))
    method("replace", "string_replace_string_string", (STRING, STRING, STRING), STRING, str.replace)
    method("replace", "string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, str.replace)
    method("split", "string_split_string", (STRING, STRING), _STRINGS, _split)
    method("split", "string_split_string_int", (STRING, STRING, INT), _STRINGS, _split)
    method("substring", "string_substring_int", (STRING, INT), STRING, _substring)
    method("substring", "string_substring_int_int", (STRING, INT, INT), STRING, _substring)
    method("trim", "string_trim", (STRING,), STRING, str.strip)
    method("join", "list_join", (_STRINGS,), STRING, _join)
    method("join", "list_join_string", (_STRINGS, STRING), STRING, _join)
    method("format", "string_format", (STRING, list_of(DYN)), STRING, formatted)
    library.add("strings.quote", "strings_quote", (STRING,), STRING, problems.quoted)
    method("find", "string_find_string", (STRING, STRING), STRING, _find)
    method("findAll", "string_find_all_string", (STRING, STRING), _STRINGS, _find_all)
    method("findAll", "string_find_all_string_int", (STRING, STRING, INT), _STRINGS, _find_all)
    return library


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if part == "":
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if part == "":
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(char) if char.isascii() else char for char in text)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        pieces = list(text)
        if limit > 0 and len(pieces) > limit:
            return [*pieces[: limit - 1], "".join(pieces[limit - 1 :])]
        return pieces
    return text.split(separator, -1 if limit < 0 else limit - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise EvaluationError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    return text[start:end]


def _join(listed: list[Any], separator: str = "") -> str:
    for item in listed:
        if not isinstance(item, str):
            raise EvaluationError(f"join: invalid input: {item}")
    return separator.join(listed)


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    span = _pattern(pattern).find(text)
    return text[span[0] : span[1]] if span else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _pattern(pattern).find_all(text, limit)


def formatted(template: str, args: list[Any]) -> str:
    """Fill a template as `format` does."""
    pieces: list[str] = []
    at = used = 0
    for match in _CLAUSE.finditer(template):
        pieces.append(template[at : match.start()])
        at = match.end()
        if match.group() == "%%":
            pieces.append("%")
            continue
        verb = match[2]
        if not verb:
            raise EvaluationError("unexpected end of string")
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        pieces.append(_clause(verb, match[1], args[used]))
        used += 1
    pieces.append(template[at:])
    return "".join(pieces)


def template_verbs(template: str) -> list[str]:
    """Return the verbs of a template; raises where one is none."""
    verbs = [match[2] for match in _CLAUSE.finditer(template) if match.group() != "%%"]
    for verb in verbs:
        if not verb:
            raise EvaluationError("unexpected end of string")
        if verb not in "sdfebxXo":
            raise _unknown_verb(verb)
    return verbs


def _unknown_verb(verb: str) -> EvaluationError:
    return EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')


def _clause(verb: str, precision: str | None, value: Value) -> str:
    if verb == "s":
        return shown(value)
    if verb == "d":
        if isinstance(value, int) and not isinstance(value, bool):
            return str(int(value))
        raise _unfit("decimal clause can only be used on integers", value)
    if verb in ("f", "e"):
        if not isinstance(value, int | float) or isinstance(value, bool):
            what = "fixed-point" if verb == "f" else "scientific"
            raise _unfit(f"{what} clause can only be used on doubles", value)
        text = f"{float(value):.{precision or 6}{verb}}"
        return text if verb == "f" else _typeset(text)
    if verb == "b" and isinstance(value, int):
        return format(int(value), "b")
    if verb == "o" and isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), "o")
    if verb in ("x", "X"):
        return _hexadecimal(verb, value)
    if verb in ("b", "o"):
        what = (
            "only integers and bools can be formatted as binary"
            if verb == "b"
            else "octal clause can only be used on integers"
        )
        raise _unfit(what, value)
    raise _unknown_verb(verb)


def _typeset(text: str) -> str:
    """Write an exponent as the server does, with a multiplication sign and raised digits."""
    mantissa, _, exponent = text.partition("e")
    raised = exponent.removeprefix("+").translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}\u202f×\u202f10{raised}"


def _unfit(problem: str, value: Value) -> EvaluationError:
    return EvaluationError(f"error during formatting: {problem}, was given {type_name(value)}")


def _hexadecimal(verb: str, value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), verb)
    raw = value.encode() if isinstance(value, str) else value
    if not isinstance(raw, bytes):
        raise _unfit("only integers, byte buffers, and strings can be formatted as hex", value)
    return raw.hex() if verb == "x" else raw.hex().upper()


def shown(value: Value, *, nested: bool = False) -> str:
    """Write any value as `%s` does."""
    if isinstance(value, str):
        return problems.quoted(value) if nested else value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _shown_double(value, nested)
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        return f"b{problems.quoted(text)}" if nested else text
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")' if nested else str(value)
    if isinstance(value, Duration):
        return f'duration("{value}")' if nested else str(value)
    if isinstance(value, list):
        return "[" + ", ".join(shown(item, nested=True) for item in value) + "]"
    if isinstance(value, dict):
        entries = sorted(
            f"{shown(key, nested=True)}:{shown(item, nested=True)}" for key, item in value.items()
        )
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, TypeValue):
        return value.name
    raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")


def _shown_double(value: float, nested: bool) -> str:
    if math.isnan(value):
        return '"NaN"' if nested else "NaN"
    if math.isinf(value):
        text = "+Infinity" if value > 0 else "-Infinity"
        return f'"{text}"' if nested else text
    return f"{value:.6f}" if nested else plain_or_exponent(value)
