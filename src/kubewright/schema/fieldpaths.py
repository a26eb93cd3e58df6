"""Paths like `.spec.items['a.b']` that name a field of a schema."""

import re

from kubewright.schema.nodes import Schema, additional, properties

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")


class FieldPathError(ValueError):
    """A path that names no field of the schema."""


def resolve_field_path(text: str, schema: Schema, *, brackets: bool = True) -> tuple[str, Schema | None]:
    """Return the path as errors show it, and the schema it leads to."""
    path, node = "", schema
    tokens = iter(_TOKEN.findall(text))
    for sign in tokens:
        if sign == "[" and not brackets:
            raise FieldPathError("array notation is not allowed")
        if sign not in (".", "["):
            raise FieldPathError(f"expected [ or . but got: {sign}")
        name = next(tokens, None)
        if name is None:
            raise FieldPathError("unexpected end of JSON path")
        if sign == "[":
            if len(name) < 2 or name[0] != "'" or name[-1] != "'":
                raise FieldPathError(f"expected single quoted string but got {name}")
            name = re.sub(r"\\(.)", r"\1", name[1:-1])
        path, node = _step(path, node, name)
        if sign == "[":
            closing = next(tokens, None)
            if closing is None:
                raise FieldPathError("unexpected end of JSON path")
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
    return path, node


def _step(path: str, schema: Schema, name: str) -> tuple[str, Schema]:
    if properties(schema):
        below = properties(schema).get(name)
        shown = f"{path}.{name}" if path else name
    else:
        below = additional(schema)
        shown = f"{path}[{name}]"
    if below is None:
        raise FieldPathError("does not refer to a valid field")
    return shown, below
