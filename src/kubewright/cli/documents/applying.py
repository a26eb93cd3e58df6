"""Apply an object and report the result in the words of `kubectl apply`."""

from typing import Literal

from kubewright.api import JsonObject, Kind, NotFound
from kubewright.client import Client

ApplyResult = Literal["created", "configured", "unchanged"]

_VOLATILE = ("managedFields", "resourceVersion")


async def apply_document(client: Client, document: JsonObject, kind: Kind, field_manager: str) -> ApplyResult:
    """Apply an object; return whether it was created, configured or unchanged."""
    meta: JsonObject = document["metadata"]
    try:
        before = await client.get(kind, meta["name"], meta.get("namespace", ""))
    except NotFound:
        before = None
    after = await client.apply(document, field_manager=field_manager, kind=kind)
    if before is None or before["metadata"]["uid"] != after["metadata"]["uid"]:
        return "created"
    return "unchanged" if _content(before) == _content(after) else "configured"


def _content(document: JsonObject) -> JsonObject:
    """Return an object without its status, which its controller may write in between, and without server-set metadata."""
    meta = {name: value for name, value in document["metadata"].items() if name not in _VOLATILE}
    return {name: value for name, value in document.items() if name != "status"} | {"metadata": meta}
