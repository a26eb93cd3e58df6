"""Compatibility of new CRDs with the stored objects, checked before anything is changed."""

from collections.abc import Sequence

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, Forbidden, JsonObject, Kind, KubewrightError, NotFound
from kubewright.cli.progress import Progress
from kubewright.client import Client, requests
from kubewright.schema import BreakingChange, compare


class IncompatibleError(KubewrightError):
    """A CRD would change so that objects in the cluster break."""


async def check_compatible(
    client: Client, definitions: Sequence[JsonObject], progress: Progress, *, force: bool
) -> None:
    """Raise IncompatibleError listing changes that break stored objects; print warnings for those that break clients."""
    refused: list[str] = []
    for definition in definitions:
        name: str = definition["metadata"]["name"]
        live = await live_definition(client, name)
        found = compare(live, definition) if live is not None else []
        breaking = [change for change in found if change.affected == "stored objects"]
        if breaking and not force and not await _is_empty(client, live or {}):
            refused += [f"  {name}: {change}" for change in breaking]
        for change in found:
            if change not in breaking or force:
                progress.note(_warning(name, change))
    if refused:
        raise IncompatibleError(
            "the change would break objects stored in the cluster:\n"
            + "\n".join(refused)
            + "\nadd a new version and keep the old one, or pass --force to `kubewright install` or `kubewright deploy`"
        )


async def live_definition(client: Client, name: str) -> JsonObject | None:
    """Read a CRD from the cluster; return None if it does not exist."""
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITION, name)
    except NotFound:
        return None


def kind_in(definition: JsonObject) -> Kind:
    """Return the kind of a CRD, in the first served version."""
    spec = definition["spec"]
    served = [version for version in spec["versions"] if version.get("served", True)]
    return Kind(
        group=spec["group"],
        version=(served or spec["versions"])[0]["name"],
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )


def conversion_in(definition: JsonObject | None) -> JsonObject:
    """Return spec.conversion of a CRD, or an empty object."""
    found: JsonObject | None = definition["spec"].get("conversion") if definition is not None else None
    return found or {}


async def _is_empty(client: Client, live: JsonObject) -> bool:
    """Return True if no object is stored; assume that there are some without permission to list them."""
    try:
        response = await client.raw(requests.list_page(kind_in(live), limit=1))
    except NotFound:
        return True
    except Forbidden:
        return False
    return b'"items":[]' in response.body.replace(b" ", b"").replace(b"\n", b"")


def _warning(name: str, change: BreakingChange) -> str:
    return f"warning: {name}: {change} (affects {change.affected})"
