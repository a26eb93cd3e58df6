"""YAML bodies: version 1.1 as the real server's library reads it, bounded in depth and aliases."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver.wire import WireDecodeError, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("No", False),
        ("on", True),
        ("~", None),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("-7", -7),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("2001-01-01", "2001-01-01"),
        ("12:30", "12:30"),
        ('"yes"', "yes"),
        ("!!str 5", "5"),
        ("08", 8.0),
        ("0x", "0x"),
        ("yess", "yess"),
        ("99999999999999999999", 1e20),
    ],
)
def test_reads_scalars_as_yaml_1_1(text: str, value: object) -> None:
    found, problems = parse_yaml(f"key: {text}\n".encode())
    assert found == {"key": value}
    assert type(found["key"]) is type(value)
    assert problems == []


def test_keys_become_strings() -> None:
    assert parse_yaml(b"1: a\ntrue: b\n1.5: c\n")[0] == {"1": "a", "true": "b", "1.5": "c"}


def test_expands_aliases_and_merges() -> None:
    body = b"base: &b {a: 1, b: 2}\ncopy: *b\nmore:\n  <<: *b\n  b: 3\nlist: {<<: [{x: 1}, {x: 2, z: 2}]}\n"
    value, _ = parse_yaml(body)
    assert value["copy"] == {"a": 1, "b": 2}
    assert value["more"] == {"a": 1, "b": 3}
    assert value["list"] == {"x": 1, "z": 2}
    value["copy"]["a"] = 9
    assert value["base"]["a"] == 1


def test_reads_only_the_first_document() -> None:
    assert parse_yaml(b"a: 1\n---\nb: 2\n")[0] == {"a": 1}


def test_reports_repeated_keys_with_their_lines() -> None:
    value, problems = parse_yaml(b"a: 1\nb: 2\na: 3\n")
    assert value == {"a": 3, "b": 2}
    assert problems == ['line 3: key "a" already set in map']


def test_reports_a_repeated_key_after_those_in_its_value_at_the_line_of_the_value() -> None:
    _, problems = parse_yaml(b"a: 1\na:\n  b: 2\n  b: 3\n")
    assert problems == ['line 4: key "b" already set in map', 'line 3: key "a" already set in map']


def test_reads_json_and_reports_repeated_keys_as_yaml() -> None:
    repeated = ['line 1: key "b" already set in map']
    assert parse_yaml(b'{"a": {"b": 1, "b": 2}}') == ({"a": {"b": 2}}, repeated)
    assert parse_yaml(b"{a: yes}") == ({"a": True}, [])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"a: b: c", "yaml: mapping values are not allowed in this context"),
        (b"&a [*a]", "anchor 'a' value contains itself"),
        (b"a: *nope", "unknown anchor 'nope' referenced"),
        (b"[[[" * 2000, "exceeded max depth"),
        (b"a: .inf", "unsupported value"),
        (b"<<: 1", "map merge requires map or sequence of maps as the value"),
        (b"? [a]\n: b", "invalid map key"),
        (b"~: b", "unsupported map key"),
    ],
)
def test_refuses_values_that_json_does_not_have(body: bytes, text: str) -> None:
    with pytest.raises(WireDecodeError) as problem:
        parse_yaml(body)
    assert text in str(problem.value)


def test_refuses_an_alias_bomb() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(WireDecodeError, match="excessive aliasing"):
        parse_yaml("\n".join(lines).encode())


@given(st.binary(max_size=200))
def test_never_fails_but_with_a_decode_error(body: bytes) -> None:
    with contextlib.suppress(WireDecodeError):
        parse_yaml(body)
