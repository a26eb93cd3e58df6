"""Protobuf bodies, as Go clients send them."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import GroupVersionKind
from kubewright.devserver.data import RELEASE
from kubewright.devserver.wire import WireDecodeError, load_types, parse_json, parse_yaml

TYPES = load_types()
GOLDEN = (
    Path(os.environ.get("GOMODCACHE", Path.home() / "go/pkg/mod"))
    / f"k8s.io/api@v0.{RELEASE.removeprefix('1.')}/testdata/HEAD"
)


def field(number: int, value: bytes | int) -> bytes:
    """Encode one protobuf field; the tests' values are short."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def body(api_version: str, kind: str, data: bytes) -> bytes:
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, meta) + field(2, data)


CONFIG_MAP = field(1, field(1, b"a") + field(3, b"t")) + field(2, field(1, b"k") + field(2, b"v"))


def test_reads_delete_options() -> None:
    data = field(1, 0) + field(2, field(1, b"uid-1")) + field(4, b"Background")
    assert TYPES.decode_protobuf(body("apps/v1", "DeleteOptions", data)) == (
        GroupVersionKind("apps", "v1", "DeleteOptions"),
        {
            "kind": "DeleteOptions",
            "apiVersion": "apps/v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid-1"},
            "propagationPolicy": "Background",
        },
    )


def test_reads_objects_into_the_same_form_as_json() -> None:
    gvk, value = TYPES.decode_protobuf(body("v1", "ConfigMap", CONFIG_MAP))
    sent = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "t"},
        "data": {"k": "v"},
    }
    assert value == TYPES.decode(gvk, sent)[0]


def test_takes_the_kind_from_the_request_when_the_body_has_none() -> None:
    default = GroupVersionKind("", "v1", "ConfigMap")
    gvk, value = TYPES.decode_protobuf(body("", "", CONFIG_MAP), default)
    assert gvk == default
    assert value["kind"] == "ConfigMap"


def test_reads_negative_and_large_numbers() -> None:
    data = field(2, field(2, (1 << 64) - 5))
    _, value = TYPES.decode_protobuf(body("coordination.k8s.io/v1", "Lease", data))
    assert value["spec"] == {"leaseDurationSeconds": -5}


def test_skips_fields_it_does_not_know() -> None:
    _, value = TYPES.decode_protobuf(body("v1", "ConfigMap", CONFIG_MAP + field(15, b"new")))
    assert value["data"] == {"k": "v"}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (body("v1", "ConfigMap", CONFIG_MAP)[:-1], "unexpected EOF"),
        (body("v1", "ConfigMap", CONFIG_MAP[:-1]), "unexpected EOF"),
        (body("v1", "ConfigMap", b"\x80"), "unexpected EOF"),
        (body("v1", "ConfigMap", b"\xff" * 11), "proto: integer overflow"),
        (body("v1", "ConfigMap", b"\x00\x00"), "proto: illegal tag 0 (wire type 0)"),
        (body("v1", "ConfigMap", b"\x0b"), "proto: illegal wireType 3"),
        (body("v1", "Nope", b""), 'no kind "Nope" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'),
    ],
)  # fmt: skip
def test_refuses_truncated_and_foreign_messages(data: bytes, text: str) -> None:
    with pytest.raises(WireDecodeError) as problem:
        TYPES.decode_protobuf(data)
    assert str(problem.value) == text


def test_refuses_messages_nested_without_end() -> None:
    data = b""
    for _ in range(200):
        data = field(27, data)[:0] + bytes([27 << 3 & 127 | 2 | 128, 27 >> 4]) + varint(len(data)) + data
    crd = field(2, field(7, field(4, field(1, data))))
    with pytest.raises(WireDecodeError):
        TYPES.decode_protobuf(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd))


@given(st.sampled_from(["v1 Pod", "apps/v1 Deployment", "v1 Secret", "v1 Event"]), st.binary(max_size=120))
def test_never_fails_but_with_a_decode_error(kind: str, data: bytes) -> None:
    with contextlib.suppress(WireDecodeError):
        TYPES.decode_protobuf(body(*kind.split(), data))


@pytest.mark.skipif(not GOLDEN.exists(), reason="the published golden objects are not on this machine")
@pytest.mark.parametrize("form", ["pb", "json", "yaml"])
def test_agrees_with_the_published_golden_objects(form: str) -> None:
    checked = 0
    for file in sorted(GOLDEN.glob(f"*.{form}")):
        golden = json.loads(file.with_suffix(".json").read_bytes())
        gvk = GroupVersionKind.parse(golden.get("apiVersion", ""), golden.get("kind", ""))
        if not TYPES.has(gvk):
            continue
        if form == "pb":
            value = TYPES.decode_protobuf(file.read_bytes())[1]
        else:
            parsed, problems = (parse_json if form == "json" else parse_yaml)(file.read_bytes())
            value, unknown = TYPES.decode(gvk, parsed)
            assert (problems, unknown) == ([], [])
        assert json.dumps(value) == json.dumps(golden), file.name
        checked += 1
    assert checked > 80


@pytest.mark.skipif(not GOLDEN.exists(), reason="the published golden objects are not on this machine")
def test_writes_the_published_golden_objects_byte_for_byte() -> None:
    checked = 0
    for file in sorted(GOLDEN.glob("*.pb")):
        golden = json.loads(file.with_suffix(".json").read_bytes())
        if TYPES.has(GroupVersionKind.parse(golden.get("apiVersion", ""), golden.get("kind", ""))):
            assert TYPES.encode_protobuf(golden) == file.read_bytes(), file.name
            checked += 1
    assert checked > 80


def test_writes_empty_values_that_are_no_pointers_and_reads_them_back() -> None:
    lease = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "a"},
        "spec": {"leaseTransitions": -1, "renewTime": "2026-01-02T03:04:05.000006Z"},
    }
    written = TYPES.encode_protobuf(lease)
    assert field(2, b"") in written  # generateName
    assert TYPES.decode_protobuf(written)[1] == lease
