"""JSON patch (RFC 6902) as the API server applies it, with its exceptions and its error messages."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from kubewright.api.errors import PatchError

_Operation = Mapping[str, Any]
MAX_COPIED = 3 * 1024 * 1024
"""How many bytes the copy operations of one patch may copy: without a bound each may double the document."""

_INDEX = r"[+-]?[0-9]+"


def json_patch(document: Any, operations: Sequence[_Operation]) -> Any:
    """Return the document with the operations applied; the argument is not changed.

    As on the real server, `replace` of a missing key of a map sets it, negative indexes count from the end, and the
    maps that operations reach into are sorted by key: others keep their order.
    """
    holder = _Holder(copy.deepcopy(document))
    copied = 0
    for operation in operations:
        copied = _apply(holder, operation, copied)
    return holder.written(holder.document)


class _Holder:
    """The document, and which of its maps and lists were reached."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._reached: dict[int, Any] = {}
        """By identity; a reached value that is gone stays here, so that no other one gets its identity."""

    def reach(self, value: Any) -> None:
        """Remember a map or list that an operation looks into."""
        self._reached[id(value)] = value

    def reach_all(self, value: Any) -> None:
        """Remember all maps and lists of a value that was compared."""
        if isinstance(value, dict | list):
            self.reach(cast(Any, value))
            inner = (
                cast(dict[str, Any], value).values() if isinstance(value, dict) else cast(list[Any], value)
            )
            for item in inner:
                self.reach_all(item)

    def written(self, value: Any) -> Any:
        """Return a copy of a value in the order in which the real server writes it."""
        if value is not self.document and id(value) not in self._reached:
            return copy.deepcopy(value)
        if isinstance(value, dict):
            return {key: self.written(item) for key, item in sorted(cast(dict[str, Any], value).items())}
        return [self.written(item) for item in cast(list[Any], value)] if isinstance(value, list) else value


def same(left: Any, right: Any) -> bool:
    """Compare JSON values; unlike Python, true is not 1 and 1 is not 1.0."""
    if left.__class__ is not right.__class__:
        return False
    if isinstance(left, dict):
        mine, theirs = cast(dict[str, Any], left), cast(dict[str, Any], right)
        return mine.keys() == theirs.keys() and all(same(value, theirs[key]) for key, value in mine.items())
    if isinstance(left, list):
        ours, others = cast(list[Any], left), cast(list[Any], right)
        return len(ours) == len(others) and all(map(same, ours, others))
    return bool(left == right)


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def _apply(holder: _Holder, operation: _Operation, copied: int) -> int:
    """Apply one operation; return how many bytes were copied so far."""
    kind, path = operation.get("op"), operation.get("path")
    if kind not in ("add", "remove", "replace", "move", "test", "copy"):
        raise PatchError(f"Unexpected kind: {kind or 'unknown'}")
    if not isinstance(path, str):
        raise PatchError(f"{kind} operation failed to decode path: missing value")
    value = operation.get("value")
    if kind == "replace" and path == "":
        if not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array: %!w(<nil>)")
        holder.document = copy.deepcopy(cast(Any, value))
    elif kind == "test":
        _test(holder, path, value)
    elif kind == "move":
        _move(holder, operation.get("from"), path)
    elif kind == "copy":
        return _copy(holder, operation.get("from"), path, copied)
    else:
        _change(holder, kind, path, value)
    return copied


def _change(holder: _Holder, kind: str, path: str, value: Any) -> None:
    place, key = _find(holder, path)
    if place is None:
        shown = path if kind == "replace" else f'"{path}"'
        raise PatchError(f"{kind} operation does not apply: doc is missing path: {shown}: missing value")
    if kind == "replace":
        if isinstance(place, list) and _position(place, key) is None:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value")
        _set(place, key, copy.deepcopy(value))
        return
    try:
        if kind == "add":
            _add(place, key, copy.deepcopy(value))
        else:
            _remove(place, key)
    except PatchError as error:
        raise PatchError(f"error in {kind} for path: '{path}': {error}") from error


def _test(holder: _Holder, path: str, value: Any) -> None:
    if path == "":
        found = holder.document
    else:
        place, key = _find(holder, path)
        if place is None:
            raise PatchError(f"test operation does not apply: is missing path: {path}: missing value")
        try:
            found = _get(place, key)
        except PatchError as error:
            raise PatchError(f"error in test for path: '{path}': {error}") from error
    if not same(found, value):
        raise PatchError(f"testing value {path} failed: test failed")
    holder.reach_all(found)


