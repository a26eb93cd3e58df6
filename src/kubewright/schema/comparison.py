"""Breaking changes between two versions of a CRD: for stored objects, for clients that write, for clients that read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kubewright.schema.json_tree import Schema, additional, items, part, properties, same

Affected = Literal["stored objects", "writers", "readers"]

_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "minLength", "minItems", "minProperties")


@dataclass(frozen=True, slots=True)
class BreakingChange:
    """One change that breaks stored objects or clients."""

    path: str
    affected: Affected
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def compare(old_crd: dict[str, Any], new_crd: dict[str, Any]) -> list[BreakingChange]:
    """Return the changes from one CRD to another that break stored objects or clients."""
    return [*_identity(old_crd, new_crd), *_versions(part(old_crd, "spec"), part(new_crd, "spec"))]


def _identity(old_crd: dict[str, Any], new_crd: dict[str, Any]) -> Iterator[BreakingChange]:
    old, new = part(old_crd, "spec"), part(new_crd, "spec")
    for name in ("group", "scope"):
        if old.get(name) != new.get(name):
            yield BreakingChange(
                f"spec.{name}", "stored objects", f"changed from {old.get(name)} to {new.get(name)}"
            )
    for name in ("kind", "plural"):
        before, after = part(old, "names").get(name), part(new, "names").get(name)
        if before != after:
            yield BreakingChange(f"spec.names.{name}", "stored objects", f"changed from {before} to {after}")
    lost = sorted(
        set(part(old, "names").get("shortNames") or ()) - set(part(new, "names").get("shortNames") or ())
    )
    if lost:
        yield BreakingChange("spec.names.shortNames", "readers", f"{', '.join(lost)} removed")
    strategies = [part(spec, "conversion").get("strategy") or "None" for spec in (old, new)]
    if strategies == ["Webhook", "None"] and len(_listed(new)) > 1:
        text = "changed from Webhook to None: a version is read with only the fields it shares with the stored one"
        yield BreakingChange("spec.conversion.strategy", "readers", text)
    stored: list[str] = part(old_crd, "status").get("storedVersions") or []
    present = {version["name"] for version in _listed(new)}
    for name in stored:
        if name not in present:
            text = f"objects may still be stored as {name}: migrate them first"
            yield BreakingChange("spec.versions", "stored objects", text)


def _versions(old: dict[str, Any], new: dict[str, Any]) -> Iterator[BreakingChange]:
    after = {version["name"]: version for version in _listed(new)}
    for before in _listed(old):
        name = before["name"]
        path = f"spec.versions[{name}]"
        version = after.get(name)
        if version is None:
            affected: Affected = "stored objects" if before.get("storage") else "readers"
            yield BreakingChange(path, affected, "version removed")
            continue
        if before.get("served") and not version.get("served"):
            yield BreakingChange(path, "readers", "version no longer served")
        yield from _selectable(before, version, path)
        yield from _subresources(part(before, "subresources"), part(version, "subresources"), path)
        schemas = (part(before, "schema", "openAPIV3Schema"), part(version, "schema", "openAPIV3Schema"))
        yield from _schema(*schemas, f"{path}.schema.openAPIV3Schema")


def _selectable(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[BreakingChange]:
    kept = {field.get("jsonPath") for field in new.get("selectableFields") or ()}
    for field in old.get("selectableFields") or ():
        if field.get("jsonPath") not in kept:
            text = f"{field.get('jsonPath')} removed: field selectors on it no longer work"
            yield BreakingChange(f"{path}.selectableFields", "readers", text)


def _subresources(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[BreakingChange]:
    for name in ("status", "scale"):
        if name in old and name not in new:
            yield BreakingChange(f"{path}.subresources.{name}", "writers", "subresource removed")
    if "status" in new and "status" not in old:
        text = "subresource added: writes to the main resource no longer change status"
        yield BreakingChange(f"{path}.subresources.status", "writers", text)
    if "scale" in old and "scale" in new:
        for name, before in part(old, "scale").items():
            after = part(new, "scale").get(name)
            if after != before:
                where = f"{path}.subresources.scale.{name}"
                yield BreakingChange(where, "writers", f"changed from {before} to {after}")


def _listed(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return spec.get("versions") or []


def _schema(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    yield from _types(old, new, path)
    yield from _bounds(old, new, path)
    yield from _values(old, new, path)
    yield from _lists(old, new, path)
    yield from _fields(old, new, path)
    before, after = items(old), items(new)
    if before is not None and after is not None:
        yield from _schema(before, after, f"{path}.items")
    before, after = additional(old), additional(new)
    if before is not None and after is not None:
        yield from _schema(before, after, f"{path}.additionalProperties")
    elif before is not None and not new.get("x-kubernetes-preserve-unknown-fields"):
        yield BreakingChange(
            f"{path}.additionalProperties", "stored objects", "map removed: its entries are dropped"
        )


def _types(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    before, after = _type(old), _type(new)
    widened = after == "anything" or (before, after) in {
        ("integer", "number"),
        ("integer", "int or string"),
        ("string", "int or string"),
    }
    if before != after and not widened:
        yield BreakingChange(f"{path}.type", "stored objects", f"changed from {before} to {after}")
    if old.get("nullable") and not new.get("nullable"):
        yield BreakingChange(f"{path}.nullable", "stored objects", "null is no longer allowed")
    before, after = old.get("format", ""), new.get("format", "")
    if after and before != after and (before, after) != ("int32", "int64"):
        text = f"changed from {before} to {after}" if before else f"format {after} added"
        yield BreakingChange(f"{path}.format", "stored objects", text)
    preserve = "x-kubernetes-preserve-unknown-fields"
    if old.get(preserve) and not new.get(preserve):
        yield BreakingChange(f"{path}.{preserve}", "stored objects", "removed: unknown fields are dropped")
    embedded = "x-kubernetes-embedded-resource"
    if new.get(embedded) and not old.get(embedded):
        text = "must now be an object with apiVersion, kind and metadata"
        yield BreakingChange(f"{path}.{embedded}", "stored objects", text)


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "int or string"
    return schema.get("type") or "anything"


def _bounds(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    for keyword in _UPPER + _LOWER:
        before, after = old.get(keyword), new.get(keyword)
        if after is None:
            continue
        tightened = before is None or (after < before if keyword in _UPPER else after > before)
        if tightened and not (before is None and keyword in _LOWER and keyword != "minimum" and after == 0):
            text = f"bound {after} added" if before is None else f"tightened from {before} to {after}"
            yield BreakingChange(f"{path}.{keyword}", "stored objects", text)
    for keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        if new.get(keyword) and not old.get(keyword):
            yield BreakingChange(
                f"{path}.{keyword}", "stored objects", "the bound itself is no longer allowed"
            )
    before, after = old.get("multipleOf"), new.get("multipleOf")
    if after is not None and (before is None or before % after):
        yield BreakingChange(f"{path}.multipleOf", "stored objects", f"must now be a multiple of {after}")


def _values(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    before, after = old.get("pattern", ""), new.get("pattern", "")
    if after and before != after:
        yield BreakingChange(f"{path}.pattern", "stored objects", f"must now match {after}")
    allowed, listed = old.get("enum"), new.get("enum")
    if listed is not None:
        gone = [value for value in allowed or () if not any(same(value, other) for other in listed)]
        if allowed is None:
            yield BreakingChange(f"{path}.enum", "stored objects", "values are now restricted")
        elif gone:
            text = "no longer allowed: " + ", ".join(map(str, gone))
            yield BreakingChange(f"{path}.enum", "stored objects", text)
    known = {rule.get("rule") for rule in old.get("x-kubernetes-validations") or ()}
    for position, rule in enumerate(new.get("x-kubernetes-validations") or ()):
        if rule.get("rule") not in known:
            location = f"{path}.x-kubernetes-validations[{position}]"
            yield BreakingChange(location, "stored objects", f"rule added: {rule.get('rule')}")
    for keyword in ("allOf", "anyOf", "oneOf", "not"):
        if new.get(keyword) and not same(new[keyword], old.get(keyword)):
            yield BreakingChange(f"{path}.{keyword}", "stored objects", "added or changed")
    if "default" in new and not same(new["default"], old.get("default")):
        text = f"changed from {old['default']}" if "default" in old else f"default {new['default']} added"
        yield BreakingChange(
            f"{path}.default", "readers", f"{text}: objects without the field are now read with another value"
        )
    if "default" in old and "default" not in new:
        text = f"default {old['default']} removed: objects without the field are now read without a value"
        yield BreakingChange(f"{path}.default", "readers", text)


def _lists(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    for keyword, implied in (("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")):
        before, after = old.get(keyword) or implied, new.get(keyword) or implied
        if before != after:
            yield BreakingChange(
                f"{path}.{keyword}",
                "writers",
                f"changed from {before} to {after}: server-side apply merges differently",
            )
    keys = "x-kubernetes-list-map-keys"
    if old.get(keys) and new.get(keys) and old[keys] != new[keys]:
        yield BreakingChange(f"{path}.{keys}", "stored objects", f"changed from {old[keys]} to {new[keys]}")


def _fields(old: Schema, new: Schema, path: str) -> Iterator[BreakingChange]:
    for name, before in properties(old).items():
        after = properties(new).get(name) or additional(new)
        if after is not None:
            yield from _schema(before, after, f"{path}.properties[{name}]")
        elif not new.get("x-kubernetes-preserve-unknown-fields"):
            yield BreakingChange(
                f"{path}.properties[{name}]", "stored objects", "field removed: its values are dropped"
            )
    required_before = set(old.get("required") or ())
    for name in sorted(new.get("required") or ()):
        if properties(new).get(name, {}).get("default") is not None:
            continue
        if name not in required_before:
            yield BreakingChange(
                f"{path}.required", "stored objects", f"{name} is now required and has no default"
            )
        elif properties(old).get(name, {}).get("default") is not None:
            yield BreakingChange(
                f"{path}.required", "stored objects", f"{name} is required and no longer has a default"
            )
