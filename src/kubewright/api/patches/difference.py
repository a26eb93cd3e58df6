"""Create the JSON patch from one object to another."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, cast, get_args, get_origin

import msgspec

from kubewright.api.annotations import members
from kubewright.api.codec import to_wire
from kubewright.api.model import field_info, field_types
from kubewright.api.patches.json import json_patch, pointer, same

_Operation = dict[str, Any]
# Beyond this many comparisons, elements are paired only by position: the patch is larger, the CPU time limited.
_MOST_COMPARISONS = 250_000


class _Shape(msgspec.Struct, frozen=True):
    """The typed structure of a value: its fields, the type of its elements, the keys that identify elements."""

    annotation: Any = Any
    keys: tuple[str, ...] = ()

    def at(self, name: str) -> "_Shape":
        for part in members(self.annotation):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                return _field_shape(part, name)
            if get_origin(part) is dict:
                return _Shape(get_args(part)[1])
        return _ANY

    def item(self) -> "_Shape":
        found = (get_args(part)[0] for part in members(self.annotation) if get_origin(part) is list)
        return _Shape(next(found, Any))


_ANY = _Shape()


def json_diff(before: Any, after: Any) -> list[_Operation]:
    """Return a small JSON patch from one value to another."""
    return list(_differences((), before, after, before, _ANY))


def typed_diff(before: msgspec.Struct, after: msgspec.Struct, raw: Any) -> list[_Operation]:
    """Return the JSON patch for what changed between two typed objects, addressed to the raw one they came from.

    Fields that the types do not know are kept, in list elements too: the patch contains only differences.
    """
    return list(_differences((), to_wire(before), to_wire(after), raw, _Shape(type(before))))


@cache
def _field_shape(cls: type[msgspec.Struct], name: str) -> _Shape:
    for item in msgspec.structs.fields(cls):
        if item.encode_name == name:
            return _Shape(field_types(cls)[item.name], tuple(field_info(cls)[item.name].list_keys))
    return _ANY


def _differences(
    path: tuple[str | int, ...], before: Any, after: Any, raw: Any, shape: _Shape
) -> Iterator[_Operation]:
    if _evidently_equal(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(raw, dict):
        yield from _map_differences(path, cast(Any, before), cast(Any, after), cast(Any, raw), shape)
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and isinstance(raw, list)
        and len(cast(Any, raw)) == len(cast(Any, before))
    ):
        yield from _list_differences(path, cast(Any, before), cast(Any, after), cast(Any, raw), shape)
    elif not same(before, after):
        yield {"op": "replace", "path": pointer(*path), "value": after}


def _evidently_equal(before: Any, after: Any) -> bool:
    """Return True if the bytes are the same: most parts of most objects are, and these need no walk."""
    return isinstance(before, dict | list) and msgspec.json.encode(before) == msgspec.json.encode(after)


def _map_differences(
    path: tuple[str | int, ...],
    before: dict[str, Any],
    after: dict[str, Any],
    raw: dict[str, Any],
    shape: _Shape,
) -> Iterator[_Operation]:
    for key, value in before.items():
        if key not in after and key in raw:
            yield from _removal((*path, key), value, raw[key], shape.at(key))
    for key, value in after.items():
        here = (*path, key)
        if key not in raw:
            if key not in before or not same(before[key], value):
                yield {"op": "add", "path": pointer(*here), "value": value}
        elif key in before:
            yield from _differences(here, before[key], value, raw[key], shape.at(key))
        elif isinstance(value, dict) and isinstance(raw[key], dict):
            yield from _differences(here, {}, value, raw[key], shape.at(key))
        else:
            yield {"op": "replace", "path": pointer(*here), "value": value}


def _removal(path: tuple[str | int, ...], before: Any, raw: Any, shape: _Shape) -> Iterator[_Operation]:
    """Remove a field, or only its known parts where the raw object has others there."""
    if (
        isinstance(before, dict)
        and isinstance(raw, dict)
        and cast(Any, raw).keys() - cast(Any, before).keys()
    ):
        yield from _map_differences(path, cast(Any, before), {}, cast(Any, raw), shape)
    else:
        yield {"op": "remove", "path": pointer(*path)}


def _list_differences(
    path: tuple[str | int, ...], before: list[Any], after: list[Any], raw: list[Any], shape: _Shape
) -> Iterator[_Operation]:
    index, element = 0, shape.item()
    for old, new in _script(before, after, shape.keys):
        here = (*path, index)
        if new is None:
            yield {"op": "remove", "path": pointer(*here)}
            continue
        if old is None:
            origin = _same_element(before, after[new], shape.keys)
            value = (
                after[new] if origin is None else _carried(before[origin], after[new], raw[origin], element)
            )
            yield {"op": "add", "path": pointer(*here), "value": value}
        else:
            yield from _differences(here, before[old], after[new], raw[old], element)
        index += 1


def _carried(before: Any, after: Any, raw: Any, shape: _Shape) -> Any:
    """Return a moved element with the fields that its type does not know."""
    return json_patch(raw, list(_differences((), before, after, raw, shape)))


def _identity(item: Any, keys: tuple[str, ...]) -> Any:
    return [cast(dict[str, Any], item).get(key) for key in keys] if keys and isinstance(item, dict) else item


def _same_element(items: Sequence[Any], item: Any, keys: tuple[str, ...]) -> int | None:
    if not keys:
        return None
    wanted = _identity(item, keys)
    return next((index for index, other in enumerate(items) if same(_identity(other, keys), wanted)), None)


def _script(
    before: list[Any], after: list[Any], keys: tuple[str, ...]
) -> Iterator[tuple[int | None, int | None]]:
    """Pair the elements of two lists: (old, new), (old, None) for a removal, (None, new) for an addition."""
    left, right = [_identity(item, keys) for item in before], [_identity(item, keys) for item in after]
    start, stop = 0, 0
    while start < min(len(left), len(right)) and same(left[start], right[start]):
        start += 1
    while stop < min(len(left), len(right)) - start and same(left[-1 - stop], right[-1 - stop]):
        stop += 1
    yield from ((index, index) for index in range(start))
    old, new = start, start
    for kept_old, kept_new in [
        *_common(left, right, start, stop),
        (len(left) - stop, len(right) - stop),
    ]:
        yield from _gap(range(old, kept_old), range(new, kept_new), paired=not keys)
        if kept_old < len(left) - stop:
            yield kept_old, kept_new
        old, new = kept_old + 1, kept_new + 1
    yield from zip(range(len(left) - stop, len(left)), range(len(right) - stop, len(right)), strict=True)


def _gap(old: range, new: range, *, paired: bool) -> Iterator[tuple[int | None, int | None]]:
    """Yield elements without a counterpart: paired by position if `paired`, otherwise as removals and additions."""
    both = min(len(old), len(new)) if paired else 0
    yield from zip(old[:both], new[:both], strict=True)
    yield from ((index, None) for index in old[both:])
    yield from ((None, index) for index in new[both:])


def _common(left: list[Any], right: list[Any], start: int, stop: int) -> list[tuple[int, int]]:
    """Return the longest common subsequence between the common prefix and suffix."""
    rows, columns = range(start, len(left) - stop), range(start, len(right) - stop)
    if len(rows) * len(columns) > _MOST_COMPARISONS:
        return []
    longest = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    for i, row in reversed(list(enumerate(rows))):
        for j, column in reversed(list(enumerate(columns))):
            if same(left[row], right[column]):
                longest[i][j] = longest[i + 1][j + 1] + 1
            else:
                longest[i][j] = max(longest[i + 1][j], longest[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(rows) and j < len(columns):
        if same(left[rows[i]], right[columns[j]]):
            pairs.append((rows[i], columns[j]))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
