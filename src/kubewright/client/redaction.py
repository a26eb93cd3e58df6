"""Remove the data of Secrets from messages: servers quote values that they reject."""

import base64
import binascii
import re
from typing import Any, cast

import msgspec

HIDDEN = "<hidden>"
_SECRET_FIELDS = ("data", "stringData")


def hide_secret_data(message: str, body: bytes) -> str:
    """Mask every value of a request for a Secret in a message."""
    for value in sorted(secret_values(body), key=len, reverse=True):
        if len(value) > 3:
            message = message.replace(value, HIDDEN)
        else:
            # A value this short would also be found inside words.
            message = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, message)
    return message


def secret_values(body: bytes) -> set[str]:
    """Collect the values of a Secret, of a patch of one, or of a list of patch operations, in every form they are quoted."""
    try:
        document: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return set()
    found: set[str] = set()
    if isinstance(document, list):
        for operation in cast("list[Any]", document):
            if isinstance(operation, dict):
                _collect(cast("dict[str, Any]", operation).get("value"), found)
    elif isinstance(document, dict):
        for field in _SECRET_FIELDS:
            _collect(cast("dict[str, Any]", document).get(field), found)
    return found - {""}


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, dict):
        for member in cast("dict[str, Any]", value).values():
            _collect(member, found)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            _collect(member, found)
    elif isinstance(value, str):
        found.add(value)
        found.add(msgspec.json.encode(value).decode()[1:-1])
        found.add(base64.b64encode(value.encode()).decode())
        try:
            found.add(base64.b64decode(value, validate=True).decode())
        except (binascii.Error, ValueError):
            pass
    elif value is not None and not isinstance(value, bool):
        found.add(str(value))
