"""Types whose JSON form is their own: quantities, times, bytes, ints that may be strings, raw JSON."""

import base64
import binascii
from functools import lru_cache
from typing import Any

from kubewright.api import Quantity, QuantityError

from .errors import DecodeError, TypeMismatch, json_sort
from .times import micro_time, second_time
from .values import is_list, is_object

INT32 = 1 << 31
INT64 = 1 << 63
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def time(value: Any, _: list[str]) -> str | None:
    """Decode `metav1.Time`."""
    if type(value) is not str:
        raise TypeMismatch(json_sort(value), "string")
    return second_time(value)


def microseconds(value: Any, _: list[str]) -> str | None:
    """Decode `metav1.MicroTime`."""
    if type(value) is not str:
        raise TypeMismatch(json_sort(value), "string")
    return micro_time(value)


def quantity(value: Any, _: list[str]) -> str:
    """Decode `resource.Quantity` into its canonical text; JSON numbers are read as text too."""
    if isinstance(value, str):
        return _canonical(value)
    if isinstance(value, bool | list | dict):
        return _canonical("true")
    return _canonical(str(value))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    try:
        return str(Quantity(text))
    except QuantityError as problem:
        raise DecodeError(str(problem)) from None


def int_or_string(value: Any, _: list[str]) -> int | str:
    """Decode `intstr.IntOrString`."""
    if type(value) is str or (type(value) is int and -INT32 <= value < INT32):
        return value
    raise TypeMismatch(number_text(value), "int32")


def raw(value: Any, _: list[str]) -> Any:
    """Decode `runtime.RawExtension` and `FieldsV1`: kept as they came."""
    return value


def sorted_json(value: Any, _: list[str]) -> Any:
    """Decode `apiextensions.JSON`: read and written again, so with its keys in order."""
    return sort_keys(value)


def sort_keys(value: Any) -> Any:
    """Copy a JSON value with the keys of all its objects in order, as Go writes maps."""
    if is_object(value):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    if is_list(value):
        return [sort_keys(item) for item in value]
    return value


def octets(value: Any, _: list[str]) -> str:
    """Decode `[]byte`: base64 text, written again in the standard form."""
    if type(value) is not str:
        raise TypeMismatch(json_sort(value), "[]uint8")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return _lenient_base64(value)
    return value


def _lenient_base64(text: str) -> str:
    """Skip line breaks as Go does; name the first offending byte otherwise."""
    data = text.encode()
    digits = bytearray()
    ends_at = len(data)
    for position, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte == 0x3D:
            ends_at = position
            break
        if byte not in _BASE64:
            raise DecodeError(f"illegal base64 data at input byte {position}")
        digits.append(byte)
    padding = bytes(byte for byte in data[ends_at:] if byte not in b"\r\n")
    expected = -len(digits) % 4
    if expected == 3 or padding != b"=" * expected:
        raise DecodeError(f"illegal base64 data at input byte {_padding_fault(data, ends_at, expected)}")
    return base64.b64encode(base64.b64decode(bytes(digits) + padding)).decode()


def _padding_fault(data: bytes, ends_at: int, expected: int) -> int:
    """Say where Go gives up on wrong padding."""
    if ends_at == len(data):
        return len(data) // 4 * 4 if expected else len(data)
    if expected in {0, 3}:
        return ends_at
    return min(ends_at + expected, len(data))


def number_text(value: Any) -> str:
    """Describe a value offered for a Go number: the number itself when it is one."""
    return f"number {value}" if type(value) in {int, float} else json_sort(value)
