"""YAML bodies of requests, with the messages of kube-apiserver."""

from typing import Any

from kubewright.devserver.wire.errors import WireDecodeError
from kubewright.devserver.wire.json_documents import parse_json
from kubewright.documents import DocumentError, read_yaml

_OF_THE_JSON_CONVERTER = {
    "unsupported value:": "json: ",
    "unsupported map key": "",
}
"""Errors of what turns YAML into JSON, by their beginnings, with the prefixes that they get."""


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Parse the first document of a YAML body; also return its repeated keys with their lines."""
    if body.lstrip()[:1] == b"{":
        try:
            value, repeated = parse_json(body)
        except WireDecodeError:
            pass  # flow style that is not JSON
        else:
            return value, _repeated_keys(body) if repeated else []
    try:
        for document in read_yaml(body):
            return document.value, document.repeated
    except DocumentError as error:
        text = str(error)
        prefixes = (prefix for start, prefix in _OF_THE_JSON_CONVERTER.items() if text.startswith(start))
        raise WireDecodeError(next(prefixes, "yaml: ") + text) from None
    return None, []


def yaml_errors(lines: list[str]) -> str:
    """Return the error of Go's YAML decoder for repeated keys."""
    return "".join(["yaml: unmarshal errors:", *(f"\n  {line}" for line in lines)])


def _repeated_keys(body: bytes) -> list[str]:
    return next((document.repeated for document in read_yaml(body)), list[str]())
