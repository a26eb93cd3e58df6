"""Paths into a kind, checked against its types where they are declared.

Printer columns, scale and selectable fields are JSONPaths that the API server reads; `path_problems` checks them when the
class is made. Indexes and references are read here: `field_path` checks a path and returns a `FieldPath`, which finds the
texts that an object holds there.
"""

import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from kubewright.api.errors import DeclarationError
from kubewright.api.fields import Column, ColumnType
from kubewright.api.kinds import Kind
from kubewright.api.model import field_types
from kubewright.api.pydantic_models import is_pydantic, pydantic_schema, write_pydantic
from kubewright.api.scalars import Scalar

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)   # .spec, .labels.app\.kubernetes\.io/name
      | \['(?P<quoted>[^']+)'\]            # ['app.kubernetes.io/name']
      | \[(?P<element>\d+|\*|-\d+|\?\(.*?\))\]  # [0], [*], [?(@.type=="Ready")]
    """,
    re.VERBOSE,
)
_TYPE_META = ("apiVersion", "kind")


def path_problems(cls: type[msgspec.Struct], kind: Kind) -> Iterator[str]:
    """Yield errors in the paths of a kind's class keywords, each with the field that was probably meant."""
    for column in kind.columns:
        if problem := path_problem(cls, column.json_path) or _type_problem(column):
            yield f"columns: Column({column.name!r}, {column.json_path!r}): {problem}"
    if kind.scale is not None:
        for keyword in ("spec", "status", "selector"):
            path: str = getattr(kind.scale, keyword)
            if path and (problem := path_problem(cls, path)):
                yield f"scale: Scale({keyword}={path!r}): {problem}"
    for path in kind.selectable_fields:
        if problem := path_problem(cls, path):
            yield f"selectable_fields: {path!r}: {problem}"


def _type_problem(column: Column) -> str:
    *others, last = get_args(ColumnType)
    if column.type in (*others, last):
        return ""
    return f"unknown type {column.type!r}: use {', '.join(others)} or {last}"


def path_problem(cls: type[msgspec.Struct], path: str) -> str:
    """Return why the type has no field at a JSONPath; empty if it has one, or if that is unknown."""
    if path.startswith("{"):
        return f'a path has no braces here: write "{path.strip("{}")}"'
    if not path.startswith((".", "[")):
        return f'a path begins with a dot: ".{path}"'
    # The rest after the plain steps is an expression or invalid: the API server decides.
    return _follow(cls, _steps(path)[0])[1]


class FieldPath:
    """Find the texts at a path: one for a plain field, several if the path leads through or to a list."""

    __slots__ = ("_names", "many", "text")

    def __init__(self, text: str, names: Sequence[str], many: bool) -> None:
        self.text: str = text
        self.many: bool = many
        """True if an object may hold several texts there."""
        self._names = tuple(names)

    def texts(self, obj: Any) -> list[str]:
        """Return what a typed or a JSON object holds at the path; fields that are unset or empty hold nothing.

        Raise TypeError for a value that is not text, which only an object without a class can hold.
        """
        found: list[Any] = [obj]
        for name in self._names:
            found = [value for one in found for value in _values(one, name)]
        texts = [
            text for one in found for text in (cast("list[Any]", one) if isinstance(one, list) else [one])
        ]
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"{self.text}: expected text, got {type(text).__name__}")
        return list(dict.fromkeys(text for text in texts if text))


def field_path(kind: Any, path: str, where: str) -> FieldPath:
    """Return the path `spec.login`, or through lists `spec.users[*].login`, to text in objects of a kind.

    Raise DeclarationError, beginning with `where`, if there is no such field or it does not hold text. A `Kind` without a
    class has no types to check against.
    """
    steps, rest = _steps(path if path.startswith((".", "[")) else f".{path}")
    plain = steps and all(step.name is not None or step.text == "[*]" for step in steps)
    if rest or not plain or steps[0].name in _TYPE_META:
        raise DeclarationError(
            f'{where}: {path!r} is not a path of fields: write it like "spec.login" or "spec.users[*].login"'
        )
    hint: Any = Any
    if not isinstance(kind, Kind):
        hint, problem = _follow(cast("type[msgspec.Struct]", kind), steps)
        if problem:
            raise DeclarationError(f"{where}: {path!r}: {problem}")
        hint = plain_type(hint)
    element = _element(hint)
    if not _is_text(hint if element is None else element):
        raise DeclarationError(
            f"{where}: {path!r}: {kind.__name__}.{path.lstrip('.')} does not hold text or a list of texts"
        )
    names = [step.name or "" for step in steps]
    return FieldPath(path, names, element is not None or "" in names)


class _PathStep(msgspec.Struct, frozen=True):
    name: str | None
    """The field; None for an element of a list."""
    text: str


