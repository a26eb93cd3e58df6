"""Values and conditions in CEL, the results of translating Python expressions.

A function is called with typed objects, a policy with JSON. A field that is absent in JSON has the default of its class in
Python, or is None. So the value of each field includes the conditions under which the JSON has it (`exists`), and the
value otherwise. Invariant: a CEL text never fails if it is evaluated under the facts that it was created with.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, Literal, cast, get_args, get_origin

import msgspec

from kubewright.api import Field, Object, field_types
from kubewright.api.annotations import members
from kubewright.api.model import is_builtin
from kubewright.schema.json_tree import Schema, additional, properties

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
MOST_CHARACTERS = 3 * 1024 * 1024
"""Maximum length of a string or list: the API server refuses larger requests."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HAS = re.compile(r"has\([\w.]+\)")
_SIMPLE_COMPARISON = re.compile(r"([\w.]+) (==|!=|<=|>=|<|>) ([\w.]+|'[^'\\]*')")
_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_KEYWORDS = frozenset({"false", "in", "null", "true"})

JsonPath = tuple[str, ...]
KnownFacts = frozenset[str]
ValueShapeName = Literal["bool", "int", "str", "enum", "operation", "list", "map", "struct", "none", "other"]


class Untranslatable(Exception):
    """A part of a function cannot be translated to CEL with the same meaning."""

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@dataclass(frozen=True, slots=True)
class ValueShape:
    """The type of a value, as detailed as translation needs it."""

    name: ValueShapeName
    cls: Any = None
    element: "ValueShape | None" = None
    optional: bool = False
    bounds: tuple[int, int] = INT64

    @property
    def shown(self) -> str:
        """Return the name of the type for messages."""
        return getattr(self.cls, "__name__", str(self.cls)) if self.cls is not None else self.name


BOOL, STR, NONE, OPERATION = (
    ValueShape("bool"),
    ValueShape("str"),
    ValueShape("none"),
    ValueShape("operation"),
)


@dataclass(frozen=True, slots=True)
class CelValue:
    """A value: its CEL, valid while the conditions of `present` hold; otherwise the value is None in Python."""

    cel: str
    shape: ValueShape
    present: tuple[str, ...] = ()
    exists: tuple[str, ...] = ()
    """Conditions under which the JSON has it; otherwise the value is `default`, which is not None."""
    default: Any = None
    path: JsonPath = ()
    constant: Any = msgspec.UNSET
    schema: Schema | None = None
    """The schema by which the API server validates it and sets defaults, if it is known."""

    def may_be_none(self, facts: KnownFacts) -> tuple[str, ...]:
        """Return the conditions of `present` that are not known to hold."""
        return tuple(each for each in self.present if each not in facts)


@dataclass(frozen=True, slots=True)
class CelCondition:
    """A condition, with the facts that follow if it is true and if it is false."""

    cel: str
    yes: KnownFacts = field(default_factory=frozenset[str])
    no: KnownFacts = field(default_factory=frozenset[str])


def negated(condition: CelCondition) -> CelCondition:
    """Return the opposite of a condition."""
    return CelCondition(negation(condition.cel), condition.no, condition.yes)


def negation(cel: str) -> str:
    """Return the opposite of a condition's text."""
    if cel in ("true", "false"):
        return "false" if cel == "true" else "true"
    if found := _SIMPLE_COMPARISON.fullmatch(cel):
        return f"{found[1]} {_OPPOSITES[found[2]]} {found[3]}"
    if cel.startswith("!") and (_HAS.fullmatch(cel[1:]) or _is_one_group(cel[1:])):
        return cel[1:]
    return f"!{cel if _HAS.fullmatch(cel) else grouped(cel)}"


def conjunction(texts: Sequence[str]) -> str:
    """Join conditions with `&&`."""
    kept = [text for text in dict.fromkeys(texts) if text != "true"]
    if "false" in kept:
        return "false"
    return _joined(kept, " && ") if kept else "true"


def disjunction(texts: Sequence[str]) -> str:
    """Join conditions with `||`."""
    kept = [text for text in dict.fromkeys(texts) if text != "false"]
    if "true" in kept:
        return "true"
    return _joined(kept, " || ") if kept else "false"


def _joined(texts: Sequence[str], operator: str) -> str:
    return texts[0] if len(texts) == 1 else f"({operator.join(texts)})"


def grouped(cel: str) -> str:
    """Return a text in parentheses, unless it has some."""
    return cel if _is_one_group(cel) else f"({cel})"


def bare(cel: str) -> str:
    """Return a text without the parentheses around all of it."""
    return cel[1:-1] if _is_one_group(cel) else cel


def _is_one_group(cel: str) -> bool:
    if not (cel.startswith("(") and cel.endswith(")")):
        return False
    depth, quoted, position = 0, False, 0
    while position < len(cel):
        sign = cel[position]
        if quoted:
            position += sign == "\\"
            quoted = sign != "'"
        elif sign == "'":
            quoted = True
        else:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth == 0 and position < len(cel) - 1:
                return False
        position += 1
    return True


def text_literal(text: str) -> str:
    """Return text as a literal of CEL."""
    if any(0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        raise Untranslatable(f"{text!r} is not valid Unicode")
    inner = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def literal(value: Any) -> str:
    """Return a constant as CEL; raise Untranslatable if CEL has no such literal."""
    match value:
        case bool():
            return "true" if value else "false"
        case Enum():
            return literal(value.value)
        case int():
            if not INT64[0] <= value <= INT64[1]:
                raise Untranslatable(f"{value} does not fit into 64 bits")
            return str(value) if value >= 0 else f"({value})"
        case str():
            return text_literal(value)
        case list() | tuple():
            return f"[{', '.join(map(literal, cast('list[Any]', value)))}]"
        case dict():
            entries = cast("dict[Any, Any]", value).items()
            return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in entries)}}}"
        case _:
            raise Untranslatable(f"a constant of type {type(value).__name__} is not translated")


