"""Compile Go types into functions that turn parsed JSON into what Go would write after reading it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubewright.devserver.objects import is_list, is_object
from kubewright.devserver.wire import scalars
from kubewright.devserver.wire.errors import TypeMismatch, WireDecodeError, json_sort
from kubewright.devserver.wire.gotypes import OMITZERO, GoField, GoType, GoTypes, scalar_name

# (JSON value, unknown fields found so far) -> wire value
Decode = Callable[[Any, list[str]], Any]

_LEAVES: dict[str, Decode] = {
    "meta/v1.Time": scalars.time,
    "meta/v1.MicroTime": scalars.microseconds,
    "meta/v1.FieldsV1": scalars.raw,
    "resource.Quantity": scalars.quantity,
    "intstr.IntOrString": scalars.int_or_string,
    "runtime.RawExtension": scalars.raw,
    "apiextensions/v1.JSON": scalars.sorted_json,
    "any": scalars.raw,
}
PLAIN_LEAVES = ("meta/v1.Time", "meta/v1.MicroTime", "resource.Quantity", "intstr.IntOrString")
_LEAF_ZEROES: dict[str, Any] = {"resource.Quantity": "0", "intstr.IntOrString": 0}
_BOUNDS = {"int32": scalars.INT32, "int64": scalars.INT64, "int": scalars.INT64}
_RESOURCES = "core/v1.ResourceList"
_SCHEMA = "apiextensions/v1.JSONSchemaProps"

# How a decoded field is encoded: always, omitted if empty, omitted if None, null if empty, omitted if zero.
_KEEP, _DROP_EMPTY, _DROP_NONE, _EMPTY_IS_NULL, _DROP_ZERO = range(5)


class _Row(NamedTuple):
    place: int
    text: str
    """Go's name of plain strings, which need no decoder."""
    decode: Decode
    mode: int
    zero: Any
    embedded: tuple[str, ...]


# Go's defaults and validation treat an empty list in these fields, which is refused, differently from an absent one.
_EMPTY_IS_GIVEN = {
    ("autoscaling/v2.HPAScalingRules", "policies"),
    ("core/v1.EphemeralContainer", "ports"),
    ("core/v1.EphemeralContainer", "resizePolicy"),
    ("core/v1.EphemeralContainer", "restartPolicyRules"),
}
# The same for a field of a struct that other structs have, too.
_EMPTY_IS_GIVEN_IN = {("core/v1.PodSpec", "resources"): "claims"}
# Kinds of these packages are stored as JSON, which keeps empty lists; protobuf, as the others are, does not.
_STORED_AS_JSON = ("apiextensions/v1.", "apiregistration/v1.")


