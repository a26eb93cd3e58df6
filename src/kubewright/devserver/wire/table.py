"""The type table: every built-in kind, how it reads, how it merges, where it is served."""

import lzma
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kubewright.api import GroupVersionKind
from kubewright.devserver.merge import MergeSchema
from kubewright.devserver.wire.conversion import Conversions
from kubewright.devserver.wire.decoding import Decoders
from kubewright.devserver.wire.errors import TOO_DEEP, TypeMismatch, UnknownKind, WireDecodeError
from kubewright.devserver.wire.gotypes import GoType, GoTypes
from kubewright.devserver.wire.protobuf import Readers, envelope
from kubewright.devserver.wire.protobuf_writing import Writers, write_envelope, write_list
from kubewright.devserver.wire.schemas import MergeSchemas, TypePatchSchema

_DATA = Path(__file__).parents[1] / "data"
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


class _Discovery(msgspec.Struct):
    groups: list[BuiltinVersion]


class TypeTable:
    """Built-in kinds as Go sees them; decoders and schemas are compiled when first used."""

    def __init__(self, types: GoTypes) -> None:
        self._types = types
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

    def conversion_problem(self, gvk: GroupVersionKind, value: Any) -> str | None:
        """Return Go's error for converting a parsed value to the kind, or None."""
        return self._conversions.problem(GoType("struct", self._struct(gvk)), value)

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

    def openapi(self, group_version: str) -> bytes:
        """Return the OpenAPI v3 document of a served group version (`v1`, `apps/v1`)."""
        name = (
            f"apis__{group_version.replace('/', '__')}" if "/" in group_version else f"api__{group_version}"
        )
        file = _DATA / "openapi" / f"{name}.json.xz"
        if not file.is_file():
            raise KeyError(group_version)
        return lzma.decompress(file.read_bytes())

    def discovery(self) -> Sequence[BuiltinVersion]:
        """List the served group versions and their resources."""
        return _discovery()

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


@cache
def load_types() -> TypeTable:
    """Load the table; the same one each time."""
    return TypeTable(GoTypes(msgspec.json.decode((_DATA / "types.json").read_bytes())))


@cache
def _discovery() -> list[BuiltinVersion]:
    return msgspec.json.decode((_DATA / "discovery.json").read_bytes(), type=_Discovery).groups
