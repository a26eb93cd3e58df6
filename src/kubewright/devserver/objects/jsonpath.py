"""The JSONPath that printer columns, selectable fields and scale use: fields, indexes, wildcards, filters."""

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

PathStep = Callable[[Any], list[Any]]

_TOKEN = re.compile(
    r"""
    \.\.(?P<deep>[\w-]+)
    |\.(?P<every>\*)
    |\.(?P<field>(?:[^.\[\]{}|\s\\]|\\.)+)
    |\[\s*(?P<quote>['"])(?P<key>(?:[^\\]|\\.)*?)(?P=quote)\s*\]
    |\[\s*(?P<index>-?\d+)\s*\]
    |\[\s*(?P<star>\*)\s*\]
    |\[\s*(?P<low>-?\d*)\s*:\s*(?P<high>-?\d*)\s*\]
    |\[\s*\?\(\s*@(?P<path>[^=<>!\s)]*)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>'[^']*'|"[^"]*"|[^)\s]+)\s*)?\)\s*\]
    """,
    re.VERBOSE,
)


class PathError(ValueError):
    """The text is not a valid JSONPath."""


@lru_cache(maxsize=1024)
def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """Make the function that finds a path's values in a document."""
    path = text.strip()
    if path.startswith("{") and path.endswith("}"):
        path = path[1:-1].strip()
    path = path.removeprefix("$").removeprefix("@")
    if path and path[0] not in ".[":
        path = f".{path}"
    steps: list[PathStep] = []
    position = 0
    while position < len(path):
        found = _TOKEN.match(path, position)
        if found is None:
            raise PathError(f"unrecognized path at {path[position:]!r}")
        steps.append(_step(found))
        position = found.end()

    def find(document: Any) -> list[Any]:
        values = [document]
        for step in steps:
            values = [item for value in values for item in step(value)]
        return values

    return find


def _step(found: re.Match[str]) -> PathStep:
    part = found.groupdict()
    if part["field"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", part["field"]))
    if part["key"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", part["key"]))
    if part["deep"] is not None:
        return _deep(part["deep"])
    if part["every"] is not None or part["star"] is not None:
        return _children
    if part["index"] is not None:
        return _index(int(part["index"]))
    if part["path"] is not None:
        return _filter(part["path"], part["op"], part["value"])
    return _slice(part["low"], part["high"])


def _field(name: str) -> PathStep:
    def step(value: Any) -> list[Any]:
        if isinstance(value, dict) and name in value:
            return [cast(dict[str, Any], value)[name]]
        return []

    return step


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast(dict[str, Any], value).values())
    return list(cast(list[Any], value)) if isinstance(value, list) else []


def _deep(name: str) -> PathStep:
    def step(value: Any) -> list[Any]:
        here = _field(name)(value)
        return here + [found for child in _children(value) for found in step(child)]

    return step


def _index(position: int) -> PathStep:
    def step(value: Any) -> list[Any]:
        if isinstance(value, list):
            items = cast(list[Any], value)
            if -len(items) <= position < len(items):
                return [items[position]]
        return []

    return step


def _slice(low: str, high: str) -> PathStep:
    span = slice(int(low) if low else None, int(high) if high else None)

    def step(value: Any) -> list[Any]:
        return cast(list[Any], value)[span] if isinstance(value, list) else []

    return step


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _filter(path: str, operator: str | None, literal: str | None) -> PathStep:
    find = compile_path(path)
    expected = _literal(literal) if literal is not None else None

    def passes(item: Any) -> bool:
        values = find(item)
        if operator is None or not values:
            return bool(values)
        try:
            return _COMPARE[operator](values[0], expected)
        except TypeError:
            return False

    return lambda value: [item for item in _children(value) if passes(item)]


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text


def show(values: Sequence[Any]) -> str:
    """Print found values as kubectl's JSONPath printer does."""
    return " ".join(_show(value) for value in values)


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return "<no value>" if value is None else str(value)
