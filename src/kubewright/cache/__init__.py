"""Caches of objects, filled by watches: read by key, by label or by index; subscribers are notified of changes.

Read in this order: `selection` (what is cached), `watcher` (list and watch), `store` (the newest known states, including
our own writes), `trimming`, `feed` (one selection), `shard_streams` (one watch for several shards), `informer` (a feed read as
one class, with indexes), `cache` (all of them). The entry point is `Cache.informer`. The client is only a `ListerWatcher` here, so declaring an operator imports
no I/O library.
"""

from kubewright.api import Index
from kubewright.cache.cache import Cache
from kubewright.cache.feed import CacheSyncTimeout, Feed, Undecodable
from kubewright.cache.informer import Informer
from kubewright.cache.selection import Selection, ShardFilter, Transform
from kubewright.cache.shard_streams import ShardStreams
from kubewright.cache.source import ListerWatcher
from kubewright.cache.store import StoreChange
from kubewright.cache.watcher import (
    Applied,
    Deleted,
    Failed,
    Progressed,
    Restarted,
    Resumed,
    Synced,
    WatchFailed,
    watch_forever,
)

__all__ = [
    "Applied",
    "Cache",
    "CacheSyncTimeout",
    "Deleted",
    "Failed",
    "Feed",
    "Index",
    "Informer",
    "ListerWatcher",
    "Progressed",
    "Restarted",
    "Resumed",
    "Selection",
    "ShardFilter",
    "ShardStreams",
    "StoreChange",
    "Synced",
    "Transform",
    "Undecodable",
    "WatchFailed",
    "watch_forever",
]
