"""Elements of field paths as FieldsV1 spells them: `f:name`, `k:{...}`, `v:...`, `i:0`."""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from kubewright.devserver.merge.schema import ApplyError, ListSchema
from kubewright.devserver.objects import is_list, is_object

SELF = "."
_PLAIN_TEXT = re.compile(r"[\w./:*@ +=-]*", re.ASCII)
_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_GO_ESCAPED = re.compile("[<>&\u2028\u2029]")
_OMITS_KEYS = (
    "associative list with keys has an element that omits all key fields [{}] "
    "(and doesn't have default values for any key fields)"
)


def go_json(value: Any) -> str:
    """Write a JSON value as kube-apiserver does inside a path element."""
    if type(value) is str and _PLAIN_TEXT.fullmatch(value):
        return f'"{value}"'
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return _GO_ESCAPED.sub(lambda match: _GO_ESCAPES[match[0]], text)


def item_element(schema: ListSchema, item: Any) -> str:
    """Spell the element of a member of a set or a keyed list; raise `ApplyError` for a member without one."""
    if not schema.keys:
        if is_object(item):
            raise ApplyError("associative list without keys has an element that's a map type")
        if is_list(item):
            raise ApplyError("not supported: associative list with lists as elements")
        if item is None:
            raise ApplyError("associative list without keys has an element that's an explicit null")
        return f"v:{go_json(item)}"
    if item is None:
        raise ApplyError("associative list with keys may not have a null element")
    if not is_object(item):
        raise ApplyError("associative list with keys may not have non-map elements")
    parts: list[str] = []
    for key in schema.keys:
        if key in item:
            parts.append(f'"{key}":{go_json(item[key])}')
        elif (
            schema.item.mapping is not None and (default := schema.item.mapping.defaults.get(key)) is not None
        ):
            parts.append(f'"{key}":{go_json(default)}')
    if not parts:
        raise ApplyError(_OMITS_KEYS.format(" ".join(f'"{key}"' for key in schema.keys)))
    return "k:{" + ",".join(parts) + "}"


def ordered(elements: list[str]) -> list[str]:
    """Sort the elements of one level as kube-apiserver does: fields, keys, values, indexes."""
    found = sorted(elements)
    # All other elements are greater than fields: if the last one is a field, all are.
    if not found or found[-1][:2] == "f:" or found[-1] == SELF:
        return found
    return sorted(elements, key=_rank)


@lru_cache(maxsize=8192)
def _rank(element: str) -> tuple[int, Any]:
    sort, text = element[:2], element[2:]
    if sort == "f:":
        return 1, text
    if sort == "k:":
        keys = json.loads(text)
        return 2, [(name, _value_rank(value)) for name, value in sorted(keys.items())]
    if sort == "v:":
        return 3, _value_rank(json.loads(text))
    return (4, int(text)) if sort == "i:" else (0, "")


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 3, json.dumps(value, sort_keys=True)


@lru_cache(maxsize=8192)
def is_element(text: str) -> bool:
    """Return True if a key of FieldsV1 is a path element at all."""
    try:
        rank = _rank(text)
    except (ValueError, AttributeError):
        return False
    return rank[0] > 0


@lru_cache(maxsize=8192)
def element_text(element: str) -> str:
    """Write one element as paths in messages do: `.spec`, `[name="c"]`, `[="x"]`, `[0]`."""
    sort, text = element[:2], element[2:]
    if sort == "f:":
        return f".{text}"
    if sort == "k:":
        keys = json.loads(text)
        return "[" + ",".join(f"{name}={value_text(value)}" for name, value in sorted(keys.items())) + "]"
    if sort == "v:":
        return f"[={value_text(json.loads(text))}]"
    return f"[{text}]"


def path_text(path: Iterable[str]) -> str:
    """Write a path as messages do: `.spec.template.spec.containers[name="c"].image`."""
    return "".join(map(element_text, path))


def value_text(value: Any) -> str:
    """Write a value as paths in messages do."""
    if is_object(value):
        return "".join(f"{name}={value_text(item)}" for name, item in sorted(value.items()))
    if is_list(value):
        return f"[{','.join(map(value_text, value))}]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else str(value)
