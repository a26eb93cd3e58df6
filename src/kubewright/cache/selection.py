"""The objects that an informer caches: a kind, optionally one namespace, optionally selectors, optionally one shard."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec

from kubewright.api import Kind, ObjectKey, PartialMeta, RawObject, parse, parse_fields, parse_labels
from kubewright.api.sharding import Shards

Transform = Callable[[dict[str, Any]], dict[str, Any]]

_label_selector = lru_cache(maxsize=256)(parse_labels)
_field_selector = lru_cache(maxsize=256)(parse_fields)


class ShardFilter(msgspec.Struct, frozen=True):
    """The objects of one shard: by their uid, by their namespace, or, for children, by the uid of their owner.

    The owner of a child is its controller of the `owner` kind, or with `every_owner` each owner of that kind. A child that
    carries `finalizer` and has no owner that could remove it is in the shard of its own uid.
    """

    shards: Shards
    number: int
    by: Literal["uid", "namespace", "owner"]
    owner: tuple[str, str] = ("", "")
    every_owner: bool = False
    finalizer: str = ""

    def numbers(self, meta: PartialMeta) -> set[int]:
        """Return the shards of an object: one, none for a child of other owners, or those of each owner."""
        shards = self.shards
        if self.by == "uid":
            return {shards.number_of(meta.uid)}
        if self.by == "namespace":
            return {shards.number_of(meta.namespace)}
        found = {
            shards.number_of(reference.uid)
            for reference in meta.owner_references
            if (reference.api_version.rpartition("/")[0], reference.kind) == self.owner
            and (self.every_owner or reference.controller)
        }
        if not found and self.finalizer and self.finalizer in meta.finalizers:
            return {shards.number_of(meta.uid)}
        return found

    def selects(self, meta: PartialMeta) -> bool:
        """Return True if the object is in this shard."""
        return self.number in self.numbers(meta)

    def covers(self, namespace: str) -> bool:
        """Return True if every object of the namespace is in this shard."""
        return self.by == "namespace" and bool(namespace) and self.shards.number_of(namespace) == self.number

    def admits(self, namespace: str) -> bool:
        """Return True if an object of the namespace can be in this shard."""
        return self.by != "namespace" or self.shards.number_of(namespace) == self.number


class Selection(msgspec.Struct, frozen=True):
    """What to watch; equal selections share one feed.

    `transform` is called with each object's JSON object before it is stored, and returns what to store. With `shard` only
    the objects of that shard are stored.
    """

    kind: Kind
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    transform: Transform | None = None
    shard: ShardFilter | None = None

    @property
    def is_narrowed(self) -> bool:
        """Return True if selectors leave objects out, or objects are not complete."""
        return bool(self.labels or self.fields or self.metadata_only)

    def covers(self, key: ObjectKey) -> bool:
        """Return True if an object with this key is certain to be in the selection, and complete."""
        if self.shard is not None and not self.shard.covers(key.namespace):
            return False
        return self.admits(key) and not self.is_narrowed

    def admits(self, key: ObjectKey) -> bool:
        """Return True if an object with this key can be in the selection."""
        if self.shard is not None and not self.shard.admits(key.namespace):
            return False
        return not self.namespace or key.namespace == self.namespace

    def selects(self, obj: RawObject) -> bool:
        """Return True if the server would include this object in the selection."""
        if (self.namespace and obj.meta.namespace != self.namespace) or (
            self.shard is not None and not self.shard.selects(obj.meta)
        ):
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
        if self.shard is not None:
            parts.append(f"of shard {self.shard.number}")
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
