"""Values that a structural schema allows: random ones from a seed, and interesting other values of a field.

Values match the types, bounds, enumerations, formats and patterns of the schema as far as they can be constructed;
`SpecRules` checks a whole object against all keywords and CEL rules. Numbers that look like a replica count stay small,
because each one leads to an object; other numbers without a declared bound are at most `LARGE`.
"""

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.schema import ABSENT, apply_defaults, prune, validate
from kubewright.schema.json_tree import Schema, additional, items, properties, same
from kubewright.schema.patterns import PatternError
from kubewright.schema.patterns.charset import Ranges
from kubewright.schema.patterns.syntax import (
    UNBOUNDED,
    Alternation,
    CharClass,
    Concatenation,
    Node,
    Parser,
    Repeat,
)

SpecPath = tuple[str | int, ...]

SCALES = frozenset(
    {"replicas", "size", "count", "instances", "nodes", "members", "machines", "shards", "workers"}
)
"""Names of fields that are replica counts or the like."""
LARGE = 70_000
"""A number that is too large for many purposes, such as ports, and small enough for a loop."""
_MOST_OF_A_SCALE = 5
_SMALL_BOUND = 20
"""A replica count is tried up to its declared maximum if that is at most this."""
_MORE = 3
"""Maximum number of elements of a list or map beyond its declared minimum."""
_DEPTH = 6
_SHORT_TEXT = 20
_TOO_LONG_FOR_A_LABEL = 64
_LONGEST_TEXT = 254
"""Maximum length of a string with a pattern: one more than the name of an object may have."""
_LONG_SHARE = 0.2
"""Share of strings with a pattern that are drawn long."""
_TEXTS = ("", "a", "b-2", "0", "Größe", "日本語", "🙂", "Two Words", "a/b", "x" * 64, "x" * 254)
_KEYS = ("key", "other-key", "Größe", "a b")
_INT_OR_STRING = (0, 1, 3, -1, "50%", "http", "")
_ANYTHING: tuple[Any, ...] = ({}, "text", 1)
_PRINTABLE: Ranges = ((0x61, 0x7A), (0x30, 0x39), (0x41, 0x5A), (0x20, 0x7E), (0xA1, 0xFF), (0x3041, 0x3096))
_FORMATS: dict[str, tuple[str, ...]] = {
    "byte": ("", "YQ==", "AAEC/w=="),
    "cidr": ("10.0.0.0/8", "fd00::/64"),
    "date": ("2024-02-29", "1970-01-01"),
    "datetime": ("2024-02-29T12:00:00Z", "1970-01-01T00:00:00Z", "2030-01-01T00:00:00+01:00"),
    "duration": ("0s", "1s", "90m", "1h30m"),
    "email": ("a@example.com",),
    "hostname": ("a", "host.example.com", f"{'a' * 63}.example.com"),
    "ipv4": ("10.0.0.1", "255.255.255.255"),
    "ipv6": ("::1", "fd00::10"),
    "mac": ("00:00:5e:00:53:01",),
    "uri": ("http://example.com/a?b=c", "urn:a:b"),
    "uuid": ("00000000-0000-4000-8000-000000000000", "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"),
}


