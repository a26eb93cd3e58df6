"""Types whose JSON form is their own: quantities, times, bytes, ints that may be strings, raw JSON."""

import base64
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from kubewright.api import Quantity, QuantityError
from kubewright.devserver.objects import is_list, is_object
from kubewright.devserver.wire.errors import TypeMismatch, WireDecodeError, json_sort
from kubewright.devserver.wire.times import micro_time, second_time

INT32 = 1 << 31
INT64 = 1 << 63
_STANDARD = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MAX_PLAIN = 1e21
_LINE_BREAKS = frozenset(b"\r\n")
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
    return _canonical(_number(value))


def amount(value: Any, unknown: list[str]) -> str:
    """Decode a quantity of a resource: as every quantity, then rounded up to thousandths."""
    return _rounded(quantity(value, unknown))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    try:
        return str(Quantity(text))
    except QuantityError as problem:
        raise WireDecodeError(str(problem)) from None


@lru_cache(maxsize=4096)
def _rounded(text: str) -> str:
    exact = Quantity(text)
    thousandths = Decimal(exact.milli()).scaleb(-3)
    return text if thousandths == exact.value else str(Quantity.of(thousandths, exact.format))


def int_or_string(value: Any, _: list[str]) -> int | str:
    """Decode `intstr.IntOrString`."""
    if type(value) is str or (type(value) is int and -INT32 <= value < INT32):
        return value
    raise TypeMismatch(number_text(value), "int32")


def raw(value: Any, _: list[str]) -> Any:
    """Decode `runtime.RawExtension` and `FieldsV1`: unchanged."""
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


def _octet(value: Any) -> int:
    if value is None:
        return 0
    if type(value) is int and 0 <= value < 256:
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    raise TypeMismatch(number_text(value) if is_number else json_sort(value), "uint8")


def octets(value: Any, _: list[str]) -> str:
    """Decode `[]byte`: base64 text, written again in the standard form, or a list of numbers."""
    if is_list(value):
        return base64.b64encode(bytes(map(_octet, value))).decode()
    if type(value) is not str:
        raise TypeMismatch(json_sort(value), "[]uint8")
    data = value.encode()
    if not _STANDARD.fullmatch(data):
        fault = _base64_fault(data)
        if fault is not None:
            raise WireDecodeError(f"illegal base64 data at input byte {fault}")
    return base64.b64encode(base64.b64decode(data)).decode()


def _base64_fault(data: bytes) -> int | None:
    """Return the offset of Go's base64 error, or None; line breaks are skipped, padding is required."""
    at, end = 0, len(data)
    while at < end:
        digits = 0
        while digits < 4:
            if at == end:
                return at - digits if digits else None
            byte = data[at]
            at += 1
            if byte in _BASE64:
                digits += 1
            elif byte == 0x3D:
                return at - 1 if digits < 2 else _padding_fault(data, at, pad_follows=digits == 2)
            elif byte not in _LINE_BREAKS:
                return at - 1
    return None


def _padding_fault(data: bytes, at: int, *, pad_follows: bool) -> int | None:
    at = _past_line_breaks(data, at)
    if pad_follows:
        if at == len(data):
            return at
        if data[at] != 0x3D:
            return at - 1
        at = _past_line_breaks(data, at + 1)
    return at if at < len(data) else None


def _past_line_breaks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _LINE_BREAKS:
        at += 1
    return at


def number_text(value: Any) -> str:
    """Describe a value offered for a Go number: the number itself when it is one."""
    return f"number {_number(value)}" if type(value) in {int, float} else json_sort(value)


def _number(value: float) -> str:
    """Return a number as it was sent; one beyond 64 bits that was made a float as Go writes it to JSON."""
    if type(value) is float and INT64 <= abs(value) < _MAX_PLAIN:
        return f"{Decimal(repr(value)):f}"
    return str(value)
