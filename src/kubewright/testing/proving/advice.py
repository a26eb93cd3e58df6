"""Suggest a fix for a spec that an operator cannot carry out: the rule that the CRD lacks, or how to change a child.

The smallest failing spec differs from the sample in as few fields as possible, and each of its numbers is as close to the
sample's as possible: a number that is closer by one does not fail. So the bound of a rule follows from it. If a map has a
new entry, shrinking has tried the key `ORDINARY_KEY`: if the spec fails with that key too, the value is wrong, else the key.
"""

import re
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.schema import ABSENT
from kubewright.schema.json_tree import Schema, additional, items, properties
from kubewright.testing.proving.properties import HEALTHY, SETTLES, TRUTHFUL_STATUS, VALID_SPECS, Property
from kubewright.testing.proving.sequences import ORDINARY_KEY, SpecSequence, SpecTarget, differing
from kubewright.testing.proving.values import SpecPath, shown_path, value_at

_ABOUT_SPECS = (HEALTHY, SETTLES, TRUTHFUL_STATUS, VALID_SPECS)
_PATTERN = re.compile(r"regex used for validation is '([^']+)'")
_TYPES = (
    (re.compile(r"\bquantit(y|ies)\b", re.IGNORECASE), "kw.Quantity as the type of the field"),
    (
        re.compile(r"\bduration\b.*\b(invalid|missing|unknown)|(invalid|unit in) duration"),
        "kw.Duration as the type of the field",
    ),
    (
        re.compile(r"isoformat|ISO 8601|RFC ?3339|parsing time|time data"),
        "datetime.datetime as the type of the field",
    ),
    (
        re.compile(r"IPv[46] address|IP address|IPv4 or IPv6"),
        'kw.Field(format="ipv4"), or kw.Field(format="ipv6")',
    ),
    (
        re.compile(r"invalid literal for int\(\)"),
        'int as the type of the field, or kw.Field(pattern=r"^[0-9]+$")',
    ),
    (re.compile(r"could not convert string to float"), "float as the type of the field"),
)
"""Parts of error messages about strings that cannot be parsed, with the type or format that refuses such strings."""
_SHOWN = 60


def advice(failed: Property, message: str, sequence: SpecSequence, target: SpecTarget) -> str:
    """Return a suggested fix for a failing sequence; an empty string if there is none."""
    specs = [step.value for step in sequence.specs]
    if len(sequence.steps) == 1 and failed in _ABOUT_SPECS:
        return _rule_for(message, target, specs[0])
    if len(sequence.steps) == len(specs) == 2 and failed is SETTLES and "API server refuses" in message:
        paths = ", ".join(shown_path(path) for path in differing(specs[0], specs[1]))
        return (
            f"To do: delete and create the child again when {paths} changes, or let the CRD refuse the change: "
            "kw.Field(immutable=True)"
        )
    return ""


def _rule_for(message: str, target: SpecTarget, fields: JsonObject) -> str:
    base = target.fields
    paths = list(differing(base, fields))
    if not paths:
        return ""
    values = ", ".join(f"{shown_path(path)}={_shown(value_at(fields, path))}" for path in paths)
    if len(paths) > 1:
        rule = 'a rule for these fields together, kw.Rule("...")'
    else:
        rule = _rule(paths[0], base, fields, message, target)
    return f"To do: carry out such a spec, or let the CRD refuse it, here {values}: {rule}"


def _rule(path: SpecPath, base: JsonObject, fields: JsonObject, message: str, target: SpecTarget) -> str:
    entry = _map_entry(target.rules.schema, path, fields)
    if entry is None:
        return _value_rule(path, base, fields, message)
    place, key = entry
    known: Any = value_at(base, place)
    if value_at(fields, (*place, key)) is ABSENT:
        return f"a rule that requires the key {key!r} in {shown_path(place)}, kw.Field(rules=[kw.Rule(...)])"
    if key != ORDINARY_KEY and not (isinstance(known, dict) and key in known):
        return f"for the keys of {shown_path(place)}, {_key_rule(message)}"
    inner = path if len(path) > len(place) else (*place, key)
    return f"for the values of {shown_path(place)}, {_value_rule(inner, base, fields, message)}"