@dataclass(frozen=True, slots=True)
class SpecField:
    """A field of an object, or an optional field that the object does not have."""

    path: SpecPath
    schema: Schema
    value: Any
    """Its present value; ABSENT if there is none."""
    optional: bool

    @property
    def name(self) -> str:
        """Return the name of the field, or of the list that an element is in."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), "")


class SpecRules:
    """The schema of one kind and its rules, apart from `metadata` and `status`."""

    def __init__(self, schema: Schema, identity: JsonObject) -> None:
        named = {name: each for name, each in properties(schema).items() if name not in _NOT_SPEC}
        required = [name for name in schema.get("required") or () if name in named]
        self.schema: Schema = {"type": "object", "properties": named, "required": required}
        self._whole = schema
        self._identity = {name: identity[name] for name in ("apiVersion", "kind", "metadata")}

    def accepts(self, fields: JsonObject, old: JsonObject | None = None) -> bool:
        """Return True if the schema and its rules allow an object; with `old`, if they allow the change to it."""
        before = ABSENT if old is None else self.complete(old)
        return not validate(self._whole, self.complete(fields), old=before)

    def complete(self, fields: JsonObject) -> JsonObject:
        """Return the object as the API server stores it: without unknown fields, with defaults."""
        found = deepcopy({**self._identity, **fields})
        prune(self._whole, found)
        apply_defaults(self._whole, found)
        return found

    def fields(self, value: JsonObject) -> list[SpecField]:
        """Return the fields of an object, including optional ones that it does not have."""
        return [field for field in _fields(self.schema, value, (), optional=False) if field.path]


_NOT_SPEC = frozenset({"apiVersion", "kind", "metadata", "status"})


def _fields(schema: Schema, value: Any, path: SpecPath, *, optional: bool) -> Iterator[SpecField]:
    yield SpecField(path, schema, value, optional)
    if isinstance(value, dict):
        found, required = cast(JsonObject, value), schema.get("required") or ()
        for name, inner in properties(schema).items():
            yield from _fields(inner, found.get(name, ABSENT), (*path, name), optional=name not in required)
        inner = additional(schema)
        for name in found if inner is not None else ():
            assert inner is not None
            yield from _fields(inner, found[name], (*path, name), optional=True)
    elif isinstance(value, list):
        inner = items(schema)
        for number, item in enumerate(cast("list[Any]", value) if inner is not None else ()):
            assert inner is not None
            yield from _fields(inner, item, (*path, number), optional=True)


def changed(document: JsonObject, path: SpecPath, value: Any) -> JsonObject:
    """Return a copy with another value at a path; ABSENT removes it."""
    copy = deepcopy(document)
    inner: Any = copy
    for part in path[:-1]:
        inner = inner[part]
    if value is not ABSENT:
        inner[path[-1]] = deepcopy(value)
    elif value_at(copy, path) is not ABSENT:
        del inner[path[-1]]
    return copy


def value_at(document: Any, path: SpecPath) -> Any:
    """Return the value at a path; ABSENT if there is none."""
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return document


def shown_path(path: SpecPath) -> str:
    """Return a path as errors of the API server print it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def schema_path(path: SpecPath) -> str:
    """Return a path without the numbers of list elements, as it is in the schema."""
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def other_values(field: SpecField) -> list[Any]:
    """Return interesting other values of a field: bounds, empty values, various strings; ABSENT if it is optional."""
    rng = random.Random(f"other values of {shown_path(field.path)}")
    schema, value = field.schema, field.value
    found: list[Any] = []
    if "enum" in schema:
        found += schema["enum"]
    elif schema.get("x-kubernetes-int-or-string"):
        found += [_text(schema, rng) for _ in range(3)] if "pattern" in schema else _INT_OR_STRING
    else:
        match schema.get("type"):
            case "integer" | "number":
                found += _numbers(schema, value, field.name)
            case "boolean":
                found += [True, False]
            case "string":
                found += _other_texts(schema, value, rng)
            case "array":
                found += _other_lists(schema, value, rng, field.name)
            case "object":
                found += _other_objects(schema, value, rng)
            case _:
                pass
    if field.optional and value is not ABSENT:
        # Operators most often fail to handle the removal of a field, so it is tried early.
        found.insert(1, ABSENT)
    if schema.get("nullable"):
        found.append(None)
    distinct: list[Any] = []
    for each in found:
        if not equal(each, value) and not any(equal(each, other) for other in distinct):
            distinct.append(each)
    return distinct


def equal(one: Any, other: Any) -> bool:
    """Return True if two values are the same, or both are ABSENT."""
    return one is other if one is ABSENT or other is ABSENT else same(one, other)


def draw(schema: Schema, rng: random.Random, name: str = "", depth: int = 0) -> Any:
    """Return a random value that the schema allows."""
    if schema.get("nullable") and rng.random() < 0.1:
        return None
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return _text(schema, rng) if "pattern" in schema else rng.choice(_INT_OR_STRING)
    match schema.get("type"):
        case "integer" | "number":
            return rng.choice(_numbers(schema, ABSENT, name) or [0])
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return _text(schema, rng)
        case "array":
            return _list(schema, rng, name, depth)
        case "object":
            return _object(schema, rng, depth)
        case _:
            return rng.choice(_ANYTHING)


def smallest(schema: Schema) -> Any:
    """Return a value with required fields only."""
    return draw(schema, _SmallestChoice())


class _SmallestChoice(random.Random):
    """A random number generator that always makes the smallest choice: no optional field, the fewest elements."""

    def random(self) -> float:
        return 0.999

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def randint(self, a: int, b: int) -> int:
        return a


# Numbers


