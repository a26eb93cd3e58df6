"""One list and watch of a kind for all shards that a replica has taken together.

Each shard has feeds of its own, so that its objects are dropped with it. The shards that a replica takes at the same time
share one stream for each selection: an object is read once, its hash is computed once, and it goes to the feed of its shard
or is dropped before anything of it is kept. Where the server can, it selects the objects by the same hash (`shard_selection`); a
child is in the shard of its owner, which no server knows, unless objects are divided by namespace. A stream never gets another shard: what is taken later has a stream of
its own, so the feeds that are filled are not disturbed.

A child can change its shard: if another object becomes its controller, the feed that held it is notified as if the child
had been deleted.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import ExitStack, aclosing

import msgspec

from kubewright.cache.feed import Feed, FeedOptions
from kubewright.cache.selection import Selection, ShardFilter
from kubewright.cache.shard_selection import ShardSelection
from kubewright.cache.source import ListerWatcher
from kubewright.cache.watcher import Applied, Deleted, Event, Events, watch_forever

_YIELD_AFTER = 500


class ShardStreams:
    """The streams of shards that were taken together; created by `Cache.shard_streams`."""

    def __init__(
        self,
        source: ListerWatcher,
        options: FeedOptions,
        numbers: Collection[int],
        ended: Callable[["ShardStreams"], None],
    ) -> None:
        self.numbers: frozenset[int] = frozenset(numbers)
        self._source = source
        self._options = options
        self._ended = ended
        self._streams: dict[Selection, _Stream] = {}
        self._group: asyncio.TaskGroup | None = None

    def add(self, feed: Feed) -> None:
        """Fill a feed of one of the shards, once `start` has been called."""
        base = _base(feed.selection)
        stream = self._streams.get(base)
        if stream is None:
            stream = self._streams[base] = _Stream(self._source, base, self._options, self.numbers)
        stream.add(feed)

    def remove(self, feed: Feed) -> None:
        """Stop filling a feed; a stream without feeds ends."""
        base = _base(feed.selection)
        stream = self._streams[base]
        if not stream.remove(feed):
            del self._streams[base]
        if not self._streams:
            self._ended(self)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Open the streams: all feeds have been added."""
        for stream in self._streams.values():
            stream.start(group)


class _Stream:
    """The stream of one selection; `feeds` by the number of their shard."""

    def __init__(
        self, source: ListerWatcher, base: Selection, options: FeedOptions, numbers: frozenset[int]
    ) -> None:
        assert base.shard is not None
        self._source = source
        self._route: ShardFilter = base.shard
        self._selection = msgspec.structs.replace(base, shard=None)
        self._options = options
        self._numbers = numbers
        self._feeds: dict[int, Feed] = {}
        self._retry_now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, feed: Feed) -> None:
        assert feed.selection.shard is not None
        if self._task is not None:
            raise RuntimeError(f"{feed.selection}: the stream of its shard is open already")
        feed.retry_event = self._retry_now
        self._feeds[feed.selection.shard.number] = feed

    def remove(self, feed: Feed) -> bool:
        """Remove a feed; return False if no other is left, and end."""
        assert feed.selection.shard is not None
        del self._feeds[feed.selection.shard.number]
        if not self._feeds and self._task is not None:
            self._task.cancel()
        return bool(self._feeds)

    def start(self, group: asyncio.TaskGroup) -> None:
        numbers = ", ".join(map(str, sorted(self._numbers)))
        self._task = group.create_task(self._run(), name=f"watch {self._selection} of shards {numbers}")

    async def _run(self) -> None:
        options, count = self._options, 0
        with ExitStack() as stack, ExitStack() as filling:
            filling.enter_context(options.filling())
            shards = self._server_selection()
            if shards is not None:
                stack.callback(shards.close)
            events = watch_forever(
                self._source,
                self._selection,
                streaming=options.streaming,
                metrics=options.metrics,
                retry_now=self._retry_now,
                shards=shards,
            )
            async with aclosing(events):
                async for arrived in events:
                    self._dispatch(arrived)
                    if all(feed.synced for feed in self._feeds.values()):
                        filling.close()
                    count += len(arrived)
                    if count >= _YIELD_AFTER:
                        # Yield to other tasks: a stream may always have data to read.
                        count = 0
                        await asyncio.sleep(0)

    def _server_selection(self) -> ShardSelection | None:
        route = self._route
        if route.by == "owner":
            return None
        return ShardSelection(
            self._source,
            self._selection,
            route.by,
            # Shards that were handed over meanwhile are left out when the watch is opened again.
            lambda: route.shards.ranges_of(self._feeds.keys()),
            self._options.metrics,
        )

    def _dispatch(self, arrived: Events) -> None:
        for event in arrived:
            for feed, dispatched in self._routed(event):
                feed.take((dispatched,))

    def _routed(self, event: Event) -> list[tuple[Feed, Event]]:
        """Return the feeds that an event concerns, each with the event as that feed sees it."""
        feeds = self._feeds
        if not isinstance(event, Applied | Deleted):
            return [(feed, event) for feed in feeds.values()]
        obj, numbers = event.object, self._route.numbers(event.object.meta)
        routed: list[tuple[Feed, Event]] = []
        key = obj.meta.key
        for number, feed in feeds.items():
            if number in numbers:
                # Trimming changes the record: a child with owners in two shards is stored twice.
                shared = isinstance(event, Applied) and len(numbers) > 1
                routed.append((feed, Applied(obj.copied()) if shared else event))
            elif key in feed.objects:
                routed.append((feed, event if isinstance(event, Deleted) else Deleted(obj.owned())))
        return routed


def _base(selection: Selection) -> Selection:
    """Return the selection that all shards of a stream have in common."""
    assert selection.shard is not None
    return msgspec.structs.replace(selection, shard=msgspec.structs.replace(selection.shard, number=-1))
