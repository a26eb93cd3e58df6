"""The objects that an informer caches: a kind, optionally one namespace, optionally selectors."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import msgspec

from kubewright.api import Kind, ObjectKey, RawObject, parse, parse_fields, parse_labels

Transform = Callable[[dict[str, Any]], dict[str, Any]]

_label_selector = lru_cache(maxsize=256)(parse_labels)
_field_selector = lru_cache(maxsize=256)(parse_fields)


class Selection(msgspec.Struct, frozen=True):
    """What to watch; equal selections share one feed.

    `transform` is called with each object's JSON object before it is stored, and returns what to store.
    """

    kind: Kind
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    transform: Transform | None = None

    @property
    def covers_all(self) -> bool:
        """Return True if every object of the kind is certain to be in the selection, and complete."""
        return not (self.namespace or self.labels or self.fields or self.metadata_only)

    def covers(self, key: ObjectKey) -> bool:
        """Return True if an object with this key is certain to be in the selection, and complete."""
        return self.admits(key) and not (self.labels or self.fields or self.metadata_only)

    def admits(self, key: ObjectKey) -> bool:
        """Return True if an object with this key can be in the selection."""
        return not self.namespace or key.namespace == self.namespace

    def selects(self, obj: RawObject) -> bool:
        """Return True if the server would include this object in the selection."""
        if not self.admits(obj.meta.key):
            return False
        if self.labels and not _label_selector(self.labels).matches(obj.meta.labels):
            return False
        return not self.fields or _field_selector(self.fields).matches(_FieldReader(obj))

    def __str__(self) -> str:
        parts = [self.kind.resource]
        if self.namespace:
            parts.append(f"in namespace {self.namespace}")
        if self.labels:
            parts.append(f"with labels {self.labels}")
        if self.fields:
            parts.append(f"with fields {self.fields}")
        if self.metadata_only:
            parts.append("(metadata)")
        return " ".join(parts)


class _FieldReader:
    """Return the text of a field by its path; the body is parsed only if a selector needs it."""

    def __init__(self, obj: RawObject) -> None:
        self._obj = obj

    def __call__(self, path: str) -> str:
        if path == "metadata.name":
            return self._obj.meta.name
        if path == "metadata.namespace":
            return self._obj.meta.namespace
        value: Any = parse(self._obj.raw)
        for name in path.split("."):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)