class Decoders:
    """Compiled decoders by type, each compiled at its first use.

    With `stored` values come out as they do from storage: empty lists and maps that Go writes are null then.
    """

    def __init__(self, types: GoTypes, *, stored: bool) -> None:
        self._types = types
        self._stored = stored
        self._structs: dict[str, Decode] = {}

    def struct(self, name: str) -> Decode:
        """Return the decoder of a struct; recursive types find themselves through it."""
        known = self._structs.get(name)
        if known is None:
            known = self._structs[name] = self._compile_struct(name)
        return known

    def around(
        self, name: str, value: Mapping[str, Any], formed: Mapping[str, Any], unknown: list[str]
    ) -> Any:
        """Decode a struct of which some fields, named with their values in `formed`, need no decoding."""
        rest = {key: item for key, item in value.items() if key not in formed}
        found = {**self.struct(name)(rest, unknown), **formed}
        return {field.name: found[field.name] for field in self._types.fields(name) if field.name in found}

    def raise_own_error(self, name: str, value: Any) -> None:
        """Raise the first error of a type that decodes itself (times, quantities), if there is one.

        Go stops at such an error; it remembers another one, such as a number in place of a string, and goes on.
        """
        self._raise_own_error(GoType("struct", name), value)

    def _raise_own_error(self, go_type: GoType, value: Any) -> None:
        form, item = go_type.form, go_type.item
        if value is None or form in {"scalar", "bytes"}:
            return
        if form == "struct":
            self._raise_own_error_of_fields(go_type.spelled, value)
        elif form == "pointer" and item is not None:
            self._raise_own_error(item, value)
        elif form in {"list", "map"} and item is not None:
            members: Any = value if form == "list" and is_list(value) else ()
            if form == "map" and is_object(value):
                members = value.values()
            for member in members:
                self._raise_own_error(item, member)
        else:
            self.of(go_type)(value, [])

    def _raise_own_error_of_fields(self, name: str, value: Any) -> None:
        fields = {field.name: field for field in self._types.fields(name)}
        for key, item in value.items() if is_object(value) else ():
            field = fields.get(key)
            if field is None:
                continue
            try:
                self._raise_own_error(field.type, item)
            except TypeMismatch as mismatch:
                mismatch.struct = mismatch.struct or name.rsplit(".", 1)[-1]
                mismatch.fields[:0] = [*field.embedded, key]
                raise

    def _late(self, name: str) -> Decode:
        def decode(value: Any, unknown: list[str]) -> Any:
            return self.struct(name)(value, unknown)

        return self._structs.get(name, decode)

    def _compile_struct(self, name: str) -> Decode:
        fields = self._types.fields(name)
        empty_mode = _EMPTY_IS_NULL if self._stored and not name.startswith(_STORED_AS_JSON) else _KEEP
        rows = {field.name: self._row(place, field, empty_mode) for place, field in enumerate(fields)}
        # Earlier releases do not have all of these fields.
        for struct, given in _EMPTY_IS_GIVEN:
            if name == struct and given in rows and not self._stored:
                rows[given] = rows[given]._replace(mode=_KEEP)
        for (struct, field), given in _EMPTY_IS_GIVEN_IN.items():
            if name == struct and field in rows and not self._stored:
                rows[field] = rows[field]._replace(decode=_keeping_empty(given, rows[field].decode))
        absent = [(field.name, self._zero_maker(field.type)) for field in fields if _always_written(field)]
        return _struct_decoder(name, rows, absent)

    def _row(self, place: int, field: GoField, empty_mode: int) -> _Row:
        form = field.type.form
        zero = None
        if field.flags & OMITZERO:
            mode, zero = _DROP_ZERO, self._zero(field.type)
        elif form == "pointer":
            mode = _DROP_NONE if field.omitempty else _KEEP
        elif form in {"list", "map", "bytes"}:
            mode = _DROP_EMPTY if field.omitempty else empty_mode
        elif form == "scalar":
            mode = _DROP_EMPTY if field.omitempty else _KEEP
        else:
            mode = _KEEP
        inner = field.type.item if form == "pointer" and field.type.item is not None else field.type
        plain = inner.form == "scalar" and scalar_name(inner) == "string"
        text = inner.reflected if plain else ""
        return _Row(place, text, self.of(field.type), mode, zero, field.embedded)

    def _zero_maker(self, go_type: GoType) -> Callable[[], Any]:
        if go_type.form == "struct":
            name = go_type.spelled
            return lambda: self.struct(name)({}, [])
        zero = self._zero(go_type)
        return lambda: zero

    def _zero(self, go_type: GoType) -> Any:
        if go_type.form == "scalar":
            return {"string": "", "bool": False}.get(scalar_name(go_type), 0)
        if go_type.form == "struct":
            return self.struct(go_type.spelled)({}, [])
        return _LEAF_ZEROES.get(go_type.spelled)

    def of(self, go_type: GoType) -> Decode:
        """Return the decoder of any type expression."""
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            return self.of(item)
        if form == "struct":
            return self._late(go_type.spelled)
        if form == "bytes":
            return scalars.octets
        if form == "list" and item is not None:
            return self._list(go_type, item)
        if form == "map" and item is not None:
            return self._map(go_type, item)
        if form == "scalar":
            return _scalar(scalar_name(go_type), go_type.reflected)
        return self._schema_or(go_type.spelled) or _LEAVES[go_type.spelled]

    def _list(self, go_type: GoType, item: GoType) -> Decode:
        decode_item, zero, reflected = self.of(item), self._zero_maker(item), go_type.reflected

        def decode(value: Any, unknown: list[str]) -> list[Any]:
            if not is_list(value):
                raise TypeMismatch(json_sort(value), reflected)
            found: list[Any] = []
            for index, member in enumerate(value):
                before = len(unknown)
                found.append(zero() if member is None else decode_item(member, unknown))
                if len(unknown) != before:
                    _prefix(unknown, before, f"[{index}]")
            return found

        return decode

    def _map(self, go_type: GoType, item: GoType) -> Decode:
        decode_item = scalars.amount if go_type.spelled == _RESOURCES else self.of(item)
        # No bytes in a map, such as the data of a Secret, are written as an empty text.
        zero = str if item.form == "bytes" else self._zero_maker(item)
        reflected = go_type.reflected

        def decode(value: Any, unknown: list[str]) -> dict[str, Any]:
            if not is_object(value):
                raise TypeMismatch(json_sort(value), reflected)
            found: dict[str, Any] = {}
            for key, member in value.items():
                before = len(unknown)
                found[key] = zero() if member is None else decode_item(member, unknown)
                if len(unknown) != before:
                    _prefix(unknown, before, key)
            return dict(sorted(found.items())) if len(found) > 1 else found

        return decode

    def _schema_or(self, name: str) -> Decode | None:
        """Decode the CRD types that are a schema or something simpler; inside them Go is not strict."""
        if not name.startswith(f"{_SCHEMA}Or"):
            return None
        schema = self._late(_SCHEMA)
        strings = self._list(GoType("list", "[]string"), GoType("scalar", "string"))

        def or_bool(value: Any, _: list[str]) -> Any:
            if is_object(value):
                return schema(value, [])
            if isinstance(value, bool):
                return value
            raise WireDecodeError("boolean or JSON schema expected")

        def or_array(value: Any, _: list[str]) -> Any:
            if is_object(value):
                return schema(value, [])
            return [schema(item, []) for item in value] if is_list(value) and value else None

        def or_strings(value: Any, _: list[str]) -> Any:
            if is_object(value):
                return schema(value, [])
            return strings(value, []) if is_list(value) and value else None

        forms = {"Bool": or_bool, "Array": or_array, "StringArray": or_strings}
        return forms[name.removeprefix(f"{_SCHEMA}Or")]


