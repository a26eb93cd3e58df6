"""Types of the expression language: of values, of functions, and of the values that a schema allows."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.parser import RESERVED
from kubewright.schema.cel.values import (
    CelDuration,
    MapList,
    OpaqueValue,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    parse_duration,
    parse_timestamp,
)
from kubewright.schema.json_tree import Json, Schema, additional, items, properties

TypeKind = Literal[
    "dyn", "error", "null", "bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration",
    "list", "map", "struct", "opaque", "type", "param",
]  # fmt: skip
_CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (Uint,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "timestamp": (Timestamp,),
    "duration": (CelDuration,),
    "list": (list,),
    "map": (dict,),
    "null": (type(None),),
    "type": (TypeValue,),
    "struct": (dict,),
}
MAX_REQUEST_SIZE = 3 * 1024 * 1024
_MIN_STRING, _MIN_BOOL, _MIN_NUMBER = 2, 4, 1
_TIMES = {"date": ("date", 12, 12), "date-time": ("timestamp", 21, 32)}
_STRING_SCHEMA: Schema = {"type": "string"}
_META: Schema = {"type": "object", "properties": {"name": _STRING_SCHEMA, "generateName": _STRING_SCHEMA}}


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `name` is set for structs, opaque types and type parameters."""

    kind: TypeKind
    name: str = ""
    params: tuple["Type", ...] = ()
    nullable: bool = False

    def __str__(self) -> str:
        if self.kind == "error":
            return "!error!"
        if self.nullable:
            return f"wrapper({self.kind})"
        name = self.name or self.kind
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    def same(self, other: "Type") -> bool:
        """Return True if the types are equal, apart from wrappers that can be null."""
        shape, others = (self.kind, self.name, len(self.params)), (other.kind, other.name, len(other.params))
        return shape == others and all(map(Type.same, self.params, other.params))


