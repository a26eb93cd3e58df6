"""Read the children and the Events of an object from the cluster."""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from kubewright.api import ApiError, JsonObject, Kind
from kubewright.client import ApiResource, Client

_AT_ONCE = 8
_EVENT = Kind(group="", version="v1", kind="Event", plural="events", builtin=True)
# Kinds that no controller owns: Events, leases, and Endpoints, whose API is deprecated.
_SKIPPED = frozenset(
    {("", "events"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases"), ("", "endpoints")}
)


class RelatedObjects(msgspec.Struct, frozen=True):
    """The children and Events of an object; `unread` has the errors of reads that failed."""

    children: list[JsonObject] = []
    events: list[JsonObject] = []
    unread: list[str] = []


async def read_related(client: Client, found: JsonObject) -> RelatedObjects:
    """Read the children and the Events of an object."""
    metadata: JsonObject = found["metadata"]
    namespace, uid = metadata.get("namespace", ""), metadata["uid"]
    resources = _listable(await client.api_resources(), namespaced_only=bool(namespace))
    limit = asyncio.Semaphore(_AT_ONCE)
    unread: list[str] = []

    async def children_of(resource: ApiResource) -> list[JsonObject]:
        kind = resource.kind
        async with limit:
            try:
                listed = await client.list(kind, namespace=namespace if kind.namespaced else "")
            except ApiError as error:
                unread.append(str(error))
                return []
        return [each for each in listed if uid in owner_uids(each)]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(children_of(resource)) for resource in resources]
    children = [child for task in tasks for child in task.result()]
    events = list[JsonObject]()
    try:
        events = await client.list(
            _EVENT, namespace=namespace or "default", fields=f"involvedObject.uid={uid}"
        )
    except ApiError as error:
        unread.append(str(error))
    return RelatedObjects(children, events, sorted(unread))


def _listable(resources: Iterable[ApiResource], *, namespaced_only: bool) -> Sequence[ApiResource]:
    """Return one version of each kind that can be listed; a namespaced object has only namespaced children."""
    found: dict[tuple[str, str], ApiResource] = {}
    for resource in resources:
        kind = resource.kind
        name = (kind.group, kind.plural)
        if "list" in resource.verbs and name not in _SKIPPED and (kind.namespaced or not namespaced_only):
            found.setdefault(name, resource)
    return list(found.values())


def owner_uids(document: JsonObject) -> set[str]:
    """Return the uids of the owners of an object."""
    return {owner["uid"] for owner in document["metadata"].get("ownerReferences") or ()}