def _numbers(schema: Schema, value: Any, name: str) -> list[Any]:
    low, high = _bounds(schema)
    near = [value + 1, value - 1] if isinstance(value, int | float) and not isinstance(value, bool) else []
    candidates: list[Any] = [0, *near, 1, -1, 2]
    candidates += [bound for bound in (low, high) if bound is not None]
    if name.lower() in SCALES:
        most = _MOST_OF_A_SCALE if low is None else max(_MOST_OF_A_SCALE, int(low) + 2)
        if high is not None and high <= _SMALL_BOUND:
            most = int(high)
        candidates = [each for each in [*candidates, _MOST_OF_A_SCALE] if each <= most]
    else:
        candidates.append(LARGE)
    if schema.get("type") == "number":
        candidates += [0.5, -0.5]
    else:
        candidates = [int(each) for each in candidates]
    if step := schema.get("multipleOf"):
        candidates += [step, step * 2, -step]
        candidates = [each for each in candidates if each % step == 0]
    return [each for each in dict.fromkeys(candidates) if _within(schema, each)]


def _bounds(schema: Schema) -> tuple[float | None, float | None]:
    low, high = schema.get("minimum"), schema.get("maximum")
    step = 1 if schema.get("type") == "integer" else 0.5
    if low is not None and schema.get("exclusiveMinimum"):
        low += step
    if high is not None and schema.get("exclusiveMaximum"):
        high -= step
    return low, high


def _within(schema: Schema, number: float) -> bool:
    low, high = _bounds(schema)
    return (low is None or number >= low) and (high is None or number <= high)


# Texts


def _other_texts(schema: Schema, value: Any, rng: random.Random) -> list[str]:
    if "pattern" in schema or schema.get("format", "").replace("-", "") in _FORMATS:
        short, *rest = [_text(schema, _SmallestChoice()), *(_text(schema, rng) for _ in range(4))]
        # Long values come early, because names that are derived from them become too long.
        found = [*(long := _long_texts(schema))[:1], short, *long[1:], *rest]
    else:
        found = [*([f"{value}-2"] if isinstance(value, str) else []), *_TEXTS]
        if most := schema.get("maxLength"):
            found.append("x" * min(most, 1000))
        found = [_fitted(schema, text) for text in found]
    return found


def _text(schema: Schema, rng: random.Random) -> str:
    known = _FORMATS.get(schema.get("format", "").replace("-", ""))
    if known is not None:
        return rng.choice(known)
    if "pattern" in schema:
        # Not for quantities (int-or-string): numbers with hundreds of digits find no bugs.
        is_text = schema.get("type") == "string"
        if is_text and rng.random() < _LONG_SHARE and (long := _long_texts(schema)):
            return rng.choice(long)
        node = _parsed(schema["pattern"])
        return "" if node is None else _matching(node, rng)
    return _fitted(schema, rng.choice(_TEXTS))


def _long_texts(schema: Schema) -> list[str]:
    """Return long strings that match the pattern of a schema: too long for a label, and as long as is allowed."""
    node = _parsed(schema["pattern"]) if "pattern" in schema else None
    if node is None:
        return []
    most = min(schema.get("maxLength", _LONGEST_TEXT), _LONGEST_TEXT)
    lengths = [length for length in (_TOO_LONG_FOR_A_LABEL, most) if length <= most]
    found = [_longest(node, max(0, length - _least_length(node))) for length in lengths]
    return [text for text in dict.fromkeys(found) if len(text) > _SHORT_TEXT]


def _parsed(pattern: str) -> Node | None:
    try:
        return Parser(pattern).parse()
    except PatternError:
        return None


def _least_length(node: Node) -> int:
    """Return the length of the shortest string that matches a pattern."""
    if isinstance(node, CharClass):
        return 1
    if isinstance(node, Concatenation):
        return sum(map(_least_length, node.parts))
    if isinstance(node, Alternation):
        return min(map(_least_length, node.options))
    return node.least * _least_length(node.part) if isinstance(node, Repeat) else 0


def _longest(node: Node, more: int) -> str:
    """Return a long string that matches a pattern: at most `more` characters longer than the shortest one."""
    if isinstance(node, CharClass):
        return _character(node.ranges, _SmallestChoice())
    if isinstance(node, Concatenation):
        text = ""
        for part in node.parts:
            found = _longest(part, more)
            more -= len(found) - _least_length(part)
            text += found
        return text
    if isinstance(node, Alternation):
        room = _least_length(node) + more
        fitting = [option for option in node.options if _least_length(option) <= room]
        return max((_longest(option, room - _least_length(option)) for option in fitting), key=len)
    if isinstance(node, Repeat):
        return _longest_repeat(node, more)
    return ""


