"""How a version's objects are read and written: built-in kinds by their Go types, custom ones by their schema."""

import hashlib
from typing import Protocol

from kubewright.api import FieldError, GroupVersionKind
from kubewright.devserver.merge import MergeSchema, merge_schema_of_crd
from kubewright.devserver.objects import JsonObject, encode, encode_sorted, order_object, unchanged
from kubewright.devserver.registry.scale_checks import check_scale_spec, check_scale_status, keep_scale_floats
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.wire import TypeTable, untyped
from kubewright.schema import compile_schema

OBJECT_META = "meta/v1.ObjectMeta"


class Codec(Protocol):
    """Read, complete, check and write the objects of one version of a kind."""

    @property
    def gvk(self) -> GroupVersionKind:
        """Return the kind."""
        ...

    @property
    def shape(self) -> str:
        """Return the name of the form in which objects are written."""
        ...

    @property
    def merge_schema(self) -> MergeSchema:
        """Return the schema for field management."""
        ...

    @property
    def list_prefix(self) -> int:
        """Return how many bytes at the start of an object are omitted in lists (kind and apiVersion)."""
        ...

    def decode(self, value: JsonObject, old: JsonObject | None = None) -> tuple[JsonObject, list[str]]:
        """Return a client's object in canonical form, and what the kind does not have of it.

        Parts that are equal in `old`, which is formed already, are skipped.
        """
        ...

    def default(self, obj: JsonObject) -> None:
        """Fill in defaults, in place."""
        ...

    def default_merged(self, obj: JsonObject) -> None:
        """Fill in the defaults of what apply has merged: a null that does not fit is left, to be refused."""
        ...

    def validate(self, obj: JsonObject, old: JsonObject | None, warnings: list[str]) -> list[FieldError]:
        """Check an object against the version's schema; append what it says of unchanged parts to `warnings`."""
        ...

    def validate_status(self, obj: JsonObject, old: JsonObject, warnings: list[str]) -> list[FieldError]:
        """Return errors of an object after a write of its status; `warnings` as above."""
        ...

    def prune(self, obj: JsonObject) -> JsonObject:
        """Return an object that was converted from another version without the fields that this one does not have."""
        ...

    def from_storage(self, obj: JsonObject) -> JsonObject:
        """Make an object that was stored in another shape fit this one."""
        ...

    def form(self, obj: JsonObject, old: JsonObject | None = None) -> JsonObject:
        """Return an object in field order, wherever defaulting and admission added fields; `old` as above."""
        ...

    def write(self, formed: JsonObject) -> bytes:
        """Write an object that has its form."""
        ...

    def encode(self, obj: JsonObject) -> bytes:
        """Form an object and write it."""
        ...


class BuiltinCodec:
    """A built-in kind: what Go's types would make of it."""

    def __init__(self, types: TypeTable, gvk: GroupVersionKind, strategy: Strategy) -> None:
        self.gvk = gvk
        self.shape: str = f"{gvk.api_version}/{gvk.kind}"
        self.types = types
        self._strategy = strategy
        self._merge_schema: MergeSchema | None = None
        # Lists of built-in kinds leave kind and apiVersion out; `encode` puts them first.
        self.list_prefix: int = len(f'{{"kind":"{gvk.kind}","apiVersion":"{gvk.api_version}",')

    def decode(self, value: JsonObject, old: JsonObject | None = None) -> tuple[JsonObject, list[str]]:
        """Round-trip a client's object through the kind's Go type."""
        obj, unknown = self.types.decode_request(self.gvk, value, unchanged(value, old))
        obj["kind"], obj["apiVersion"] = self.gvk.kind, self.gvk.api_version
        return obj, unknown

    def default(self, obj: JsonObject) -> None:
        """Fill in the kind's defaults."""
        self._strategy.default(obj)

    def default_merged(self, obj: JsonObject) -> None:
        """Fill in the kind's defaults; Go's types have no null."""
        self._strategy.default(obj)

    def validate(self, obj: JsonObject, old: JsonObject | None, warnings: list[str]) -> list[FieldError]:
        """Find nothing: the Go types were enforced when decoding, the rest is the strategy's."""
        return []

    def validate_status(self, obj: JsonObject, old: JsonObject, warnings: list[str]) -> list[FieldError]:
        """Find nothing either."""
        return []

    def prune(self, obj: JsonObject) -> JsonObject:
        """Take converted objects as they are."""
        return obj

    def from_storage(self, obj: JsonObject) -> JsonObject:
        """Take stored objects as they are."""
        return obj

    def form(self, obj: JsonObject, old: JsonObject | None = None) -> JsonObject:
        """Return what Go's type would write, in its order."""
        return order_object(self.types.decode(self.gvk, obj, unchanged(obj, old))[0])

    def write(self, formed: JsonObject) -> bytes:
        """Write the fields as they stand."""
        return encode(formed)

    def encode(self, obj: JsonObject) -> bytes:
        """Form an object and write it."""
        return encode(self.form(obj))

    @property
    def merge_schema(self) -> MergeSchema:
        """Return the kind's merge schema, built at the first use."""
        if self._merge_schema is None:
            self._merge_schema = self.types.merge_schema(self.gvk)
        return self._merge_schema


