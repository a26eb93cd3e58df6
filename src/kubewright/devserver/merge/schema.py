"""The merge schema of a type for server-side apply: atomic values, merged lists and their keys."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubewright.api import KubewrightError


class ApplyError(KubewrightError, ValueError):
    """A value does not match its merge schema; the message is kube-apiserver's."""


class ListSchema:
    """A list: one value as a whole, a set of scalars, or a map of objects by their key fields."""

    __slots__ = ("associative", "item", "keys")

    def __init__(self, item: "MergeSchema", *, associative: bool = False, keys: Iterable[str] = ()) -> None:
        self.item: MergeSchema = item
        self.associative: bool = associative
        self.keys: tuple[str, ...] = tuple(sorted(keys))


class MapSchema:
    """An object: declared fields, what undeclared ones are (None: nothing), one value as a whole or not."""

    __slots__ = ("_fields", "_load", "atomic", "defaults", "item")

    def __init__(
        self,
        load: "Callable[[], Mapping[str, MergeSchema]]",
        *,
        item: "MergeSchema | None" = None,
        atomic: bool = False,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._load = load
        self._fields: Mapping[str, MergeSchema] | None = None
        self.item: MergeSchema | None = item
        self.atomic: bool = atomic
        self.defaults: Mapping[str, Any] | dict[str, Any] = defaults or {}

    @property
    def fields(self) -> "Mapping[str, MergeSchema]":
        """Return the declared fields, built at the first use: types can contain themselves."""
        if self._fields is None:
            self._fields = self._load()
        return self._fields

    def taken(self, *, whole: bool) -> "MapSchema":
        """Return the same object type taken as one value, or field by field."""
        return MapSchema(lambda: self.fields, item=self.item, atomic=whole, defaults=self.defaults)


class MergeSchema:
    """One type; a value without a declared type may be a scalar, a list or an object."""

    __slots__ = ("mapping", "scalar", "sequence")

    def __init__(
        self, *, scalar: str = "", sequence: ListSchema | None = None, mapping: MapSchema | None = None
    ) -> None:
        self.scalar: str = scalar
        self.sequence: ListSchema | None = sequence
        self.mapping: MapSchema | None = mapping


def object_of(
    fields: Mapping[str, MergeSchema],
    *,
    item: MergeSchema | None = None,
    atomic: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> MergeSchema:
    """Make the schema of an object with known fields."""
    return MergeSchema(mapping=MapSchema(lambda: fields, item=item, atomic=atomic, defaults=defaults))


def list_of(item: MergeSchema, *, associative: bool = False, keys: Iterable[str] = ()) -> MergeSchema:
    """Make the schema of a list."""
    return MergeSchema(sequence=ListSchema(item, associative=associative, keys=keys))


def _atomic_any() -> MergeSchema:
    schema = MergeSchema(scalar="untyped")
    schema.sequence = ListSchema(schema)
    schema.mapping = MapSchema(dict, item=schema, atomic=True)
    return schema


def _deduced() -> MergeSchema:
    schema = MergeSchema(scalar="untyped")
    schema.sequence = ListSchema(UNTYPED)
    schema.mapping = MapSchema(dict, item=schema)
    return schema


STRING = MergeSchema(scalar="string")
NUMERIC = MergeSchema(scalar="numeric")
BOOLEAN = MergeSchema(scalar="boolean")
ANY_SCALAR = MergeSchema(scalar="untyped")
# Anything, taken as one value.
UNTYPED = _atomic_any()
# Anything, merged by what the value turns out to be: objects field by field, lists as one value.
DEDUCED = _deduced()
DEDUCED_OBJECT = object_of({}, item=DEDUCED)

_STRINGS = object_of({}, item=STRING)
_OWNER_STRINGS: tuple[str, ...] = ("apiVersion", "kind", "name", "uid")
_OWNER = object_of(
    {**dict.fromkeys(_OWNER_STRINGS, STRING), "controller": BOOLEAN, "blockOwnerDeletion": BOOLEAN},
    atomic=True,
    defaults=dict.fromkeys(_OWNER_STRINGS, ""),
)
_MANAGED_FIELDS_ENTRY = object_of(
    dict.fromkeys(("manager", "operation", "apiVersion", "fieldsType", "subresource"), STRING)
    | {"time": ANY_SCALAR, "fieldsV1": DEDUCED_OBJECT}
)
OBJECT_META = object_of(
    dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), STRING)
    | dict.fromkeys(("generation", "deletionGracePeriodSeconds"), NUMERIC)
    | dict.fromkeys(("creationTimestamp", "deletionTimestamp"), ANY_SCALAR)
    | {
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": list_of(STRING, associative=True),
        "ownerReferences": list_of(_OWNER, associative=True, keys=("uid",)),
        "managedFields": list_of(_MANAGED_FIELDS_ENTRY),
    }
)