def _longest_repeat(node: Repeat, more: int) -> str:
    least, texts = _least_length(node.part), list[str]()
    while node.most == UNBOUNDED or len(texts) < node.most:
        optional = len(texts) >= node.least
        if optional and least > more:
            break
        text = _longest(node.part, more - least if optional else more)
        more -= len(text) if optional else len(text) - least
        if optional and not text:
            break
        texts.append(text)
    return "".join(texts)


def _fitted(schema: Schema, text: str) -> str:
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    text = text[:most] if most is not None else text
    return text if len(text) >= least else text + "x" * (least - len(text))


def _matching(node: Node, rng: random.Random) -> str:
    """Return a random string that matches a pattern; assertions in the pattern are ignored."""
    if isinstance(node, CharClass):
        return _character(node.ranges, rng)
    if isinstance(node, Concatenation):
        return "".join(_matching(part, rng) for part in node.parts)
    if isinstance(node, Alternation):
        return _matching(rng.choice(node.options), rng)
    if isinstance(node, Repeat):
        most = node.least + _MORE if node.most == UNBOUNDED else min(node.most, node.least + _MORE)
        return "".join(_matching(node.part, rng) for _ in range(rng.randint(node.least, most)))
    return ""


def _character(ranges: Ranges, rng: random.Random) -> str:
    """Return a character of the ranges, a printable one if possible."""
    readable = [
        (max(low, first), min(high, last))
        for first, last in _PRINTABLE
        for low, high in ranges
        if max(low, first) <= min(high, last)
    ]
    low, high = rng.choice(readable or ranges or [(0x61, 0x61)])
    return chr(rng.randint(low, high))


# Lists and objects


def _list(schema: Schema, rng: random.Random, name: str, depth: int) -> list[Any]:
    least, inner = schema.get("minItems") or 0, items(schema)
    most = least + _MORE if schema.get("maxItems") is None else min(schema["maxItems"], least + _MORE)
    if inner is None or depth >= _DEPTH:
        return []
    found: list[Any] = []
    for _ in range(rng.randint(least, most)):
        _add(schema, found, draw(inner, rng, name, depth + 1))
    return found


def _add(schema: Schema, found: list[Any], value: Any) -> None:
    """Append an element, unless it would be a duplicate in a list of type set or map."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            taken = any(same(value, each) for each in found)
        case "map":
            keys = cast("Sequence[str]", schema.get("x-kubernetes-list-map-keys") or ())
            taken = any(all(value.get(key) == each.get(key) for key in keys) for each in found)
        case _:
            taken = False
    if not taken:
        found.append(value)


def _other_lists(schema: Schema, value: Any, rng: random.Random, name: str) -> list[Any]:
    present = list(cast("list[Any]", value)) if isinstance(value, list) else []
    inner = items(schema)
    found: list[Any] = [[]]
    if inner is not None:
        longer = list(present)
        _add(schema, longer, draw(inner, rng, name))
        found.append(longer)
    if present:
        found += [present[:-1], [*present, present[0]], present[::-1]]
    found += [_list(schema, rng, name, 0) for _ in range(2)]
    least, most = schema.get("minItems") or 0, schema.get("maxItems")
    return [each for each in found if len(each) >= least and (most is None or len(each) <= most)]


def _object(schema: Schema, rng: random.Random, depth: int) -> JsonObject:
    if schema.get("x-kubernetes-embedded-resource"):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "embedded"}}
    required = schema.get("required") or ()
    found: JsonObject = {}
    for name, inner in properties(schema).items():
        if name in required or (depth < _DEPTH and rng.random() < 0.6):
            found[name] = draw(inner, rng, name, depth + 1)
    inner = additional(schema)
    if inner is not None:
        least = schema.get("minProperties") or 0
        for key in _KEYS[: max(least, rng.randint(0, 2))]:
            found[key] = draw(inner, rng, key, depth + 1)
    return found


def _other_objects(schema: Schema, value: Any, rng: random.Random) -> list[Any]:
    inner = additional(schema)
    if inner is None:
        return [smallest(schema), _object(schema, rng, 0)] if value is ABSENT else []
    present: JsonObject = dict(cast(JsonObject, value)) if isinstance(value, dict) else {}
    entry = draw(inner, rng)
    found: list[JsonObject] = [{}, *({**present, key: entry} for key in _KEYS if key not in present)]
    if present:
        found.append(dict(list(present.items())[1:]))
    return found


def canonical(fields: JsonObject) -> str:
    """Return fields as JSON text that is the same for equal values."""
    return msgspec.json.encode(fields, order="deterministic").decode()
