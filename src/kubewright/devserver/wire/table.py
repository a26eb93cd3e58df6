"""The type table: every built-in kind, how it reads, how it merges, where it is served."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import msgspec

from kubewright.api import GroupVersionKind
from kubewright.devserver.data import KubernetesRelease
from kubewright.devserver.merge import MergeSchema
from kubewright.devserver.wire.conversion import Conversions
from kubewright.devserver.wire.decoding import PLAIN_LEAVES, Decoders
from kubewright.devserver.wire.dropped_fields import DroppedFieldFinder, DroppedFields
from kubewright.devserver.wire.errors import TOO_DEEP, TypeMismatch, UnknownKind, WireDecodeError
from kubewright.devserver.wire.gotypes import GoType, GoTypes
from kubewright.devserver.wire.protobuf import Readers, envelope
from kubewright.devserver.wire.protobuf_writing import Writers, write_envelope, write_list
from kubewright.devserver.wire.schemas import MergeSchemas, TypePatchSchema

_OPTIONS = "meta.k8s.io/v1"
_LIST_META = "meta/v1.ListMeta"
_MAX_STRICT_ERRORS = 100
_NOTHING: Mapping[str, Any] = {}


class BuiltinSubresource(msgspec.Struct, frozen=True):
    """A subresource as discovery shows it."""

    name: str
    group: str
    version: str
    kind: str
    verbs: list[str]


class BuiltinResource(msgspec.Struct, frozen=True, rename="camel"):
    """A built-in resource as discovery shows it."""

    name: str
    singular: str
    namespaced: bool
    kind: str
    verbs: list[str]
    short_names: list[str]
    categories: list[str]
    subresources: list[BuiltinSubresource]


class BuiltinVersion(msgspec.Struct, frozen=True):
    """One group version and its resources, in the order kube-apiserver lists them."""

    group: str
    version: str
    resources: list[BuiltinResource]


_PATH_PART = re.compile(r"[^.\[\]]+")


class TypeTable:
    """The built-in kinds of a release as Go sees them; decoders and schemas are compiled when first used."""

    def __init__(self, release: KubernetesRelease) -> None:
        self.release = release
        self._types = types = GoTypes(release.types)
        self._decoders = Decoders(types, stored=True)
        self._request_decoders = Decoders(types, stored=False)
        self._conversions = Conversions(types, self._request_decoders)
        self._readers = Readers(types)
        self._writers = Writers(types)
        self._merge_schemas = MergeSchemas(types)
        self._zeroes: dict[GroupVersionKind, bytes] = {}

    def has(self, gvk: GroupVersionKind) -> bool:
        """Return True if the kind is built in; the option kinds are, in every group."""
        return self._find(gvk) is not None

    def decode(
        self, gvk: GroupVersionKind, value: Any, formed: Mapping[str, Any] = _NOTHING
    ) -> tuple[dict[str, Any], list[str]]:
        """Decode a parsed JSON value to the form of responses; also return the unknown fields.

        Parts of it that are known to be as they are written, `formed`, are taken as they are.
        """
        return _decoded(self._decoders, self._struct(gvk), value, formed)

    def decode_request(
        self, gvk: GroupVersionKind, value: Any, formed: Mapping[str, Any] = _NOTHING
    ) -> tuple[dict[str, Any], list[str]]:
        """Do the same for a request's body: until it is stored, an empty list is not null."""
        return _decoded(self._request_decoders, self._struct(gvk), value, formed)

    def decode_struct(self, struct: str, value: Any) -> tuple[dict[str, Any], list[str]]:
        """Do the same for a type that is no kind, named as in the table: `meta/v1.ObjectMeta`."""
        return _decoded(self._decoders, struct, value, _NOTHING)

    def arranged(self, gvk: GroupVersionKind, value: dict[str, Any]) -> dict[str, Any]:
        """Return a parsed value with its fields in the order of the kind's Go types."""
        return self._conversions.arranged(GoType("struct", self._struct(gvk)), value)

    def converted(self, gvk: GroupVersionKind, value: dict[str, Any]) -> dict[str, Any]:
        """Return a parsed value with its numbers wrapped to the kind's integers, as Go's conversion does."""
        return self._conversions.converted(GoType("struct", self._struct(gvk)), value)

    def conversion_problem(self, gvk: GroupVersionKind, value: Any) -> str | None:
        """Return Go's error for converting a parsed value to the kind, or None."""
        return self._conversions.problem(GoType("struct", self._struct(gvk)), value)

    def struct_problem(self, struct: str, value: Any) -> str | None:
        """Do the same for a type that is no kind."""
        return self._conversions.problem(GoType("struct", struct), value)

    def is_raw(self, gvk: GroupVersionKind, path: str) -> bool:
        """Return True if a path of an object is inside of a field that Go's decoder does not look into."""
        kind = GoType("struct", self._struct(gvk))
        for part in _PATH_PART.findall(path):
            while kind.form == "pointer" and kind.item is not None:
                kind = kind.item
            if kind.form in ("list", "map") and kind.item is not None:
                kind = kind.item
            elif kind.form == "struct":
                found = next(
                    (field for field in self._types.fields(kind.spelled) if field.name == part), None
                )
                if found is None:
                    return False
                kind = found.type
            else:
                # What is no object is read whole: what looks like a field of it is part of a map's key.
                return kind.form == "leaf" and kind.spelled not in PLAIN_LEAVES
        return False

    def zero(self, gvk: GroupVersionKind) -> dict[str, Any]:
        """Write what Go writes for a new, empty object of the kind."""
        known = self._zeroes.get(gvk)
        if known is None:
            made = self.decode(gvk, {"kind": gvk.kind, "apiVersion": gvk.api_version})[0]
            known = self._zeroes[gvk] = msgspec.json.encode(made)
        return msgspec.json.decode(known)

    def decode_protobuf(
        self, body: bytes, default: GroupVersionKind | None = None
    ) -> tuple[GroupVersionKind, dict[str, Any]]:
        """Read a protobuf request body; the default names its kind where the body does not."""
        api_version, kind, data = envelope(body)
        gvk = GroupVersionKind.parse(api_version, kind)
        if default is not None:
            gvk = GroupVersionKind(*(gvk[:2] if api_version else default[:2]), kind or default.kind)
        raw = self._readers.read(self._struct(gvk), data)
        value, _ = self.decode(gvk, {"kind": gvk.kind, "apiVersion": gvk.api_version} | raw)
        return gvk, value

    def encode_protobuf(self, document: Mapping[str, Any]) -> bytes:
        """Write an object, a list or a Status in protobuf, with the envelope that names its kind."""
        api_version, kind = document.get("apiVersion", ""), document["kind"]
        message = self.protobuf_message(GroupVersionKind.parse(api_version, kind), document)
        return write_envelope(api_version, kind, message)

    def protobuf_message(self, gvk: GroupVersionKind, document: Mapping[str, Any]) -> bytes:
        """Write an object in protobuf as lists contain it: without an envelope."""
        return self._writers.write(self._struct(gvk), document)

    def protobuf_list(
        self, api_version: str, kind: str, metadata: Mapping[str, Any], items: Iterable[bytes]
    ) -> bytes:
        """Write a list in protobuf from the messages of its items."""
        head = self._writers.write(_LIST_META, metadata)
        return write_envelope(api_version, kind, write_list(head, items))

    def merge_schema(self, gvk: GroupVersionKind) -> MergeSchema:
        """Return how server-side apply merges the kind."""
        return self._merge_schemas.struct(self._struct(gvk))

    def patch_schema(self, gvk: GroupVersionKind) -> TypePatchSchema:
        """Return how strategic merge patches treat the kind."""
        return TypePatchSchema(self._types, GoType("struct", self._struct(gvk)), {})

    def dropped_fields(self, gvk: GroupVersionKind) -> DroppedFields | None:
        """Return the fields of a kind that the release drops because their feature gates are off, or None."""
        return self._dropped_fields.find(self._struct(gvk))

    @cached_property
    def _dropped_fields(self) -> DroppedFieldFinder:
        return DroppedFieldFinder(self._types, self.release.dropped_fields)

    def openapi(self, group_version: str) -> bytes:
        """Return the OpenAPI v3 document of a served group version (`v1`, `apps/v1`)."""
        name = (
            f"apis__{group_version.replace('/', '__')}" if "/" in group_version else f"api__{group_version}"
        )
        return self.release.openapi(name)

    def discovery(self) -> Sequence[BuiltinVersion]:
        """List the served group versions and their resources."""
        return self._discovery

    @cached_property
    def _discovery(self) -> list[BuiltinVersion]:
        return msgspec.convert(self.release.discovery, list[BuiltinVersion])

    def _find(self, gvk: GroupVersionKind) -> str | None:
        found = self._types.kinds.get(f"{gvk.group}/{gvk.version}", {}).get(gvk.kind)
        return found or self._types.kinds[_OPTIONS].get(gvk.kind)

    def _struct(self, gvk: GroupVersionKind) -> str:
        struct = self._find(gvk)
        if struct is None:
            raise UnknownKind(gvk)
        return struct


def _decoded(
    decoders: Decoders, struct: str, value: Any, formed: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    unknown: list[str] = []
    try:
        try:
            if formed:
                decoded = decoders.around(struct, value, formed, unknown)
            else:
                decoded = decoders.struct(struct)(value, unknown)
        except (TypeMismatch, WireDecodeError):
            decoders.raise_own_error(struct, value)
            raise
    except TypeMismatch as mismatch:
        raise WireDecodeError(mismatch.text()) from None
    except RecursionError:
        raise WireDecodeError(TOO_DEEP) from None
    if unknown:
        unknown = [f'unknown field "{path}"' for path in dict.fromkeys(unknown)][:_MAX_STRICT_ERRORS]
    return decoded, unknown


def load_types(release: KubernetesRelease | None = None) -> TypeTable:
    """Load the table of a release, by default the project's; the same one each time."""
    return _table(release or KubernetesRelease.find())


@cache
def _table(release: KubernetesRelease) -> TypeTable:
    return TypeTable(release)
