"""The apiVersion and kind of a document, found before anything else is decoded, as kube-apiserver does."""

from typing import Any

from kubewright.devserver.objects import JsonObject, is_object
from kubewright.devserver.wire.errors import WireDecodeError, json_sort

PARSE_ERROR = "couldn't get version/kind; json parse error: "
_GO_TYPE = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_NAMES = {"apiversion": "apiVersion", "kind": "kind"}


def find_kind(value: Any) -> JsonObject:
    """Return the apiVersion and kind of a document as Go finds them, whose decoder ignores the case of names here.

    Raise WireDecodeError if the document is not an object, or one of them is not a string.
    """
    if not is_object(value):
        raise WireDecodeError(
            f"{PARSE_ERROR}json: cannot unmarshal {json_sort(value)} into Go value of type {_GO_TYPE}"
        )
    found: JsonObject = {}
    error = ""
    for key, item in value.items():
        name = _NAMES.get(key.lower())
        if name is None or item is None:
            continue
        if isinstance(item, str):
            found[name] = item
        elif not error:
            error = f"json: cannot unmarshal {json_sort(item)} into Go struct field .{name} of type string"
    if error:
        raise WireDecodeError(f"{PARSE_ERROR}{error}")
    return found
