"""CRDs of kinds that the server does not serve yet: a feed reads its kind at once when the CRD is established.

A feed whose kind is not served retries with backoff, which needs no permissions beyond those on the kind. The watch
of the CRD only shortens that pause. It is limited to one CRD by name, and it is the only request for which the
generated roles have no rule: without permission to watch CRDs, the feed continues with the backoff.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from kubewright.api import Kind, RawObject
from kubewright.cache.selection import Selection
from kubewright.cache.source import ListerWatcher
from kubewright.cache.watcher import Applied, Failed, watch_forever

DEFINITION = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
    builtin=True,
)

_log = logging.getLogger("kubewright.cache")


class DefinitionWatches:
    """Watch the CRD of each kind that is missing, and call `established` when the server serves the kind."""

    def __init__(self, source: ListerWatcher, established: Callable[[Kind], None]) -> None:
        self._source = source
        self._established = established
        self._tasks: dict[Kind, asyncio.Task[None]] = {}

    def missing(self, kind: Kind, group: asyncio.TaskGroup) -> None:
        """Watch the CRD of a kind that the server does not serve, unless that is done already."""
        if not kind.builtin and kind not in self._tasks:
            self._tasks[kind] = group.create_task(self._watch(kind), name=f"watch CRD {kind.resource}")

    def served(self, kind: Kind) -> None:
        """End the watch: the server serves the kind."""
        if task := self._tasks.pop(kind, None):
            task.cancel()

    def clear(self) -> None:
        """Drop the watches, which have ended with their task group."""
        self._tasks.clear()

    async def _watch(self, kind: Kind) -> None:
        name = f"{kind.plural}.{kind.group}"
        selection = Selection(DEFINITION, fields=f"metadata.name={name}")
        async with aclosing(watch_forever(self._source, selection)) as arrivals:
            async for events in arrivals:
                for event in events:
                    if isinstance(event, Applied) and _is_served(event.object, kind.version):
                        self._established(kind)
                    elif isinstance(event, Failed) and event.refused:
                        # Keep the task, so that this is logged only once until the kind is served.
                        _log.info(
                            "No permission to watch the CRD %s: checking every few seconds whether it is there",
                            name,
                        )
                        return


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Version(msgspec.Struct):
    name: str
    served: bool = False


class _Spec(msgspec.Struct):
    versions: list[_Version]


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Definition(msgspec.Struct):
    spec: _Spec
    status: _Status | None = None


_definition = msgspec.json.Decoder(_Definition)


def _is_served(definition: RawObject, version: str) -> bool:
    """Return True if the server has established the CRD and serves this version of it."""
    found = _definition.decode(definition.raw)
    # Before the server has processed a new CRD, its conditions are null.
    conditions = (found.status and found.status.conditions) or []
    return any(one.name == version and one.served for one in found.spec.versions) and any(
        (one.type, one.status) == ("Established", "True") for one in conditions
    )