def _struct_decoder(name: str, rows: dict[str, _Row], absent: list[tuple[str, Callable[[], Any]]]) -> Decode:
    """Make a struct's decoder; it is what every request spends its time in, so it calls nothing it need not."""
    reflected = GoType("struct", name).reflected
    short = name.rsplit(".", 1)[-1]
    order = tuple(rows)
    get = rows.get

    def decode(value: Any, unknown: list[str]) -> dict[str, Any]:
        if not is_object(value):
            raise TypeMismatch(json_sort(value), reflected)
        found: dict[str, Any] = {}
        last, ordered = -1, True
        key = ""
        try:
            for key, item in value.items():
                row = get(key)
                if row is None:
                    unknown.append(key)
                    continue
                if item is None:
                    continue
                place, text, decode_item, mode, zero, _ = row
                if text:
                    if item.__class__ is not str:
                        raise TypeMismatch(json_sort(item), text)
                else:
                    before = len(unknown)
                    item = decode_item(item, unknown)
                    if len(unknown) != before:
                        _prefix(unknown, before, key)
                if item:
                    if mode == _DROP_ZERO and item == zero:
                        continue
                elif mode == _DROP_EMPTY:
                    continue
                elif mode == _EMPTY_IS_NULL:
                    item = None
                elif (mode == _DROP_NONE and item is None) or (mode == _DROP_ZERO and item == zero):
                    continue
                found[key] = item
                ordered = ordered and place > last
                last = place
        except TypeMismatch as mismatch:
            mismatch.struct = mismatch.struct or short
            mismatch.fields[:0] = [*rows[key].embedded, key]
            raise
        for key, make in absent:
            if key not in found:
                found[key], ordered = make(), False
        return found if ordered else {key: found[key] for key in order if key in found}

    return decode


def _keeping_empty(name: str, decode: Decode) -> Decode:
    """Return the decoder of a struct that keeps an empty list in a field."""

    def decode_with_empty(value: Any, unknown: list[str]) -> Any:
        found = decode(value, unknown)
        if value.get(name) == []:
            found[name] = []
        return found

    return decode_with_empty


def _always_written(field: GoField) -> bool:
    if field.flags & OMITZERO:
        return False
    return not field.omitempty or field.type.form in {"struct", "leaf"}


def _scalar(name: str, reflected: str) -> Decode:
    if name == "string":

        def text(value: Any, _: list[str]) -> str:
            if type(value) is not str:
                raise TypeMismatch(json_sort(value), reflected)
            return value

        return text
    if name == "bool":

        def truth(value: Any, _: list[str]) -> bool:
            if type(value) is not bool:
                raise TypeMismatch(json_sort(value), reflected)
            return value

        return truth
    if name == "float64":

        def real(value: Any, _: list[str]) -> float:
            if type(value) is not int and type(value) is not float:
                raise TypeMismatch(json_sort(value), reflected)
            return value

        return real
    low, high = (0, 1 << 64) if name == "uint64" else (-_BOUNDS[name], _BOUNDS[name])

    def integer(value: Any, _: list[str]) -> int:
        if type(value) is not int or not low <= value < high:
            raise TypeMismatch(scalars.number_text(value), reflected)
        return value

    return integer


def _prefix(unknown: list[str], start: int, parent: str) -> None:
    """Put a field name or an index before the paths found below it."""
    unknown[start:] = [parent + path if path[:1] == "[" else f"{parent}.{path}" for path in unknown[start:]]