def _move(holder: _Holder, source: Any, path: str) -> None:
    place, key = _source(holder, "move", source)
    try:
        value = _get(place, key)
        _remove(place, key)
    except PatchError as error:
        raise PatchError(f"error in move for path: '{key}': {error}") from error
    target, target_key = _destination(holder, "move", path)
    try:
        _add(target, target_key, value)
    except PatchError as error:
        raise PatchError(f"error in move for path: '{path}': {error}") from error


def _copy(holder: _Holder, source: Any, path: str, copied: int) -> int:
    place, key = _source(holder, "copy", source)
    try:
        value = _get(place, key)
    except PatchError as error:
        raise PatchError(f"error in copy for from: '{source}': {error}") from error
    target, target_key = _destination(holder, "copy", path)
    copied += 0 if value is None else len(msgspec.json.encode(value))
    if copied > MAX_COPIED:
        raise PatchError(
            "Unable to complete the copy, the accumulated size increase of copy is "
            f"{copied}, exceeding the limit {MAX_COPIED}"
        )
    try:
        _add(target, target_key, holder.written(value))
    except PatchError as error:
        raise PatchError(f"error while adding value during copy: {error}") from error
    return copied


def _source(holder: _Holder, kind: str, source: Any) -> tuple[dict[str, Any] | list[Any], str]:
    if not isinstance(source, str):
        raise PatchError(f"{kind} operation failed to decode from: missing value")
    place, key = _find(holder, source)
    if place is None:
        text = f"{kind} operation does not apply: doc is missing from path: {source}: missing value"
        raise PatchError(text)
    return place, key


def _destination(holder: _Holder, kind: str, path: str) -> tuple[dict[str, Any] | list[Any], str]:
    place, key = _find(holder, path)
    if place is None:
        text = f"{kind} operation does not apply: doc is missing destination path: {path}: missing value"
        raise PatchError(text)
    return place, key


def _find(holder: _Holder, path: str) -> tuple[dict[str, Any] | list[Any] | None, str]:
    """Return the map or list that holds the last part of the path, and that part."""
    first, *parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")]
    place: Any = holder.document
    if not parts or not isinstance(place, dict | list):
        return None, first
    for part in parts[:-1]:
        try:
            place = _get(cast(Any, place), part)
        except PatchError:
            return None, part
        if not isinstance(place, dict | list):
            return None, part
        holder.reach(cast(Any, place))
    return cast(Any, place), parts[-1]


def _position(place: list[Any], key: str) -> int | None:
    """Return the index that a key names, if the list has it."""
    index = int(key) if re.fullmatch(_INDEX, key, re.ASCII) else None
    if index is None or not -len(place) <= index < len(place):
        return None
    return index % len(place)


def _index(place: list[Any], key: str) -> int:
    if not re.fullmatch(_INDEX, key, re.ASCII):
        raise PatchError(f'strconv.Atoi: parsing "{key}": invalid syntax')
    position = _position(place, key)
    if position is None:
        raise PatchError(f"Unable to access invalid index: {int(key)}: invalid index referenced")
    return position


def _get(place: dict[str, Any] | list[Any], key: str) -> Any:
    return place.get(key) if isinstance(place, dict) else place[_index(place, key)]


def _set(place: dict[str, Any] | list[Any], key: str, value: Any) -> None:
    if isinstance(place, dict):
        place[key] = value
    else:
        place[_index(place, key)] = value


def _add(place: dict[str, Any] | list[Any], key: str, value: Any) -> None:
    if isinstance(place, dict):
        place[key] = value
    elif key == "-":
        place.append(value)
    elif not re.fullmatch(_INDEX, key, re.ASCII):
        text = f'strconv.Atoi: parsing "{key}": invalid syntax'
        raise PatchError(f"value was not a proper array index: '{key}': {text}")
    else:
        index, size = int(key), len(place) + 1
        if not -size <= index < size:
            raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
        place.insert(index % size, value)


def _remove(place: dict[str, Any] | list[Any], key: str) -> None:
    if isinstance(place, list):
        del place[_index(place, key)]
    elif key not in place:
        raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")
    else:
        del place[key]
