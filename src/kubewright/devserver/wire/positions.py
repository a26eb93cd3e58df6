"""Where in a document its faults lie: complaints about fields, in the order in which Go's decoder meets them."""

import json
from collections.abc import Iterator
from typing import Any, cast


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with every key it has, repeated ones too."""


def in_document_order(body: bytes, complaints: list[str]) -> list[str]:
    """Sort complaints such as `unknown field "a.b"` and `duplicate field "c"` by where the field stands."""
    document = json.loads(body, object_pairs_hook=_Pairs)
    places = {text: place for place, text in reversed(list(enumerate(_met(document, ""))))}
    return sorted(complaints, key=lambda text: places.get(text, len(places)))


def _met(value: Any, path: str) -> Iterator[str]:
    """Give what could be said of each field, as the fields come."""
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            where = f"{path}.{name}" if path else name
            yield f'{"duplicate" if name in seen else "unknown"} field "{where}"'
            seen.add(name)
            yield from _met(item, where)
    elif isinstance(value, list):
        for index, item in enumerate(cast(list[Any], value)):
            yield from _met(item, f"{path}[{index}]")
