"""Bodies are read as a real server read them (data/decoding.json)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects import encode
from kubewright.devserver.wire import WireDecodeError, load_types, parse_json, parse_yaml

TYPES = load_types()
CORPUS = json.loads((Path(__file__).parent / "data" / "decoding.json").read_bytes())
KINDS = {
    (version.group, version.version, resource.name): resource.kind
    for version in TYPES.discovery()
    for resource in version.resources
}
READ = [answer for answer in CORPUS["answers"] if answer["status"] == 201]
# Refusals by decoding into the kind's type; objects of no kind and invalid ones are refused elsewhere.
REFUSED = [
    answer
    for answer in CORPUS["answers"]
    if answer["status"] == 400 and "into Go value of type struct" not in answer["message"]
]


def kind_of(path: str) -> GroupVersionKind:
    parts = path.strip("/").split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    return GroupVersionKind(group, version, KINDS[group, version, parts[-1]])


def read(answer: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    parse = parse_json if answer["type"] == "application/json" else parse_yaml
    value, repeated = parse(answer["body"].encode())
    decoded, unknown = TYPES.decode(kind_of(answer["path"]), value)
    return decoded, repeated + unknown


def missing(ours: Any, real: Any, path: str = "") -> list[str]:
    """List what we read and the real answer has otherwise; it has defaults besides."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [f for key in ours for f in missing(ours[key], real.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        return [
            f for n, pair in enumerate(zip(ours, real, strict=True)) for f in missing(*pair, f"{path}[{n}]")
        ]
    return [] if ours == real or ours in (None, "", 0, {}) else [path]


@pytest.mark.parametrize("answer", READ, ids=lambda answer: answer["body"][:60])
def test_objects_of_the_real_server_are_encoded_byte_for_byte(answer: dict[str, Any]) -> None:
    written = answer["answer"].strip()
    assert encode(TYPES.decode(kind_of(answer["path"]), json.loads(written))[0]).decode() == written


@pytest.mark.parametrize("answer", READ, ids=lambda answer: answer["body"][:60])
def test_bodies_are_decoded_as_by_the_real_server(answer: dict[str, Any]) -> None:
    decoded, problems = read(answer)
    real = json.loads(answer["answer"])
    for key in ("creationTimestamp", "generation", "managedFields", "uid"):
        decoded["metadata"].pop(key, None)
    decoded.pop("stringData", None)
    assert missing(decoded, real) == []
    reported = [
        warning.removeprefix('299 - "')[:-1].replace('\\"', '"').replace("\\\\n", "\n")
        for warning in answer["warnings"]
    ]
    assert sorted(problems) == sorted(reported)


@pytest.mark.parametrize("answer", REFUSED, ids=lambda answer: answer["body"][:60])
def test_bodies_are_refused_with_the_messages_of_the_real_server(answer: dict[str, Any]) -> None:
    with pytest.raises(WireDecodeError) as problem:
        read(answer)
    assert str(problem.value) in answer["message"]


@pytest.mark.parametrize("text", CORPUS["own"], ids=lambda text: text[:60])
def test_lists_of_the_real_server_are_written_again_byte_for_byte(text: str) -> None:
    value = json.loads(text)
    gvk = GroupVersionKind.parse(value["apiVersion"], value["kind"])
    assert encode(TYPES.decode(gvk, value)[0]).decode() == text.strip()
