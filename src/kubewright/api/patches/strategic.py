"""Strategic merge patch: types declare which lists are merged by which key."""

import copy
from collections.abc import Sequence
from typing import Any, Protocol, cast

from kubewright.api.errors import PatchError
from kubewright.api.patches.json import same

Map = dict[str, Any]
List = list[Any]
_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_PRIMITIVES = "invalid patch format of primitive list"


class PatchSchema(Protocol):
    """The patch strategies of a type; `field` raises PatchError for an unknown field."""

    @property
    def strategy(self) -> frozenset[str]:
        """Return the patch strategies: merge, replace, retainKeys."""
        ...

    @property
    def merge_key(self) -> str:
        """Return the key by which the elements of a list are merged."""
        ...

    def field(self, name: str) -> "PatchSchema":
        """Return the patch strategies of a field."""
        ...

    def item(self) -> "PatchSchema":
        """Return the patch strategies of an element of the list."""
        ...


def strategic_patch(document: Map, patch: Map, schema: PatchSchema) -> Map:
    """Return the document with the patch merged in as its type declares; the arguments are not changed."""
    return merge_strategically(copy.deepcopy(document), copy.deepcopy(patch), schema)


def merge_strategically(document: Map, patch: Map, schema: PatchSchema) -> Map:
    """Merge a patch into a document and return the result, which may share parts with both.

    The patch loses the directives that were followed and the nulls that were without effect: kube-apiserver shows the
    rest in errors.
    """
    if _DIRECTIVE in patch:
        directive = patch[_DIRECTIVE]
        if directive == "replace":
            del patch[_DIRECTIVE]
            return patch
        if directive == "delete":
            return {}
        raise PatchError(f"unknown patch type: {directive} in map: {_shown(patch)}")
    _retain_keys(document, patch)
    _order_lists(document, patch, schema)
    for key, value in patch.items():
        if key.startswith(_DELETE.rstrip("/")):
            _delete_from_list(document, key, value)
        elif value is None:
            document.pop(key, None)
        else:
            _merge_value(document, key, value, schema)
    return document


def _merge_value(document: Map, key: str, value: Any, schema: PatchSchema) -> None:
    current = document.get(key)
    if isinstance(current, dict) and isinstance(value, dict):
        inner = schema.field(key)
        replaced = "replace" in inner.strategy
        document[key] = (
            value if replaced else merge_strategically(cast(Map, current), cast(Map, value), inner)
        )
    elif isinstance(current, list) and isinstance(value, list):
        inner = schema.field(key)
        merged = "merge" in inner.strategy
        document[key] = _merge_list(cast(List, current), cast(List, value), inner) if merged else value
    else:
        _drop_nulls(value)
        kept = _without_directives(value)
        if kept is _NOTHING:
            document.pop(key, None)
        else:
            document[key] = kept


def _retain_keys(document: Map, patch: Map) -> None:
    if _RETAIN not in patch:
        return
    kept = patch.pop(_RETAIN)
    if not isinstance(kept, list):
        raise PatchError(_BAD_RETAIN)
    for key, value in patch.items():
        if value is not None and not key.startswith((_ORDER, _DELETE)) and key not in kept:
            raise PatchError(_BAD_RETAIN)
    for key in [key for key in document if key not in kept]:
        del document[key]


def _delete_from_list(document: Map, directive: str, values: Any) -> None:
    name = directive.partition("/")[2]
    if not name:
        raise PatchError(_BAD_PRIMITIVES)
    current = document.get(name)
    # The server skips values that are not lists, on either side.
    if isinstance(current, list) and isinstance(values, list):
        gone = cast(List, values)
        document[name] = [
            item for item in cast(List, current) if not any(same(item, value) for value in gone)
        ]


def _order_lists(document: Map, patch: Map, schema: PatchSchema) -> None:
    """Merge the lists for which a patch sets an order, and remove them from the patch."""
    for directive in [key for key in patch if key.startswith(_ORDER.rstrip("/"))]:
        order, name = _list(patch.pop(directive)), directive.removeprefix(_ORDER)
        if name == directive:
            raise PatchError(_BAD_ORDER)
        live = _list(document[name]) if name in document else None
        given = _list(patch[name]) if name in patch else None
        inner = schema.field(name)
        _check_order(given or [], order, inner.merge_key)
        if live is None and given is None:
            continue
        if given is None:
            merged = live or []
        elif live is None:
            merged = cast(List, _without_directives(given))
        else:
            merged = _merge_list(live, given, inner) if "merge" in inner.strategy else given
        if not live and not given:
            raise PatchError("no elements in any of the given slices")
        patch.pop(name, None)
        document[name] = _arranged(merged, order, live or [], inner.merge_key)


def _list(value: Any) -> List:
    if isinstance(value, list):
        return cast(List, value)
    raise _unexpected("[]interface {}", value)


def _unexpected(wanted: str, value: Any) -> PatchError:
    names: dict[type[object], str] = {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
    }
    return PatchError(
        f"expected a {wanted}, but received a {names.get(type(cast(object, value)), '%!s(<nil>)')}"
    )