DYN = Type("dyn")
ERROR = Type("error")
NULL = Type("null")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
TYPE = Type("type")


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type("list", "", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", "", (key, value))


def optional_of(content: Type) -> Type:
    """Return the type of values that may be absent."""
    return Type("opaque", "optional_type", (content,))


def type_of(instance: Type) -> Type:
    """Return the type of a type."""
    return Type("type", "", (instance,))


def struct(name: str) -> Type:
    """Return an object type; its fields are declared separately."""
    return Type("struct", name)


def opaque(name: str) -> Type:
    """Return a type that only functions can use."""
    return Type("opaque", name)


def param(name: str) -> Type:
    """Return a type parameter."""
    return Type("param", name)


def wrapper(content: Type) -> Type:
    """Return the type of a message that wraps a plain value, or null."""
    return Type(content.kind, nullable=True)


def is_optional(candidate: Type) -> bool:
    """Return True if a type is that of optional values."""
    return candidate.kind == "opaque" and candidate.name == "optional_type"


@dataclass(slots=True)
class DeclaredType:
    """The type that a schema declares: fields, maximum number of elements, minimum serialized size."""

    type: Type
    max_elements: int = 0
    min_size: int = 1
    fields: dict[str, "DeclaredType"] = field(default_factory=dict[str, "DeclaredType"])
    names: dict[str, str] = field(default_factory=dict[str, str])
    key: "DeclaredType | None" = None
    element: "DeclaredType | None" = None
    conversion: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()


class TypeMapping:
    """The types that type parameters stand for while an expression is checked."""

    def __init__(self, known: dict[Type, Type] | None = None) -> None:
        self.known: dict[Type, Type] = dict(known or {})

    def assignable(self, left: Type, right: Type) -> bool:
        """Return True if one type can stand for the other; parameters that this determines are stored."""
        trial = TypeMapping(self.known)
        if not trial.matches(left, right):
            return False
        self.known = trial.known
        return True

    def assignable_all(self, left: list[Type], right: list[Type]) -> bool:
        """Do the same for two lists of types."""
        trial = TypeMapping(self.known)
        if len(left) != len(right) or not all(map(trial.matches, left, right)):
            return False
        self.known = trial.known
        return True

    def matches(self, left: Type, right: Type) -> bool:
        """Compare two types; the mapping is extended even if they differ."""
        if right.kind == "param":
            valid, known = self._substitution(left, right)
            if valid or known:
                return valid
        if left.kind == "param":
            return self._substitution(right, left)[0]
        if {left.kind, right.kind} & {"dyn", "error"}:
            return True
        if left.kind == "null" or right.kind == "null":
            return _nullable(right if left.kind == "null" else left)
        if left.kind == "type":
            return right.kind == "type"
        if left.kind in ("opaque", "list", "map"):
            same_shape = (left.kind, left.name, len(left.params)) == (
                right.kind,
                right.name,
                len(right.params),
            )
            return same_shape and all(map(self.matches, left.params, right.params))
        return left.same(right)

    def substitute(self, candidate: Type, *, to_dyn: bool = False) -> Type:
        """Replace parameters by their types; with `to_dyn`, free ones become dyn."""
        if candidate in self.known:
            return self.substitute(self.known[candidate], to_dyn=to_dyn)
        if candidate.kind == "param":
            return DYN if to_dyn else candidate
        if not candidate.params:
            return candidate
        return Type(
            candidate.kind,
            candidate.name,
            tuple(self.substitute(inner, to_dyn=to_dyn) for inner in candidate.params),
        )

    def _substitution(self, left: Type, right: Type) -> tuple[bool, bool]:
        if left == right:
            return True, True
        if right in self.known:
            current = self.known[right]
            if left == current:
                return True, True
            if not self.matches(left, current):
                return False, True
            general = left if _less_specific(left, current) else current
            if self._free_of(right, general):
                self.known[right] = general
            return True, True
        if self._free_of(right, left):
            self.known[right] = left
            return True, False
        return False, False

    def _free_of(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return False
        if within.kind == "param":
            return within not in self.known or self._free_of(parameter, self.known[within])
        return all(self._free_of(parameter, inner) for inner in within.params)


def _nullable(candidate: Type) -> bool:
    return candidate.nullable or candidate.kind in ("null", "opaque", "struct", "timestamp", "duration")


def _less_specific(left: Type, right: Type) -> bool:
    if left.kind in ("dyn", "param"):
        return True
    if right.kind in ("dyn", "param") or left.kind != right.kind:
        return False
    if left.kind in ("opaque", "list", "map"):
        same_shape = (left.name, len(left.params)) == (right.name, len(right.params))
        return same_shape and all(map(_less_specific, left.params, right.params))
    return left.kind == "type" or left == right


Implementation = (
    Callable[[], Any]
    | Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)
"""A Python function of up to four values."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of a function."""

    id: str
    function: str
    args: tuple[Type, ...]
    result: Type
    call: Callable[..., Any]
    member: bool = False


class Library:
    """A set of functions by name."""

    def __init__(self, *parts: "Library") -> None:
        self.functions: dict[str, list[Overload]] = {}
        for part in parts:
            for overloads in part.functions.values():
                self.extend(overloads)

    def extend(self, overloads: Iterable[Overload]) -> None:
        """Add overloads of functions."""
        for overload in overloads:
            self.functions.setdefault(overload.function, []).append(overload)

    def add(
        self, function: str, name: str, args: tuple[Type, ...], result: Type, call: Implementation
    ) -> None:
        """Declare an overload `function(args)`."""
        self.extend([Overload(name, function, args, result, call)])

    def method(
        self, function: str, name: str, args: tuple[Type, ...], result: Type, call: Implementation
    ) -> None:
        """Declare an overload `target.function(args)`; the target is the first of `args`."""
        self.extend([Overload(name, function, args, result, call, member=True)])


def accepts(expected: Type, value: Value) -> bool:
    """Return True if a value has the type of an argument; elements of lists and maps are not checked."""
    kind = expected.kind
    if kind in ("dyn", "param", "error"):
        return True
    if kind == "opaque" or (kind == "struct" and expected.name.startswith(("kubernetes.", "net."))):
        if expected.name == "optional_type":
            return isinstance(value, Optional)
        return isinstance(value, OpaqueValue) and value.type_name == expected.name
    if kind in ("int", "bool", "uint"):
        return value.__class__ in _CLASSES[kind]
    return isinstance(value, _CLASSES[kind])


def escape(name: str) -> str | None:
    """Return the name of a field in expressions, or None if it has none."""
    if not name or name[0].isdigit():
        return None
    if name in RESERVED:
        return f"__{name}__"
    if re.search(r"[^a-zA-Z0-9_./-]", name):
        return None
    for plain, escaped in (
        ("__", "__underscores__"),
        (".", "__dot__"),
        ("-", "__dash__"),
        ("/", "__slash__"),
    ):
        name = name.replace(plain, escaped) if plain != "__" else re.sub("__", escaped, name)
    return name


def declare(schema: Schema, *, resource: bool = False, name: str = "object") -> DeclaredType | None:
    """Return the type of a schema's values, or None if expressions cannot access them."""
    if schema.get("x-kubernetes-int-or-string"):
        longest = _bytes_of_length(schema) if "maxLength" in schema else MAX_REQUEST_SIZE - 2
        return DeclaredType(DYN, longest, _MIN_NUMBER)
    if resource:
        schema = with_type_and_meta(schema)
    kind = schema.get("type")
    if kind == "array":
        return _declare_list(schema, name)
    if kind == "object":
        return _declare_object(schema, name)
    if kind == "string":
        return _declare_string(schema)
    if kind == "boolean":
        return DeclaredType(BOOL, 0, _MIN_BOOL)
    if kind == "number":
        return DeclaredType(DOUBLE, 0, _MIN_NUMBER, conversion="double")
    return DeclaredType(INT, 0, _MIN_NUMBER) if kind == "integer" else None


def with_type_and_meta(schema: Schema) -> Schema:
    """Return the schema of a whole object with the fields that expressions can always access."""
    return {
        **schema,
        "properties": {
            **properties(schema),
            "kind": _STRING_SCHEMA,
            "apiVersion": _STRING_SCHEMA,
            "metadata": _META,
        },
    }


def _declare_list(schema: Schema, name: str) -> DeclaredType | None:
    element_schema = items(schema)
    element = declare_below(element_schema, f"{name}.@idx") if element_schema is not None else None
    if element is None:
        return None
    most = schema.get("maxItems")
    most = max(most, 0) if most is not None else (MAX_REQUEST_SIZE - 2) // (element.min_size + 1)
    list_type = schema.get("x-kubernetes-list-type", "")
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    declared = DeclaredType(list_of(element.type), most, 2, element=element)
    declared.list_type, declared.list_keys = list_type, keys
    declared.conversion = "list" if list_type in ("set", "map") or element.conversion else ""
    return declared


def _declare_object(schema: Schema, name: str) -> DeclaredType | None:
    other = additional(schema)
    if other is not None:
        value = declare_below(other, f"{name}.@elem")
        if value is None:
            return None
        most = schema.get("maxProperties")
        most = max(most, 0) if most is not None else (MAX_REQUEST_SIZE - 2) // (value.min_size + 6)
        key = DeclaredType(STRING, 0, _MIN_STRING)
        map_type = map_of(STRING, value.type)
        return DeclaredType(
            map_type, most, 2, key=key, element=value, conversion="map" if value.conversion else ""
        )
    declared = DeclaredType(struct(name), 0, 2)
    required: list[str] = schema.get("required") or []
    for property_name, sub in properties(schema).items():
        inner = declare_below(sub, f"{name}.{escape(property_name)}")
        if inner is None:
            continue
        escaped = escape(property_name)
        if escaped is not None:
            declared.fields[escaped] = inner
            declared.names[escaped] = property_name
        if property_name in required and sub.get("default") is None:
            declared.min_size += len(property_name) + inner.min_size + 4
    if any(inner.conversion for inner in declared.fields.values()):
        declared.conversion = "struct"
    return declared


def declare_below(schema: Schema, name: str) -> DeclaredType | None:
    """Declare a nested schema; embedded objects have a type and a name."""
    return declare(schema, resource=bool(schema.get("x-kubernetes-embedded-resource")), name=name)


def _declare_string(schema: Schema) -> DeclaredType:
    text_format = schema.get("format", "")
    if text_format == "byte":
        most = schema.get("maxLength")
        return DeclaredType(
            BYTES,
            MAX_REQUEST_SIZE - 2 if most is None else max(most, 0),
            _MIN_STRING,
            conversion="bytes",
        )
    if text_format == "duration":
        return DeclaredType(DURATION, 32, 3, conversion="duration")
    if text_format in _TIMES:
        conversion, least, most = _TIMES[text_format]
        return DeclaredType(TIMESTAMP, most, least, conversion=conversion)
    if "maxLength" in schema:
        most = _bytes_of_length(schema)
    elif schema.get("enum"):
        allowed: list[Json] = schema["enum"]
        most = max((len(value.encode()) for value in allowed if isinstance(value, str)), default=0)
    else:
        most = MAX_REQUEST_SIZE - 2
    return DeclaredType(STRING, most, _MIN_STRING)


def _bytes_of_length(schema: Schema) -> int:
    # A character takes up to four bytes.
    return max(schema["maxLength"], 0) * 4


def structs_in(declared: DeclaredType) -> dict[str, DeclaredType]:
    """Return the object types inside a type by their names."""
    found: dict[str, DeclaredType] = {}
    pending = [declared]
    while pending:
        current = pending.pop()
        if current.type.kind == "struct":
            found[current.type.name] = current
            pending += current.fields.values()
        if current.element is not None:
            pending.append(current.element)
    return found


def converted(declared: DeclaredType, value: Value) -> Any:
    """Convert a JSON value to one of the language: texts to times, numbers to doubles."""
    conversion = declared.conversion
    if not conversion or value is None:
        return value
    if conversion == "double":
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if conversion == "list" and isinstance(value, list) and declared.element is not None:
        element = declared.element
        content = [converted(element, item) for item in value] if element.conversion else value
        if declared.list_type == "set":
            return SetList(content)
        return MapList(content, declared.list_keys) if declared.list_type == "map" else content
    if conversion == "map" and isinstance(value, dict) and declared.element is not None:
        return {key: converted(declared.element, item) for key, item in value.items()}
    if conversion == "struct" and isinstance(value, dict):
        return _converted_struct(declared, value)
    return _converted_text(conversion, value) if isinstance(value, str) else value


def _converted_struct(declared: DeclaredType, value: dict[str, Any]) -> dict[str, Any]:
    result = dict(value)
    for escaped, inner in declared.fields.items():
        name = declared.names[escaped]
        if inner.conversion and name in value:
            result[name] = converted(inner, value[name])
    return result


def _converted_text(conversion: str, text: str) -> Any:
    try:
        if conversion == "timestamp":
            return parse_timestamp(text)
        if conversion == "date":
            return parse_timestamp(f"{text}T00:00:00Z")
        if conversion == "duration":
            return parse_duration(text)
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise EvaluationError(f"invalid value for format {conversion}: {error}") from None