class CustomCodec:
    """The codec of a custom kind, by its structural schema."""

    list_prefix = 0

    def __init__(
        self, types: TypeTable, gvk: GroupVersionKind, schema: JsonObject, scale: JsonObject
    ) -> None:
        self.gvk = gvk
        self.schema = schema
        self._scale = scale
        fingerprint = hashlib.sha256(encode_sorted(schema)).hexdigest()[:16]
        self.shape: str = f"{gvk.api_version}/{gvk.kind}@{fingerprint}"
        self._types = types
        self._validator = compile_schema(schema)
        self._merge_schema: MergeSchema | None = None

    def decode(self, value: JsonObject, old: JsonObject | None = None) -> tuple[JsonObject, list[str]]:
        """Prune fields that are not in the schema, and normalize the metadata."""
        body = untyped({name: item for name, item in value.items() if name != "metadata"})
        unknown = [f'unknown field "{path}"' for path in self._validator.prune(body)]
        keep_scale_floats(self._scale, value, body)
        found = value.get("metadata")
        typed, unknown_meta = self._types.decode_struct(OBJECT_META, {} if found is None else found)
        obj: JsonObject = {
            **body,
            "apiVersion": self.gvk.api_version,
            "kind": self.gvk.kind,
            "metadata": typed,
        }
        return obj, [*(text.replace('"', '"metadata.', 1) for text in unknown_meta), *unknown]

    def default(self, obj: JsonObject) -> None:
        """Fill in the schema's defaults."""
        self._validator.apply_defaults(obj)

    def default_merged(self, obj: JsonObject) -> None:
        """Fill in the schema's defaults and keep other nulls."""
        self._validator.apply_defaults(obj, keep_nulls=True)

    def validate(self, obj: JsonObject, old: JsonObject | None, warnings: list[str]) -> list[FieldError]:
        """Validate against the schema; errors in unchanged values are ignored (ratcheting)."""
        counts = [*check_scale_spec(self._scale, obj), *check_scale_status(self._scale, obj)]
        if old is None:
            return self._validator.validate(obj, other_errors=counts)
        return self._validator.validate(obj, old=old, other_errors=counts, warnings=warnings)

    def validate_status(self, obj: JsonObject, old: JsonObject, warnings: list[str]) -> list[FieldError]:
        """Check what the status subresource does."""
        counts = check_scale_status(self._scale, obj)
        return self._validator.validate_status(obj, old, other_errors=counts, warnings=warnings)

    def prune(self, obj: JsonObject) -> JsonObject:
        """Prune fields that are not in the schema."""
        return self.decode(obj)[0]

    def from_storage(self, obj: JsonObject) -> JsonObject:
        """Prune and default an object that was stored under another schema."""
        fitted = self.prune(obj)
        self.default(fitted)
        return fitted

    def form(self, obj: JsonObject, old: JsonObject | None = None) -> JsonObject:
        """Take the object as it is: decoding has pruned it."""
        return obj

    def write(self, formed: JsonObject) -> bytes:
        """Write all fields in alphabetical order."""
        return encode_sorted(formed)

    def encode(self, obj: JsonObject) -> bytes:
        """Write it."""
        return encode_sorted(obj)

    @property
    def merge_schema(self) -> MergeSchema:
        """Return the merge schema of the structural schema, built at the first use."""
        if self._merge_schema is None:
            self._merge_schema = merge_schema_of_crd(self.schema)
        return self._merge_schema
