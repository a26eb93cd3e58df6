"""JSON bodies: what is read, what is refused, in which words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver.objects import encode, encode_sorted
from kubewright.devserver.wire import WireDecodeError, parse_json, untyped

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{bad json", "invalid character 'b' looking for beginning of object key string"),
        (b"garbage", "invalid character 'g' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1', "unexpected end of JSON input"),
        (b"", "unexpected end of JSON input"),
        (b"nul", "unexpected end of JSON input"),
        (b"nulx", "invalid character 'x' in literal null (expecting 'l')"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"\\u00g0"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"{}x", "invalid character 'x' after top-level value"),
        (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
        (b"[" * 20_000, "exceeded max depth"),
    ],
)
def test_json_errors_have_the_messages_of_go(body: bytes, text: str) -> None:
    with pytest.raises(WireDecodeError) as problem:
        parse_json(body)
    assert str(problem.value) == text


def test_refuses_nesting_that_is_too_deep() -> None:
    assert parse_json(b"[" * 200 + b"]" * 200)[0]
    for depth in (201, 900, 9000):
        with pytest.raises(WireDecodeError, match="exceeded max depth"):
            parse_json(b'{"a":' * depth + b"1" + b"}" * depth)
    value: Any = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(WireDecodeError, match="exceeded max depth"):
        untyped(value)


@pytest.mark.parametrize("body", [b"1e999", b"-1e999", b"1" * 5000])
def test_refuses_numbers_that_no_float_holds(body: bytes) -> None:
    with pytest.raises(WireDecodeError, match="number"):
        parse_json(body)


def test_lists_repeated_fields_with_their_paths_and_keeps_the_last() -> None:
    body = b'{"metadata":{"name":"a","name":"b"},"l":[{"x":1,"x":2,"x":3}]}'
    value, problems = parse_json(body)
    assert value == {"metadata": {"name": "b"}, "l": [{"x": 3}]}
    assert problems == ['duplicate field "metadata.name"', 'duplicate field "l[0].x"']


def test_invalid_utf8_is_replaced_as_in_go() -> None:
    assert parse_json(b'{"a":"\xff"}')[0] == {"a": "\ufffd"}
    assert parse_json(b'"\\ud800x"')[0] == "\ufffdx"
    assert parse_json(b'"\\ud83d\\ude00"')[0] == "\U0001f600"


def test_escapes_the_characters_that_go_escapes() -> None:
    assert encode({"a": "<b>&\u2028\u2029"}) == b'{"a":"\\u003cb\\u003e\\u0026\\u2028\\u2029"}'


def as_floats(value: Any) -> Any:
    """Return a value with floats for numbers: Go writes large floats as integers."""
    if isinstance(value, dict):
        return {name: as_floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(JSON)
def test_encoded_documents_decode_to_equal_values(value: Any) -> None:
    found, repeated = parse_json(encode(value))
    assert (as_floats(found), repeated) == (as_floats(value), [])


def test_floats_have_exponents_where_go_writes_them() -> None:
    numbers = [2.0**63, -1e20, 1e21, 1e300, 0.0000015, 1e-7, 2.5]
    written = b"[9223372036854776000,-100000000000000000000,1e+21,1e+300,0.0000015,1e-7,2.5]"
    assert encode(numbers) == written
    assert encode_sorted(["1e20", "x,1e20]"]) == b'["1e20","x,1e20]"]'


@given(st.binary(max_size=200))
def test_never_fails_but_with_a_decode_error(body: bytes) -> None:
    try:
        value, _ = parse_json(body)
    except WireDecodeError:
        return
    encode(value)


@given(JSON)
def test_untyped_values_keep_their_meaning_with_keys_in_order(value: Any) -> None:
    kept = untyped(value)
    assert kept == value
    assert json.dumps(kept) == json.dumps(kept, sort_keys=True)


def test_untyped_numbers_are_what_go_keeps() -> None:
    kept = untyped({"whole": 1.0, "part": 1.5, "huge": 1 << 70})
    assert [type(kept[key]) for key in ("whole", "part", "huge")] == [int, float, float]