def shape_of(hint: Any, *, in_builtin: bool = False) -> ValueShape:
    """Return the shape of a field's type."""
    fields: list[Field] = []
    while get_origin(hint) is Annotated:
        fields += [extra for extra in hint.__metadata__ if isinstance(extra, Field)]
        hint = hint.__origin__
    parts = list(members(hint))
    kinds = [part for part in parts if part not in (None, type(None))]
    if len(kinds) != 1:
        return ValueShape("other", hint)
    return replace(_one_shape(kinds[0], fields, in_builtin), optional=len(kinds) < len(parts))


def _one_shape(kind: Any, fields: Sequence[Field], in_builtin: bool) -> ValueShape:
    origin = get_origin(kind)
    if origin is Annotated:
        return shape_of(kind, in_builtin=in_builtin)
    if kind is bool:
        return BOOL
    if kind is int:
        return ValueShape("int", bounds=_bounds(fields, in_builtin))
    if kind is str:
        return STR
    if origin is Literal:
        given: set[type] = {type(each) for each in get_args(kind)}
        return STR if given == {str} else ValueShape("int") if given == {int} else ValueShape("other", kind)
    if origin is list:
        element = shape_of(get_args(kind)[0], in_builtin=in_builtin)
        return ValueShape("other", kind) if element.optional else ValueShape("list", kind, element)
    if origin is dict:
        element = shape_of(get_args(kind)[1], in_builtin=in_builtin)
        fits = get_args(kind)[0] is str and not element.optional
        return ValueShape("map", kind, element) if fits else ValueShape("other", kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ValueShape("enum", kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not hasattr(kind, "__post_init__"):
        return ValueShape("other" if issubclass(kind, Object) else "struct", kind)
    return ValueShape("other", kind)


def _bounds(fields: Sequence[Field], in_builtin: bool) -> tuple[int, int]:
    """Return the bounds of the numbers that the API server accepts: of the field and of its format."""
    wide = in_builtin or any(each.int64 or each.format for each in fields)
    low, high = INT64 if wide else INT32
    for each in fields:
        if each.ge is not None:
            low = max(low, math.ceil(each.ge))
        if each.gt is not None:
            low = max(low, math.floor(each.gt) + 1)
        if each.le is not None:
            high = min(high, math.floor(each.le))
        if each.lt is not None:
            high = min(high, math.ceil(each.lt) - 1)
    return low, high


def member(base: str, wire: str) -> tuple[str, str]:
    """Return the CEL of a field of a JSON object, and the condition under which it is there."""
    if not _PLAIN_NAME.fullmatch(wire) or wire in _KEYWORDS:
        raise Untranslatable(f"the field {wire!r} has a name that CEL cannot select")
    return f"{base}.{wire}", f"has({base}.{wire})"


def field_of(base: CelValue, name: str, facts: KnownFacts, shown: str) -> CelValue:
    """Return the value of a struct's field."""
    cls = cast("type[msgspec.Struct]", base.shape.cls)
    info = next((each for each in msgspec.structs.fields(cls) if each.name == name), None)
    if info is None:
        raise Untranslatable(f"{cls.__name__}.{name} is not a field")
    if base.may_be_none(facts):
        raise Untranslatable(f"{shown} may be None here: compare it with None first")
    hint = field_types(cls)[name]
    options = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Field)), Field())
    shape = shape_of(hint, in_builtin=is_builtin(cls))
    cel, there = member(base.cel, info.encode_name)
    above = tuple(each for each in base.exists if each not in facts)
    schema = properties(base.schema).get(info.encode_name) if base.schema is not None else None
    # The API server sets the defaults of the schema before any admission.
    certain = info.required or options.optional is False or (schema is not None and "default" in schema)
    certain = certain or (name == "metadata" and issubclass(cls, Object))
    exists = (*above, *(() if certain else (there,)), *((f"{cel} != null",) if options.nullable else ()))
    default = _default(info, base if above else None, f"{shown}.{name}")
    path = (*base.path, info.encode_name) if base.path else ()
    made = CelValue(cel, shape, path=path, schema=schema)
    if default is None or (default is msgspec.NODEFAULT and options.nullable):
        return replace(made, present=exists)
    if options.nullable:
        raise Untranslatable(f"{shown}.{name} may be null and has a default")
    if not exists or shape.name == "other":
        return made
    made = replace(made, exists=exists, default=default)
    if shape.name == "struct":
        return made
    return replace(made, cel=f"({conjunction(exists)} ? {cel} : {literal(default)})")


def _default(info: msgspec.structs.FieldInfo, base: CelValue | None, shown: str) -> Any:
    """Return the value of an absent field; `base` is given if the struct itself may be absent."""
    own = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
    if base is None:
        return own
    outer: Any = getattr(base.default, info.name)
    if own is not msgspec.NODEFAULT and own != outer:
        raise Untranslatable(f"{shown} has two defaults, {own!r} and {outer!r}")
    return outer


def entry_of(base: CelValue, key: str) -> CelValue:
    """Return the value of a map's key; it is None in Python if the map does not have it."""
    assert base.shape.element is not None
    name = text_literal(key)
    path = (*base.path, key) if base.path else ()
    schema = additional(base.schema) if base.schema is not None else None
    return CelValue(
        f"{base.cel}[{name}]", base.shape.element, (f"({name} in {base.cel})",), path=path, schema=schema
    )
