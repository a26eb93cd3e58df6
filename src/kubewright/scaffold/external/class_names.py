"""Names for the nested objects of schemas.

Objects with the same schema share one class, wherever they occur. A class takes the name of its property (`privateKey`
is `PrivateKey`, the items of `rules` are `Rule`), with the names of the properties around it in front where another
class would have the same: `JksPasswordSecretRef`. The objects at the top of a kind have the kind in front:
`CertificateSpec`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from kubewright.api import JsonObject

_DOCUMENTATION = frozenset({"description", "title", "example", "externalDocs"})
_NOT_CARRIED = frozenset({"anyOf", "oneOf", "allOf", "not"})
_TOO_GENERAL = frozenset({"Spec", "Status", "Metadata", "Item", "Value", "Config"})
_Place = tuple[tuple[str, ...], str]
_RESERVED = frozenset({"Annotated", "Any", "Literal", "None", "True", "False"})


def properties(schema: JsonObject) -> dict[str, JsonObject]:
    """Return the schemas of an object's declared fields."""
    return schema.get("properties") or {}


def required(schema: JsonObject) -> set[str]:
    """Return the names of an object's required fields."""
    return set(cast(list[str], schema.get("required") or []))


class ClassKey(NamedTuple):
    """What makes two objects the same class."""

    facts: str
    is_status: bool
    """The fields of a status are all optional in Python: an object starts without one."""


class Occurrence(NamedTuple):
    """One place of a nested object."""

    kind: str
    path: str
    words: tuple[str, ...]
    """What its class can be named after, the kind first."""
    schema: JsonObject
    key: ClassKey


class SchemaFacts:
    """Compare schemas by what they require, not by their documentation."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[JsonObject, int]] = {}
        self._numbers: dict[str, int] = {}

    def class_key(self, schema: JsonObject, *, is_status: bool = False) -> ClassKey:
        """Return the key of the class for an object's schema."""
        parts = {
            "properties": {name: self._of(inner) for name, inner in properties(schema).items()},
            "required": sorted(required(schema)),
            "rules": schema.get("x-kubernetes-validations") or [],
        }
        return ClassKey(json.dumps(parts, sort_keys=True), is_status)

    def _of(self, schema: JsonObject) -> int:
        """Return the same number for schemas with the same requirements."""
        # The schema is kept with its number, so that no other object gets its id.
        known = self._known.get(id(schema))
        if known is None:
            parts: JsonObject = {}
            for keyword, value in schema.items():
                if keyword in _DOCUMENTATION or keyword in _NOT_CARRIED:
                    continue
                if keyword == "properties":
                    value = {name: self._of(inner) for name, inner in value.items()}
                elif keyword in ("items", "additionalProperties") and isinstance(value, dict):
                    value = self._of(cast(JsonObject, value))
                parts[keyword] = value
            text = json.dumps(parts, sort_keys=True)
            known = self._known[id(schema)] = (schema, self._numbers.setdefault(text, len(self._numbers)))
        return known[1]


def is_class(schema: JsonObject) -> bool:
    """Return True if an object becomes a class: its fields are declared, and no others are kept.

    Objects that keep undeclared fields become `dict[str, Any]`, so that nothing is lost when they are read and written.
    """
    return (
        schema.get("type") == "object"
        and "additionalProperties" not in schema
        and not schema.get("x-kubernetes-preserve-unknown-fields")
        and not schema.get("x-kubernetes-embedded-resource")
    )


def occurrences(kind: str, schema: JsonObject, facts: SchemaFacts) -> list[Occurrence]:
    """Return the objects below a kind that become classes, outermost first."""
    found: list[Occurrence] = []
    for name, inner in properties(schema).items():
        if name not in ("apiVersion", "kind", "metadata"):
            found += _below(inner, kind, name, (kind, pascal(name)), facts)
    return found


def _below(
    schema: JsonObject, kind: str, path: str, words: tuple[str, ...], facts: SchemaFacts
) -> Iterator[Occurrence]:
    if is_class(schema):
        key = facts.class_key(schema, is_status=path == "status")
        yield Occurrence(kind, path, words, schema, key)
        # Nearly everything is below the spec, so the word does not distinguish classes.
        outer = (kind,) if path == "spec" else words
        for name, inner in properties(schema).items():
            yield from _below(inner, kind, f"{path}.{name}", (*outer, pascal(name)), facts)
    elif inner := element_of(schema):
        yield from _below(inner, kind, f"{path}[]", (*words[:-1], singular(words[-1])), facts)


def element_of(schema: JsonObject) -> JsonObject | None:
    """Return the schema of the elements of a list or map, if it declares them."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    inner: Any = schema.get("items") or schema.get("additionalProperties")
    return cast(JsonObject, inner) if isinstance(inner, dict) else None


def pascal(name: str) -> str:
    """Return a property's name as part of a class name."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    text = "".join(part[:1].upper() + part[1:] for part in parts)
    return text if text[:1].isalpha() else f"X{text}"


def singular(word: str) -> str:
    """Return the singular of a plural English word, by its ending."""
    for ending, instead in (
        ("ies", "y"),
        ("iases", "ias"),
        ("sses", "ss"),
        ("uses", "us"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("xes", "x"),
    ):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + instead
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def class_names(found: Iterable[Occurrence], taken: Iterable[str]) -> Mapping[ClassKey, str]:
    """Return a unique name for each class; `taken` are the names of the kinds."""
    paths: dict[ClassKey, list[_Place]] = {}
    for each in found:
        paths.setdefault(each.key, []).append((each.words, each.path))
    names: dict[ClassKey, str] = {}
    used = {*taken, *_RESERVED}

    def give(key: ClassKey, name: str) -> None:
        names[key] = name
        used.add(name)

    for key, places in paths.items():
        at_top = {"".join(words) for words, path in places if "." not in path and "[" not in path}
        if name := next((top for top in sorted(at_top, key=_shortest_first) if top not in used), ""):
            give(key, name)
    longest = max((len(words) for places in paths.values() for words, _ in places), default=0)
    for length in range(1, longest + 1):
        proposals: dict[str, list[ClassKey]] = {}
        for key, places in paths.items():
            if key not in names:
                proposals.setdefault(_proposal(places, length), []).append(key)
        for name, keys in proposals.items():
            if len(keys) == 1 and name not in used and name not in _TOO_GENERAL:
                give(keys[0], name)
    for key, places in paths.items():
        if key not in names:
            name = _proposal(places, longest)
            number = next(number for number in range(2, len(paths) + 3) if f"{name}{number}" not in used)
            give(key, f"{name}{number}")
    return names


def _proposal(places: Sequence[_Place], length: int) -> str:
    """Return the most frequent end of the paths, of this many words."""
    count = Counter("".join(words[-length:]) for words, _ in places)
    most = max(count.values())
    return min((name for name, number in count.items() if number == most), key=_shortest_first)


def _shortest_first(name: str) -> tuple[int, str]:
    return len(name), name
