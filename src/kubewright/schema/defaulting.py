"""Defaults of a schema put into a value, compiled once per schema."""

from collections.abc import Callable
from typing import Any

from kubewright.schema.nodes import Schema, additional, items, properties
from kubewright.schema.values import Json, copied

Defaulter = Callable[[Any], None]


def compile_defaults(schema: Schema, *, keep_nulls: bool = False) -> Defaulter:
    """Compile the defaulting of one schema node; the result changes a value in place.

    A null where the schema does not allow it counts as absent: it is replaced by the default, or removed.
    With `keep_nulls` those without a default stay.
    """
    fields = {name: _Slot(sub, keep_nulls) for name, sub in properties(schema).items()}
    defaults = [(name, slot.default) for name, slot in fields.items() if slot.default is not None]
    others = _slot(additional(schema), keep_nulls)
    elements = _slot(items(schema), keep_nulls)

    def default(value: Json) -> None:
        if isinstance(value, dict):
            for name in [name for name, item in value.items() if item is None]:
                slot = fields.get(name, others)
                if slot is not None and slot.refuses_null:
                    del value[name]
            for name, content in defaults:
                if name not in value:
                    value[name] = copied(content)
            for name, item in value.items():
                slot = fields.get(name, others)
                if slot is not None:
                    slot.descend(item)
        elif isinstance(value, list) and elements is not None:
            for position, item in enumerate(value):
                if item is None and elements.refuses_null:
                    value[position] = copied(elements.default)
                elements.descend(value[position])

    return default


class _Slot:
    """What the schema says about the values in one place."""

    def __init__(self, schema: Schema, keep_nulls: bool) -> None:
        self.default: Any = schema.get("default")
        self.refuses_null = not schema.get("nullable") and not (keep_nulls and self.default is None)
        self._inner = compile_defaults(schema, keep_nulls=keep_nulls) if _has_children(schema) else None

    def descend(self, value: Json) -> None:
        """Default what lies below."""
        if self._inner is not None and isinstance(value, dict | list):
            self._inner(value)


def _slot(schema: Schema | None, keep_nulls: bool) -> _Slot | None:
    return None if schema is None else _Slot(schema, keep_nulls)


def _has_children(schema: Schema) -> bool:
    return bool(properties(schema)) or items(schema) is not None or additional(schema) is not None
