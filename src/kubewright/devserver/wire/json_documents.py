"""Read JSON bodies strictly, as Go's decoder does."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn, cast

from kubewright.devserver.objects import is_list, is_object
from kubewright.devserver.wire.errors import TOO_DEEP, WireDecodeError
from kubewright.devserver.wire.syntax import complaint
from kubewright.documents import MAX_DEPTH, depth_of

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_STRICT_ERRORS = 100
_INT64 = 1 << 63
_NO_SUCH_NUMBER = "json: cannot unmarshal number into Go value of type float64"


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """Parse a JSON body; also list repeated fields as `duplicate field "metadata.name"`."""
    text = body.decode("utf-8", "replace")
    repeated = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        built = dict(pairs)
        if len(built) != len(pairs):
            repeated = True
        return built

    decoder = json.JSONDecoder(object_pairs_hook=build, parse_float=_finite, parse_constant=_refuse)
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise WireDecodeError(complaint(body) or TOO_DEEP) from None
    except ValueError:
        raise WireDecodeError(complaint(body) or _NO_SUCH_NUMBER) from None
    if text.count("{") + text.count("[") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise WireDecodeError(TOO_DEEP)
    if "\\u" in text:
        value = _without_surrogates(value)
    return value, _duplicates(text) if repeated else []


def untyped(value: Any) -> Any:
    """Normalise a value without a Go type: keys in order, whole floats and huge integers as Go keeps them."""
    try:
        return _untyped(value)
    except RecursionError:
        raise WireDecodeError(TOO_DEEP) from None


def _untyped(value: Any) -> Any:
    if is_object(value):
        # Most values are texts, which are as they should be.
        return {key: value[key] if type(value[key]) is str else _untyped(value[key]) for key in sorted(value)}
    if is_list(value):
        return [_untyped(item) for item in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() and -_INT64 <= value < _INT64 else value
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return _as_float(value)
    return value


def _as_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        raise WireDecodeError(_NO_SUCH_NUMBER) from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _without_surrogates(value: Any) -> Any:
    """Replace half surrogate pairs, which no encoder could write, as Go's decoder does."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if is_object(value):
        return {_SURROGATE.sub("\ufffd", key): _without_surrogates(item) for key, item in value.items()}
    if is_list(value):
        return [_without_surrogates(item) for item in value]
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as pairs, with repeated keys."""


def _duplicates(text: str) -> list[str]:
    """Parse again as pairs to find the repeated fields."""
    tree = json.JSONDecoder(object_pairs_hook=_Pairs).decode(text)
    found = dict.fromkeys(f'duplicate field "{path}"' for path in _repeated(tree, ""))
    return list(found)[:_MAX_STRICT_ERRORS]


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _repeated(item, here)
    elif is_list(value):
        for index, item in enumerate(value):
            yield from _repeated(item, f"{path}[{index}]")


class _FieldPairs(list[tuple[str, Any]]):
    """An object of JSON with every key it has, repeated ones too."""


def in_document_order(body: bytes, complaints: list[str]) -> list[str]:
    """Sort errors such as `unknown field "a.b"` and `duplicate field "c"` by the position of the field."""
    document = json.loads(body, object_pairs_hook=_FieldPairs)
    places = {text: place for place, text in reversed(list(enumerate(_field_errors(document, ""))))}
    return sorted(complaints, key=lambda text: places.get(text, len(places)))


def _field_errors(value: Any, path: str) -> Iterator[str]:
    """Yield the possible errors of each field in document order."""
    if isinstance(value, _FieldPairs):
        seen: set[str] = set()
        for name, item in value:
            where = f"{path}.{name}" if path else name
            yield f'{"duplicate" if name in seen else "unknown"} field "{where}"'
            seen.add(name)
            yield from _field_errors(item, where)
    elif isinstance(value, list):
        for index, item in enumerate(cast(list[Any], value)):
            yield from _field_errors(item, f"{path}[{index}]")
