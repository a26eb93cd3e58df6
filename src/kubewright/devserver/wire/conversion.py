"""Go's errors for a value that does not match the type it is converted to, as after a strategic patch."""

from typing import Any

from kubewright.devserver.objects import is_list, is_object
from kubewright.devserver.wire.decoding import Decoders
from kubewright.devserver.wire.errors import TypeMismatch, WireDecodeError
from kubewright.devserver.wire.gotypes import INTEGERS, GoType, GoTypes, scalar_name

_SORTS: dict[type[object], str] = {
    dict: "map",
    list: "slice",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


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
        return value

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
            return None if is_list(value) else f"cannot restore slice from {_sort(value)}"
        try:
            self._decoders.of(go_type)(value, [])
        except TypeMismatch as mismatch:
            return mismatch.text()
        except WireDecodeError as error:
            return f"error decoding from json: {error}" if go_type.form == "bytes" else str(error)
        return None


def _sort(value: object) -> str:
    return _SORTS.get(type(value), "invalid")


def _scalar_problem(name: str, reflected: str, value: Any) -> str | None:
    sort = _sort(value)
    integral = name in INTEGERS
    fits = {
        "string": name == "string",
        "bool": name == "bool",
        "int64": integral or name == "float64",
        "float64": name == "float64" or (integral and sort == "float64" and value.is_integer()),
    }
    if fits.get(sort):
        return None
    # Go can make a text of an integer and an integer of a float, which JSON may not mean.
    if (sort, name) == ("int64", "string") or (sort == "float64" and integral):
        return f"cannot convert {sort} to {reflected}"
    return f"unrecognized type: {name}"