def _map_entry(schema: Schema, path: SpecPath, fields: JsonObject) -> tuple[SpecPath, str] | None:
    """Return the map in which a spec differs, and the key of the entry; None if it differs elsewhere."""
    for length, part in enumerate(path):
        if isinstance(part, str) and additional(_schema_at(schema, path[:length])) is not None:
            return path[:length], part
    value: Any = value_at(fields, path)
    if isinstance(value, dict) and additional(_schema_at(schema, path)) is not None:
        keys = list(cast(JsonObject, value))
        # The sample does not have the map at all.
        return (path, keys[0]) if len(keys) == 1 else None
    return None


def _schema_at(schema: Schema, path: SpecPath) -> Schema:
    for part in path:
        inner = items(schema) if isinstance(part, int) else properties(schema).get(part, additional(schema))
        if inner is None:
            return {}
        schema = inner
    return schema


def _key_rule(message: str) -> str:
    found = _PATTERN.search(message)
    pattern = f"^{found[1]}$" if found is not None else "..."
    return f"""kw.Field(max_properties=..., rules=[kw.Rule(r"self.all(key, key.matches(r'{pattern}'))")])"""


def _value_rule(path: SpecPath, base: JsonObject, fields: JsonObject, message: str) -> str:
    value, known = value_at(fields, path), value_at(base, path)
    if isinstance(path[-1], int) and _has_duplicates(value_at(fields, path[:-1])):
        return 'kw.Field(list_type="set")'
    if value is ABSENT:
        return f"make {shown_path(path)} required, or give it a default"
    if value is None:
        return "a field that is not nullable"
    if isinstance(value, bool):
        return "a rule, kw.Rule(...), that allows it only where it can be carried out"
    if isinstance(value, int | float):
        return _bound(path, value, known if isinstance(known, int | float) else 0, fields)
    if isinstance(value, str):
        return _text_rule(value, known, message)
    if isinstance(value, list):
        return _list_rule(cast("list[Any]", value), known)
    return "kw.Field(min_properties=...), or a rule for its keys, kw.Rule(...)"


def _bound(path: SpecPath, value: float, known: float, fields: JsonObject) -> str:
    low = value < known
    accepted = value + 1 if low else value - 1
    siblings: Any = value_at(fields, path[:-1])
    if isinstance(siblings, dict):
        for name, other in cast(JsonObject, siblings).items():
            if name != path[-1] and other == accepted and not isinstance(other, bool):
                sign = ">=" if low else "<="
                return f'kw.Rule("self.{path[-1]} {sign} self.{name}"), or kw.Field({"ge" if low else "le"}={accepted})'
    return f"kw.Field({'ge' if low else 'le'}={accepted})"


def _text_rule(value: str, known: Any, message: str) -> str:
    for pattern, suggestion in _TYPES:
        if pattern.search(message):
            return suggestion
    found = _PATTERN.search(message)
    parts = ["min_length=1"] if not value else []
    longer = len(value) > 20 and len(value) > len(known if isinstance(known, str) else "")
    if longer:
        parts.append(f"max_length={len(value) - 1}")
    elif found is not None:
        parts.append(f'pattern=r"^{found[1]}$"')
    elif value:
        parts.append('pattern="..."')
    return f"kw.Field({', '.join(parts)})"


def _list_rule(value: list[Any], known: Any) -> str:
    if not value:
        return "kw.Field(min_items=1)"
    if _has_duplicates(value):
        return 'kw.Field(list_type="set")'
    if isinstance(known, list) and len(value) > len(cast("list[Any]", known)):
        return f"kw.Field(max_items={len(value) - 1}), or bounds for its elements"
    return "bounds for its elements, such as kw.Field(pattern=...)"


def _has_duplicates(value: list[Any]) -> bool:
    texts = [msgspec.json.encode(each) for each in value]
    return len(set(texts)) < len(texts)


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    text = msgspec.json.encode(value).decode()
    length = len(value) if isinstance(value, str) else len(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({length} characters)"
