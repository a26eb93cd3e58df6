"""Changes of a sample: copies in which one field has another value."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, cast

from kubewright.api import JsonObject

_NOT_CHANGED = frozenset({"apiVersion", "kind", "metadata", "status"})
_SCALES = frozenset({"replicas", "size", "count"})
_Path = tuple[str | int, ...]


def candidates(sample: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield changed copies of a sample, each with a description of the change; numbers first, then booleans, then strings.

    The API server may refuse some of them.
    """
    leaves = [
        (path, value)
        for name, top in sample.items()
        if name not in _NOT_CHANGED
        for path, value in _leaves(top, (name,))
    ]
    # Replica counts come first: most operators act on them.
    leaves.sort(key=lambda leaf: leaf[0][-1] not in _SCALES)
    for others in (_other_numbers, _other_flags, _other_texts):
        for path, value in leaves:
            for other in others(value):
                changed = copy.deepcopy(sample)
                _put(changed, path, other)
                yield f"{_shown(path)}: {value!r} -> {other!r}", changed


def _leaves(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    if isinstance(value, dict):
        for name, item in cast(JsonObject, value).items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(cast(list[Any], value)):
            yield from _leaves(item, (*path, number))
    else:
        yield path, value


def _other_numbers(value: Any) -> Sequence[Any]:
    return (value + 1, value - 1) if isinstance(value, int | float) and not isinstance(value, bool) else ()


def _other_flags(value: Any) -> Sequence[Any]:
    return (not value,) if isinstance(value, bool) else ()


def _other_texts(value: Any) -> Sequence[Any]:
    return (f"{value}-2", f"{value}2") if isinstance(value, str) else ()


def _put(document: Any, path: _Path, value: Any) -> None:
    for part in path[:-1]:
        document = document[part]
    document[path[-1]] = value


def _shown(path: _Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
