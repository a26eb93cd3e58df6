"""OpenAPI v2 in protobuf, read back with the few rules of that format."""

from collections import defaultdict
from typing import Any

from kubewright.devserver.discovery.swagger import swagger_protobuf


def fields(data: bytes) -> dict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while place < len(data):
        key = varint()
        if key & 7 == 0:
            found[key >> 3].append(varint())
        else:
            size = 8 if key & 7 == 1 else varint()
            found[key >> 3].append(data[place : place + size])
            place += size
    return found


def test_definitions_come_with_their_types_and_extensions() -> None:
    gvk = [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {"$ref": "#/definitions/Spec"}, "size": {"type": "integer", "maximum": 4.0}},
        "x-kubernetes-group-version-kind": gvk,
    }
    document = fields(
        swagger_protobuf(
            {
                "swagger": "2.0",
                "info": {"title": "Kubernetes", "version": "v1"},
                "definitions": {"Deployment": schema},
            }
        )
    )
    assert document[1] == [b"2.0"]
    (named,) = fields(document[9][0])[1]
    name, body = fields(named)[1][0], fields(fields(named)[2][0])
    assert name == b"Deployment"
    assert fields(body[22][0])[1] == [b"object"]
    assert body[19] == [b"spec"]
    properties = {fields(each)[1][0]: fields(fields(each)[2][0]) for each in fields(body[25][0])[1]}
    assert properties[b"spec"][1] == [b"#/definitions/Spec"]
    assert len(properties[b"size"][7][0]) == 8
    extension = fields(body[31][0])
    assert extension[1] == [b"x-kubernetes-group-version-kind"]
    assert b'"kind": "Deployment"' in fields(extension[2][0])[2][0]
