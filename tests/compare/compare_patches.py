"""Draw patches of an object: JSON patches, merge patches and strategic merge patches."""

import random
from typing import Any

from compare_case import copy, places, pointer, value_at
from compare_corpus import OTHERS, TEXTS, Drawer, Kind

_OPERATIONS = ("add", "remove", "replace", "test", "move", "copy")
_DIRECTIVES = ("delete", "replace", "merge", "nope")


class PatchDrawer:
    """Draw patches for an object of a kind."""

    def __init__(self, obj: Any, made: Kind, chance: random.Random) -> None:
        self._obj = obj
        self._values = Drawer(made, chance)
        self._random = chance
        self._paths = [path for path in places(obj) if path[0] not in ("apiVersion", "kind")]

    def json_patch(self) -> Any:
        """Draw a list of operations, most of them on paths that exist."""
        return [self._operation() for _ in range(self._random.choice((1, 1, 2, 3)))]

    def _operation(self) -> Any:
        chance = self._random
        name = chance.choice(_OPERATIONS)
        path = self._json_path()
        operation: dict[str, Any] = {"op": name, "path": pointer(path)}
        if name in ("move", "copy"):
            operation["from"] = pointer(self._json_path())
        elif name != "remove":
            operation["value"] = self._value(path)
        if chance.random() < 0.04:
            operation.pop(chance.choice(list(operation)))
        return operation

    def _json_path(self) -> tuple[str | int, ...]:
        chance = self._random
        path = chance.choice(self._paths)
        way = chance.random()
        if way < 0.15:
            return (*path, chance.choice(("a", "b~c/d", "-", 0, 1, "01", "")))
        if way < 0.25:
            return (*path[:-1], chance.choice(("new", "-", 0, 9, -1)))
        return path

    def _value(self, path: tuple[str | int, ...]) -> Any:
        chance = self._random
        try:
            current = value_at(self._obj, path)
        except (KeyError, IndexError, TypeError):
            current = None
        if current is not None and chance.random() < 0.25:
            return copy(current)
        schema = self._values.schema(path)
        if schema is None or chance.random() < 0.1:
            return copy(chance.choice(OTHERS))
        return self._values.value(schema, next((key for key in reversed(path) if isinstance(key, str)), ""))

    def merge_patch(self) -> Any:
        """Draw a merge patch of one or two places."""
        made: dict[str, Any] = {}
        for _ in range(self._random.choice((1, 1, 2))):
            path = self._random.choice(self._paths)
            keys = [key for key in path if isinstance(key, str)][
                : next((index for index, key in enumerate(path) if isinstance(key, int)), len(path))
            ]
            if self._random.random() < 0.15:
                keys.append(self._random.choice(("new", "a")))
            _put(made, keys, None if self._random.random() < 0.25 else self._value(tuple(keys)))
        return made

    def strategic_patch(self) -> Any:
        """Draw a strategic merge patch, with list elements found by their merge keys, and with directives."""
        return self._strategic(self._obj, ())

    def _strategic(self, value: Any, at: tuple[str | int, ...]) -> Any:
        chance = self._random
        if isinstance(value, dict) and value:
            keys = [key for key in value if at or key not in ("apiVersion", "kind")]
            chosen = chance.sample(keys, min(len(keys), chance.choice((1, 1, 2))))
            made = {key: self._strategic_field(value[key], (*at, key)) for key in chosen}
            if chance.random() < 0.12:
                made["$patch"] = chance.choice(_DIRECTIVES)
            if chance.random() < 0.08:
                made["$retainKeys"] = chance.sample(keys, chance.randrange(len(keys) + 1))
            for key in chosen:
                made |= self._list_directives(key, value[key], (*at, key))
            return made
        return self._value(at)

    def _strategic_field(self, value: Any, at: tuple[str | int, ...]) -> Any:
        chance = self._random
        way = chance.random()
        if way < 0.12:
            return None
        if way < 0.24:
            return self._value(at)
        if isinstance(value, dict):
            return self._strategic(value, at)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return [self._element(chance.choice(value), at) for _ in range(chance.choice((1, 1, 2)))]
        return self._value(at)

    def _element(self, item: Any, at: tuple[str | int, ...]) -> Any:
        chance = self._random
        key = self._merge_key(at)
        made = self._strategic(item, (*at, 0))
        made = made if isinstance(made, dict) else {}
        if key and chance.random() < 0.93:
            made[key] = item.get(key) if chance.random() < 0.7 else chance.choice((*TEXTS, 1, 80))
        return made

    def _list_directives(self, name: str, value: Any, at: tuple[str | int, ...]) -> Any:
        chance = self._random
        if not isinstance(value, list) or chance.random() > 0.25:
            return {}
        key = self._merge_key(at)
        if key:
            order = [{key: item.get(key)} for item in value if isinstance(item, dict)]
        else:
            order = copy(value)
            if chance.random() < 0.5:
                return {f"$deleteFromPrimitiveList/{name}": order[:1]}
        chance.shuffle(order)
        return {f"$setElementOrder/{name}": order[: chance.randrange(len(order) + 1)]}

    def _merge_key(self, at: tuple[str | int, ...]) -> str:
        return (self._values.schema(at) or {}).get("x-kubernetes-patch-merge-key", "")


def _put(holder: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        found = holder.get(key)
        if not isinstance(found, dict):
            found = holder[key] = {}
        holder = found
    holder[keys[-1]] = value
