"""RBAC policy rules: what a rule allows, and whether rules together cover others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubewright.devserver.request.identity import AuthorizationAttributes

RoleRule = Mapping[str, Any]
ANY = "*"


def allows(rule: RoleRule, attributes: AuthorizationAttributes) -> bool:
    """Return True if one rule allows a request."""
    if attributes.verb not in _texts(rule, "verbs") and ANY not in _texts(rule, "verbs"):
        return False
    if not attributes.resource:
        return _has_path(_texts(rule, "nonResourceURLs"), attributes.path)
    return (
        _has(_texts(rule, "apiGroups"), attributes.group)
        and _has_resource(_texts(rule, "resources"), attributes.resource, attributes.subresource)
        and _has_name(_texts(rule, "resourceNames"), attributes.name)
    )


def uncovered(owned: Iterable[RoleRule], requested: Iterable[RoleRule]) -> list[RoleRule]:
    """List, one permission each, what `requested` grants beyond `owned`."""
    held = list(owned)
    return [
        part for rule in requested for part in _split(rule) if not any(_covers(have, part) for have in held)
    ]


def compact(rules: Iterable[RoleRule]) -> list[RoleRule]:
    """Merge single permissions that differ only in their verb, as messages show them."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for rule in rules:
        key = tuple(f"{name}={value}" for name, value in sorted(rule.items()) if name != "verbs")
        found = merged.setdefault(key, {**rule, "verbs": []})
        found["verbs"] += [verb for verb in _texts(rule, "verbs") if verb not in found["verbs"]]
    return list(merged.values())


def describe(rule: RoleRule) -> str:
    """Write a rule as messages about missing permissions do."""
    titles = {
        "nonResourceURLs": "NonResourceURLs",
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "resourceNames": "ResourceNames",
        "verbs": "Verbs",
    }
    parts: list[str] = []
    for name, title in titles.items():
        if texts := _texts(rule, name):
            quoted = ", ".join(f'"{text}"' for text in texts)
            parts.append(f"{title}:[{quoted}]")
    return "{" + ", ".join(parts) + "}"


def _texts(rule: RoleRule, name: str) -> Sequence[str]:
    return rule.get(name) or ()


def _has(values: Sequence[str], requested: str) -> bool:
    return requested in values or ANY in values


def _has_resource(resources: Sequence[str], resource: str, subresource: str) -> bool:
    combined = f"{resource}/{subresource}" if subresource else resource
    return _has(resources, combined) or bool(subresource and f"*/{subresource}" in resources)


def _has_name(names: Sequence[str], name: str) -> bool:
    return not names or name in names


def _has_path(patterns: Sequence[str], path: str) -> bool:
    return any(
        pattern in (ANY, path) or (pattern.endswith(ANY) and path.startswith(pattern[:-1]))
        for pattern in patterns
    )


def _split(rule: RoleRule) -> Iterable[RoleRule]:
    verbs = _texts(rule, "verbs")
    for path in _texts(rule, "nonResourceURLs"):
        for verb in verbs:
            yield {"nonResourceURLs": [path], "verbs": [verb]}
    names = _texts(rule, "resourceNames")
    for group in _texts(rule, "apiGroups"):
        for resource in _texts(rule, "resources"):
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                if not names:
                    yield part
                for name in names:
                    yield {**part, "resourceNames": [name]}


def _covers(have: RoleRule, part: RoleRule) -> bool:
    verb = part["verbs"][0]
    if not _has(_texts(have, "verbs"), verb):
        return False
    if "nonResourceURLs" in part:
        return _has_path(_texts(have, "nonResourceURLs"), part["nonResourceURLs"][0])
    resource, _, subresource = part["resources"][0].partition("/")
    names = _texts(have, "resourceNames")
    return (
        _has(_texts(have, "apiGroups"), part["apiGroups"][0])
        and _has_resource(_texts(have, "resources"), resource, subresource)
        and (not names or part.get("resourceNames", [""])[0] in names)
    )
