"""Go's errors for a value that does not match the type it is converted to, as after a strategic patch."""

from typing import Any

from kubewright.devserver.objects import is_list, is_object
from kubewright.devserver.wire.decoding import Decoders
from kubewright.devserver.wire.errors import TypeMismatch, WireDecodeError
from kubewright.devserver.wire.gotypes import INTEGERS, GoType, GoTypes, scalar_name
from kubewright.devserver.wire.scalars import INT64, sort_keys

_SORTS: dict[type[object], str] = {
    dict: "map",
    list: "slice",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}
_BYTE = "uint8"
_BITS = {"int32": 32, "int64": 64, "int": 64}


class Conversions:
    """Walk a value as Go's conversion does: by the order in which structs declare their fields."""

    def __init__(self, types: GoTypes, decoders: Decoders) -> None:
        self._types = types
        self._decoders = decoders

    def problem(self, go_type: GoType, value: Any) -> str | None:
        """Return Go's error for the first value that does not match, or None."""
        if value is None:
            return None
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            return self.problem(item, value)
        if form == "scalar":
            return _scalar_problem(scalar_name(go_type), go_type.reflected, value)
        if form == "struct":
            return self._struct_problem(go_type.spelled, value)
        if form == "map" and item is not None:
            if not is_object(value):
                return f"cannot restore map from {_sort(value)}"
            return self._first(item, [value[key] for key in sorted(value)])
        if form == "list" and item is not None:
            return self._first(item, value) if is_list(value) else f"cannot restore slice from {_sort(value)}"
        return self._leaf_problem(go_type, value)

    def arranged(self, go_type: GoType, value: Any) -> Any:
        """Return the value with fields as their structs declare them, unknown ones last: as Go comes by them."""
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            return self.arranged(item, value)
        if form == "struct" and is_object(value):
            known = self._types.fields(go_type.spelled)
            found = {
                field.name: self.arranged(field.type, value[field.name])
                for field in known
                if field.name in value
            }
            return found | {name: value[name] for name in sorted(value) if name not in found}
        if form == "list" and item is not None and is_list(value):
            return [self.arranged(item, member) for member in value]
        if form == "map" and item is not None and is_object(value):
            return {key: self.arranged(item, member) for key, member in value.items()}
        return sort_keys(value)

    def converted(self, go_type: GoType, value: Any) -> Any:
        """Return the value with each number as Go's conversion makes it of the field's type: wrapped around."""
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            return self.converted(item, value)
        if form == "struct" and is_object(value):
            known = {field.name: field.type for field in self._types.fields(go_type.spelled)}
            return {
                name: self.converted(known[name], part) if name in known else part
                for name, part in value.items()
            }
        if form == "list" and item is not None and is_list(value):
            return [self.converted(item, member) for member in value]
        if form == "map" and item is not None and is_object(value):
            return {key: self.converted(item, member) for key, member in value.items()}
        bits = _BITS.get(scalar_name(go_type)) if form == "scalar" else None
        if bits is None or isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return _wrapped(value, bits)

    def _first(self, item: GoType, members: list[Any]) -> str | None:
        return next((found for member in members if (found := self.problem(item, member))), None)

    def _struct_problem(self, name: str, value: Any) -> str | None:
        if not is_object(value):
            return f"cannot restore struct from: {_sort(value)}"
        for field in self._types.fields(name):
            if found := self.problem(field.type, value.get(field.name)):
                return found
        return None

    def _leaf_problem(self, go_type: GoType, value: Any) -> str | None:
        if go_type.form == "bytes" and not isinstance(value, str):
            if not is_list(value):
                return f"cannot restore slice from {_sort(value)}"
            found = (_scalar_problem(_BYTE, _BYTE, member) for member in value if member is not None)
            return next((text for text in found if text), None)
        try:
            self._decoders.of(go_type)(float(value) if _sort(value) == "float64" else value, [])
        except TypeMismatch as mismatch:
            return mismatch.text()
        except WireDecodeError as error:
            return f"error decoding from json: {error}" if go_type.form == "bytes" else str(error)
        return None


def _wrapped(value: float, bits: int) -> int:
    """Return the lowest bits of a number; one beyond 64 bits, a float in Go, first becomes the least integer."""
    number = int(value) if -INT64 <= value < INT64 else -INT64
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _sort(value: object) -> str:
    if type(value) is int and not -INT64 <= value < INT64:
        return "float64"
    return _SORTS.get(type(value), "invalid")


def _scalar_problem(name: str, reflected: str, value: Any) -> str | None:
    sort = _sort(value)
    integral = name in INTEGERS or name == _BYTE
    fits = {
        "string": name == "string",
        "bool": name == "bool",
        "int64": integral or name == "float64",
        "float64": name == "float64" or (integral and sort == "float64" and value == int(value)),
    }
    if fits.get(sort):
        return None
    # Go can make a text of an integer and an integer of a float, which JSON may not mean.
    if (sort, name) == ("int64", "string") or (sort == "float64" and integral):
        return f"cannot convert {sort} to {reflected}"
    return f"unrecognized type: {name}"
