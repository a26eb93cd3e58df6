"""All watches of one operator: one feed for each selection, started with its first user and stopped with its last."""

import asyncio
import gc
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar, cast

from kubewright.api import Kind
from kubewright.cache.definitions import DefinitionWatches
from kubewright.cache.feed import Feed, FeedOptions
from kubewright.cache.informer import Informer
from kubewright.cache.selection import Selection
from kubewright.cache.shard_streams import ShardStreams
from kubewright.cache.source import ListerWatcher
from kubewright.metrics import Registry

T = TypeVar("T")


class Cache:
    """Watch each selection once, however many informers use it and whatever their classes are.

    `field_managers` are the managers whose managed fields are kept with the objects. `streaming` fills
    informers by WatchList if the server supports it, instead of lists in pages. `pause_gc` stops
    Python's cyclic garbage collector while informers fill: a process that mostly fills a cache spends
    much of that time in it. Only a program should set it, not a library.
    """

    def __init__(
        self,
        source: ListerWatcher,
        *,
        metrics: Registry | None = None,
        sync_timeout: float = 120.0,
        field_managers: Collection[str] = (),
        streaming: bool = True,
        pause_gc: bool = False,
    ) -> None:
        filling: Callable[[], AbstractContextManager[None]] = (
            _CollectorPause().held if pause_gc else nullcontext
        )
        self._source = source
        self._definitions = DefinitionWatches(source, self._kind_established)
        self._options = FeedOptions(
            metrics=metrics or Registry(),
            sync_timeout=sync_timeout,
            field_managers=field_managers,
            streaming=streaming,
            filling=filling,
            kind_missing=self._kind_missing,
            kind_served=self._definitions.served,
        )
        self._feeds: dict[Selection, Feed] = {}
        self._informers: dict[tuple[Selection, type[Any]], Informer[Any]] = {}
        self._users: dict[Informer[Any], int] = {}
        self._tasks: dict[Feed, asyncio.Task[None]] = {}
        self._shard_streams: dict[int, ShardStreams] = {}
        self._group: asyncio.TaskGroup | None = None

    def shard_streams(self, numbers: Collection[int]) -> ShardStreams:
        """Return the streams that fill the informers of these shards, which are created next.

        Call `open_streams` when all of them are.
        """
        streams = ShardStreams(self._source, self._options, numbers, self._forget_streams)
        for number in numbers:
            self._shard_streams[number] = streams
        return streams

    def open_streams(self, streams: ShardStreams) -> None:
        """Begin to fill the informers of some shards; the cache runs."""
        if self._group is None:
            raise RuntimeError("shards are read while the cache runs")
        streams.start(self._group)

    def informer(self, selection: Selection, cls: type[T], *, optional: bool = False) -> Informer[T]:
        """Return the informer of this selection, started if the cache runs; call `release` when it is no longer used.

        `cls` is the class of its objects, or `dict` for JSON objects. With `optional` the cluster need not serve the
        kind, unless another user of the selection requires it.
        """
        informer = self._informers.get((selection, cls))
        if informer is None:
            feed = self._feeds.get(selection)
            if feed is None:
                feed = self._feeds[selection] = Feed(self._source, selection, self._options, required=False)
                if selection.shard is None:
                    self._start(feed)
                else:
                    self._shard_streams[selection.shard.number].add(feed)
            informer = self._informers[selection, cls] = Informer(feed, cls)
        if not optional:
            informer.feed.required = True
        self._users[informer] = self._users.get(informer, 0) + 1
        return cast("Informer[T]", informer)

    def release(self, informer: Informer[Any]) -> None:
        """Release an informer; a selection without users is no longer watched."""
        self._users[informer] -= 1
        if self._users[informer] > 0:
            return
        del self._users[informer]
        self._informers = {key: kept for key, kept in self._informers.items() if kept is not informer}
        informer.close()
        feed = informer.feed
        if any(kept.feed is feed for kept in self._informers.values()):
            return
        del self._feeds[feed.selection]
        if feed.selection.shard is not None:
            self._shard_streams[feed.selection.shard.number].remove(feed)
        task = self._tasks.pop(feed, None)
        if task is not None:
            task.cancel()
        feed.close()

    @property
    def feeds(self) -> list[Feed]:
        """Return what is watched."""
        return list(self._feeds.values())

    @property
    def problems(self) -> list[str]:
        """Return why some objects cannot be read, such as a missing kind or RBAC rule."""
        return [problem for feed in self.feeds for problem in feed.problems]

    async def run(self) -> None:
        """Run all watches, also those that are added later, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for feed in self.feeds:
                    self._start(feed)
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
            self._tasks.clear()
            self._definitions.clear()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until every selection in use has been read completely once."""
        for feed in self.feeds:
            await feed.wait_synced(timeout)

    def _kind_missing(self, kind: Kind) -> None:
        if self._group is not None:
            self._definitions.missing(kind, self._group)

    def _kind_established(self, kind: Kind) -> None:
        for feed in self.feeds:
            if feed.selection.kind == kind:
                feed.retry_now()

    def _forget_streams(self, ended: ShardStreams) -> None:
        self._shard_streams = {
            number: streams for number, streams in self._shard_streams.items() if streams is not ended
        }

    def _start(self, feed: Feed) -> None:
        if self._group is not None and feed.selection.shard is None:
            self._tasks[feed] = self._group.create_task(feed.run(), name=f"watch {feed.selection}")


class _CollectorPause:
    """Disable the cyclic garbage collector while at least one feed fills."""

    def __init__(self) -> None:
        self._holders = 0
        self._was_enabled = False

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """Disable it; it is enabled again, if it was, when the last block ends."""
        if self._holders == 0:
            self._was_enabled = gc.isenabled()
            gc.disable()
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0 and self._was_enabled:
                gc.enable()
