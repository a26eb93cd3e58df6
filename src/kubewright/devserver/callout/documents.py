"""Read the document that a webhook has answered with."""

from typing import Any, cast

from kubewright.devserver.callout.failures import CallFailed
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.wire import DecodeError, parse_json, parse_yaml

_GO_TYPE = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def read_document(body: bytes) -> JsonObject:
    """Read an answer as the real server does: as JSON, else as YAML; it has to be an object."""
    try:
        value = _value(body)
    except DecodeError as error:
        raise CallFailed(str(error)) from None
    if isinstance(value, dict):
        return cast(JsonObject, value)
    sorts: dict[type[object], str] = {list: "array", str: "string", bool: "bool"}
    sort = sorts.get(type(cast(object, value)), "number")
    raise CallFailed(
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {sort} into Go value of type {_GO_TYPE}"
    )


def _value(body: bytes) -> Any:
    try:
        return parse_json(body)[0]
    except DecodeError:
        return parse_yaml(body)[0]