def _merge_list(live: List, patch: List, schema: PatchSchema) -> List:
    if not live and not patch:
        return live
    _check_elements(live, patch)
    if not isinstance((live or patch)[0], dict):
        merged: List = []
        for item in (*live, *patch):
            if not any(same(item, known) for known in merged):
                merged.append(item)
        return _arranged(merged, patch, live, "")
    key = schema.merge_key
    if not key:
        raise PatchError("cannot merge lists without merge key")
    live, patch = _follow_directives(live, patch, key)
    merged, element = list(live), schema.item()
    for item in patch:
        position = _position(merged, item, key)
        if position < 0:
            merged.append(item)
        else:
            merged[position] = merge_strategically(merged[position], item, element)
    return _arranged(merged, patch, live, key)


def _check_elements(live: List, patch: List) -> None:
    """Raise PatchError if the elements of two lists have different types, or are lists."""
    types: list[type[object]] = [type(item) for item in (*live, *patch)]
    if types[0] is list:
        raise PatchError("lists of lists are not supported")
    # kube-apiserver fails on a list that starts with null; merge it.
    if types[0] is not type(None) and len(set(types)) > 1:
        raise PatchError(f"list element types are not identical: {_shown([live, patch])}")


def _follow_directives(live: List, patch: List, key: str) -> tuple[List, List]:
    """Apply the deletions of a patch; with a replace directive only its own elements are left."""
    plain: List = []
    replaced = False
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if directive is None:
            plain.append(item)
        elif directive == "delete":
            gone = _key_of(item, key)
            live = [other for other in live if key not in other or not same(other[key], gone)]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise PatchError(f"unknown patch type: {directive} in map: {_shown(item)}")
    return (plain, []) if replaced else (live, plain)


def _arranged(merged: List, order: List, live: List, key: str) -> List:
    """Return the elements in the patch's order and the others in the live order; unknown ones come first."""
    wanted = [item for item in merged if _position(order, item, key) >= 0]
    others = [item for item in merged if _position(order, item, key) < 0]
    for item in (*wanted, *order, *others, *live):
        _key_of(item, key)
    wanted, others = _sorted(wanted, order, key), _sorted(others, live, key)
    arranged: List = []
    while wanted and others:
        ours, theirs = _position(live, wanted[0], key), _position(live, others[0], key)
        arranged.append(others.pop(0) if 0 <= theirs < ours else wanted.pop(0))
    return arranged + wanted + others


def _sorted(items: List, order: List, key: str) -> List:
    """Sort by the given order; an element that is not in it stays before the next one."""
    done: List = []
    for item in items:
        mine, place = _position(order, item, key), len(done)
        while place and (mine < 0 or not 0 <= _position(order, done[place - 1], key) <= mine):
            place -= 1
        done.insert(place, item)
    return done


def _check_order(given: List, order: List, key: str) -> None:
    """Raise PatchError if the elements of a patch are not in the order that it sets."""
    if not given or not order:
        return
    waiting: List = [item for item in given if _directive(item) != "delete"]
    for item in order:
        while waiting and _directive(waiting[0]):
            waiting.pop(0)
        if waiting and same(_key_of(waiting[0], key), _key_of(item, key)):
            waiting.pop(0)
    if waiting:
        text = f"The order in patch list:\n{_shown(given)}\n doesn't match {_ORDER.rstrip('/')} list:\n{_shown(order)}\n"
        raise PatchError(text)


def _directive(item: Any) -> Any:
    return cast(Map, item).get(_DIRECTIVE) if isinstance(item, dict) else None


def _key_of(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict):
        raise _unexpected("map[string]interface {}", item)
    if key not in item:
        raise PatchError(f"map: {_shown(item)} does not contain declared merge key: {key}")
    return cast(Map, item)[key]


def _position(items: Sequence[Any], item: Any, key: str) -> int:
    """Return the index of an element with the same key; elements without a key are skipped."""
    wanted = _key_of(item, key)
    for index, other in enumerate(items):
        if key and not isinstance(other, dict):
            raise PatchError(f"value for key {index} is not a map")
        if (not key or key in other) and same(_key_of(other, key), wanted):
            return index
    return -1


_NOTHING = object()


def _without_directives(value: Any) -> Any:
    """Return a value that is added without its directives, or _NOTHING; objects lose them in place."""
    if isinstance(value, dict):
        items = cast(Map, value)
        if _DIRECTIVE in items:
            return _NOTHING
        for key, item in list(items.items()):
            kept = _without_directives(item)
            if kept is _NOTHING:
                del items[key]
            else:
                items[key] = kept
        return items
    if isinstance(value, list):
        return [item for item in map(_without_directives, cast(List, value)) if item is not _NOTHING]
    return value


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        items = cast(Map, value)
        for key in [key for key, item in items.items() if item is None]:
            del items[key]
        for item in items.values():
            _drop_nulls(item)
    elif isinstance(value, list):
        for item in cast(List, value):
            _drop_nulls(item)


def _shown(value: Any) -> str:
    """Show a value as Go's %v does."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_shown(item)}' for key, item in sorted(cast(Map, value).items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, cast(List, value)))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)
