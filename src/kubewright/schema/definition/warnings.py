"""What the API server warns of in a CRD that it accepts."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import problems
from kubewright.schema.formats import is_known_format
from kubewright.schema.nodes import Schema, additional, items, part, properties


def crd_warnings(crd: dict[str, Any], *, old: dict[str, Any] | None = None) -> list[str]:
    """Return the warnings for a CRD, or for those that the change from `old` adds."""
    known = set(_unknown_formats(old)) if old is not None else set[str]()
    found = [name for name in _unknown_formats(crd) if name not in known]
    return [f"unrecognized format {problems.quoted(name)}" for name in dict.fromkeys(found)]


def _unknown_formats(crd: dict[str, Any]) -> Iterator[str]:
    versions: list[dict[str, Any]] = part(crd, "spec").get("versions") or []
    for version in versions:
        yield from _in_schema(part(version, "schema", "openAPIV3Schema"))


def _in_schema(schema: Schema) -> Iterator[str]:
    kind = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    if schema.get("format") and not is_known_format(schema["format"], kind):
        yield schema["format"]
    nested = [sub for keyword in ("allOf", "anyOf", "oneOf") for sub in schema.get(keyword) or ()]
    for sub in (items(schema), *nested, schema.get("not"), *properties(schema).values(), additional(schema)):
        if sub:
            yield from _in_schema(sub)
