"""Paths into a kind (printer columns, scale, selectable fields), checked against its types when the class is made."""

import difflib
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from kubewright.api.kinds import Kind
from kubewright.api.model import field_types
from kubewright.api.pydantic_models import is_pydantic, pydantic_schema
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
    """Yield what is wrong with the paths in a kind's class keywords, each with the field that was probably meant."""
    for column in kind.columns:
        if problem := path_problem(cls, column.json_path):
            yield f"columns: Column({column.name!r}, {column.json_path!r}): {problem}"
    if kind.scale is not None:
        for keyword in ("spec", "status", "selector"):
            path: str = getattr(kind.scale, keyword)
            if path and (problem := path_problem(cls, path)):
                yield f"scale: Scale({keyword}={path!r}): {problem}"
    for path in kind.selectable_fields:
        if problem := path_problem(cls, path):
            yield f"selectable_fields: {path!r}: {problem}"


def path_problem(cls: type[msgspec.Struct], path: str) -> str:
    """Return why a JSONPath leads to no field of the type, or nothing if it does or cannot be decided."""
    if not path.startswith((".", "[")):
        return f'a path begins with a dot: ".{path}"'
    at, here, walked = 0, cast(Any, cls), ""
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return ""  # an expression beyond plain steps: the API server decides
        name = match["quoted"] or (match["name"] or "").replace("\\", "")
        here, problem = _step(here, name, walked or cls.__name__)
        if problem or here is Any:
            return problem
        at, walked = match.end(), walked + match[0]
    return ""


def _step(hint: Any, name: str, place: str) -> tuple[Any, str]:
    """Return the type one step further, Any where the types end, and what is wrong."""
    hint = _plain(hint)
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
    close = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(
        name.lower(), [wire.lower() for wire in known], n=1
    )
    meant = next((wire for wire in known if close and wire.lower() == close[0].lower()), "")
    advice = f"did you mean {meant!r}?" if meant else f"its fields are {', '.join(sorted(known))}"
    return f"{place} has no field {name!r}: {advice}"


def _plain(hint: Any) -> Any:
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
