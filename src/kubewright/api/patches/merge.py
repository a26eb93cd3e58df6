"""JSON merge patch (RFC 7386)."""

import copy
from typing import Any, cast

from kubewright.api.patches.json import same


def merge_patch(document: Any, patch: Any) -> Any:
    """Return the document with the patch merged in; null removes a key."""
    if not isinstance(patch, dict):
        return _without_nulls(patch)
    merged: dict[str, Any] = dict(cast(dict[str, Any], document)) if isinstance(document, dict) else {}
    for key, value in cast(dict[str, Any], patch).items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) or not isinstance(merged.get(key), dict):
            merged[key] = merge_patch(merged.get(key), value)
        else:
            # On the real server, a value that replaces a map keeps its nulls; elsewhere they are removed.
            merged[key] = copy.deepcopy(value)
    return merged


def merge_diff(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest merge patch from one object to another; a merge patch cannot set null."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if key in before and same(old, value):
            continue
        if isinstance(old, dict) and isinstance(value, dict):
            patch[key] = merge_diff(cast(dict[str, Any], old), cast(dict[str, Any], value))
        else:
            patch[key] = value
    return patch


def _without_nulls(value: Any) -> Any:
    """Drop the nulls of maps at any depth, as the real server does for values that a patch adds as a whole."""
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        return {key: _without_nulls(item) for key, item in items if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in cast(list[Any], value)]
    return value