def _steps(path: str) -> tuple[list[_PathStep], str]:
    """Return the steps of a JSONPath over fields and elements, and the rest that is neither."""
    at, steps = 0, list[_PathStep]()
    while (match := _STEP.match(path, at)) is not None:
        name = match["quoted"] or (match["name"] or "").replace("\\", "")
        steps.append(_PathStep(name or None, match[0]))
        at = match.end()
    return steps, path[at:]


def _follow(cls: type[msgspec.Struct], steps: Sequence[_PathStep]) -> tuple[Any, str]:
    """Return the type at the end of the steps, or Any if the types end before, and an error text."""
    here, walked = cast(Any, cls), ""
    for step in steps:
        here, problem = _step(here, step.name or "", walked or cls.__name__)
        if problem or here is Any:
            return Any, problem
        walked += step.text
    return here, ""


def _values(value: Any, name: str) -> Sequence[Any]:
    """Return what a value holds under a field's wire name, or its elements if the name is empty."""
    if value is None:
        return ()
    if not name:
        return cast("list[Any]", value)
    if is_pydantic(type(value)):
        value = write_pydantic(value)
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value).get(name)
    else:
        cls = cast("type[msgspec.Struct]", type(value))
        found = getattr(value, cls.__struct_fields__[cls.__struct_encode_fields__.index(name)])
    return () if found is None else (found,)


def _element(hint: Any) -> Any:
    """Return the type of a list's elements, or None if it is not a list."""
    if isinstance(hint, dict):
        schema = cast("dict[str, Any]", hint)
        return schema.get("items", Any) if schema.get("type") == "array" else None
    return plain_type(get_args(hint)[0]) if get_origin(hint) is list else None


def _is_text(hint: Any) -> bool:
    if isinstance(hint, dict):
        # The schema of a field of a pydantic model; without a type it may be anything.
        return cast("dict[str, Any]", hint).get("type", "string") == "string"
    if hint is Any or get_origin(hint) is Literal:
        return all(isinstance(one, str) for one in get_args(hint))
    return isinstance(hint, type) and issubclass(hint, str)


def _step(hint: Any, name: str, place: str) -> tuple[Any, str]:
    """Return the type one step further, or Any if the types end, and an error text."""
    hint = plain_type(hint)
    origin = get_origin(hint)
    if origin is list:
        return (get_args(hint)[0], "") if not name else (Any, f"{place} is a list: write {place}[*].{name}")
    if origin is dict:
        return (get_args(hint)[1], "") if name else (Any, f"{place} is a map, not a list")
    if is_pydantic(hint):
        hint = pydantic_schema(hint, place)
    if isinstance(hint, dict):
        return _schema_step(cast(dict[str, Any], hint), name, place)
    if not isinstance(hint, type) or hint is Any:
        return Any, ""
    if not issubclass(hint, msgspec.Struct) or issubclass(hint, Scalar):
        return Any, f"{place} has no fields"
    if not name:
        return Any, f"{place} is not a list"
    return _field(hint, name, place)


def _field(cls: type[msgspec.Struct], name: str, place: str) -> tuple[Any, str]:
    known = dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
    if name in known:
        return field_types(cls)[known[name]], ""
    if name in _TYPE_META and "metadata" in known:
        return str, ""
    return Any, _unknown(known, name, place)


def _schema_step(schema: dict[str, Any], name: str, place: str) -> tuple[Any, str]:
    """Take a step inside a pydantic model, which is known by its schema."""
    fields: dict[str, Any] = schema.get("properties") or {}
    if not fields:
        inner: Any = schema.get("additionalProperties" if name else "items")
        return cast(Any, inner) if isinstance(inner, dict) else Any, ""
    return (fields[name], "") if name in fields else (Any, _unknown(fields, name, place))


def _unknown(known: Mapping[str, Any], name: str, place: str) -> str:
    find: Callable[..., list[str]] = import_module("difflib").get_close_matches
    close = find(name, known, n=1) or find(name.lower(), [wire.lower() for wire in known], n=1)
    meant = next((wire for wire in known if close and wire.lower() == close[0].lower()), "")
    advice = f"did you mean {meant!r}?" if meant else f"its fields are {', '.join(sorted(known))}"
    return f"{place} has no field {name!r}: {advice}"


def plain_type(hint: Any) -> Any:
    """Return a type without its `Annotated` extras and None; Any if it is a union of several."""
    while True:
        if get_origin(hint) is Annotated:
            hint = hint.__origin__
        elif get_origin(hint) in (Union, types.UnionType):
            members = [member for member in get_args(hint) if member is not type(None)]
            if len(members) != 1:
                return Any
            hint = members[0]
        else:
            return typing.Any if isinstance(hint, typing.TypeVar) else hint
