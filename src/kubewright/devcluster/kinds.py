"""Every kind a server has, for controllers that care for all of them."""

from kubewright.api import Kind
from kubewright.client import Client

_NEEDED = frozenset({"list", "watch", "delete"})
# The same objects under another name: deleting them twice would only find them gone.
_ALIASES = frozenset({("events.k8s.io", "events"), ("extensions", "ingresses")})


async def deletable_kinds(client: Client) -> list[Kind]:
    """Discover the kinds whose objects can be listed, watched and deleted, one version each."""
    found: dict[tuple[str, str], Kind] = {}
    for resource in await client.api_resources():
        kind = resource.kind
        if set(resource.verbs) >= _NEEDED and (kind.group, kind.plural) not in _ALIASES:
            found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())
