"""Select the objects of shards on the server where it does so by the same hash (`shardSelector` of KEP-5866).

What is kept never depends on this: every object is filtered on arrival. Sending the selector only saves reading the objects
of other shards. It is harmful in one case: a server that selects in another way would leave objects out. So before each list
and watch of a stream one object of the shards is requested, and the selector is sent only if

- the object is in the shards, and the server also finds it by the one hash that it has here, and
- the server's `shardInfo` repeats the selector. Lists of custom resources and of metadata have no `shardInfo` in
  Kubernetes 1.36 and 1.37: there the server must not find the object by all other hashes.

A missing `shardInfo` alone means nothing: servers without the feature, or with its gate off, ignore the parameter. A server
that is replaced between the question and the watch is asked at the next watch.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from kubewright.api import KubewrightError, RawList, RawObject, Status
from kubewright.api.sharding import (
    HashRange,
    ShardField,
    covering_ranges,
    remaining_ranges,
    shard_hash,
    shard_selector,
)
from kubewright.cache.selection import Selection
from kubewright.cache.source import ListerWatcher
from kubewright.metrics import Registry

_REJECTED = frozenset({400, 422, 500})
_ATTEMPTS = 3
"""Objects that are requested: one that was just deleted is found by no hash."""

_log = logging.getLogger("kubewright.cache")


class ShardSelection:
    """The selector of one stream: `selector` asks the server, `close` ends what the metrics show of the stream."""

    def __init__(
        self,
        source: ListerWatcher,
        selection: Selection,
        by: ShardField,
        ranges: Callable[[], Sequence[HashRange]],
        metrics: Registry,
    ) -> None:
        self._source = source
        self._selection = selection
        self._by: ShardField = by
        self._read_ranges = ranges
        self._is_served: bool | None = None
        self._streams = metrics.gauge(
            "kubewright_shard_streams",
            "Number of lists and watches of shards, by whether the server or this process selects the objects",
            ("resource", "selected_by"),
        )

    async def selector(self) -> str:
        """Return the selector to send with the next list or watch; empty if the server does not select as we do.

        Raise KubewrightError if the server cannot be asked.
        """
        ranges = covering_ranges(self._read_ranges())
        text = shard_selector(self._by, ranges)
        self._note(bool(text) and await self._confirmed(text, ranges))
        return text if self._is_served else ""

    def close(self) -> None:
        """Remove the stream from the metrics."""
        if self._is_served is not None:
            self._count(-1)
            self._is_served = None

    async def _confirmed(self, text: str, ranges: Sequence[HashRange]) -> bool:
        for _ in range(_ATTEMPTS):
            page = await self._list(text, self._selection.namespace)
            if page is None or page.shard_selector not in ("", text) or not page.items:
                return False
            found = page.items[0]
            hashed = shard_hash(found.meta.uid if self._by == "uid" else found.meta.namespace)
            if not any(hashed in one for one in ranges):
                return False
            exactly = [HashRange(hashed, hashed + 1)]
            if not page.shard_selector and await self._finds(found, remaining_ranges(exactly)):
                return False
            # Last, so that the object still existed when it was not found by other hashes. It may be deleted meanwhile.
            if await self._finds(found, exactly):
                return True
        return False

    async def _finds(self, obj: RawObject, ranges: Sequence[HashRange]) -> bool:
        """Return True if the server finds an object by its name in these ranges."""
        meta = obj.meta
        selector = shard_selector(self._by, ranges)
        page = await self._list(selector, meta.namespace, f"metadata.name={meta.name}")
        return page is not None and [item.meta.uid for item in page.items] == [meta.uid]

    async def _list(self, selector: str, namespace: str, fields: str = "") -> RawList | None:
        """Return the first object of a list; None if the server rejects the selector."""
        chosen = self._selection
        pages = self._source.list_raw(
            chosen.kind,
            namespace=namespace,
            fields=fields,
            limit=1,
            shard_selector=selector,
            metadata_only=chosen.metadata_only,
        )
        try:
            async with aclosing(pages):
                async for page in pages:
                    return page
        except KubewrightError as error:
            status = getattr(error, "status", None)
            if isinstance(status, Status) and status.code in _REJECTED and "shard" in status.message.lower():
                return None
            raise
        return None

    def _note(self, is_served: bool) -> None:
        if is_served == self._is_served:
            return
        if self._is_served is not None or is_served:
            _log.info(
                "The objects of shards of %s are selected by %s",
                self._selection,
                "the API server (shardSelector)" if is_served else "this process",
            )
        self.close()
        self._is_served = is_served
        self._count(1)

    def _count(self, difference: int) -> None:
        selected_by = "server" if self._is_served else "client"
        self._streams.labels(resource=self._selection.kind.resource, selected_by=selected_by).inc(difference)
