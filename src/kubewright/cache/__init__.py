"""Objects of the cluster kept at hand: read by key, by label or by index, told as changes.

Read in this order: `selection` (what to hold), `watcher` (how it is followed), `store` (what is known,
own writes included), `trimming`, `feed` (one selection), `indexes` and `informer` (a feed read as one class),
`cache` (all of them).
Needs a client only as a `Source`, so declaring an operator loads no I/O library.
"""

from kubewright.api import Index
from kubewright.cache.cache import Cache
from kubewright.cache.feed import CacheSyncTimeout, Feed
from kubewright.cache.informer import Informer
from kubewright.cache.selection import Selection, Transform
from kubewright.cache.source import Source
from kubewright.cache.store import Change
from kubewright.cache.undecodable import Undecodable
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
    "Change",
    "Deleted",
    "Failed",
    "Feed",
    "Index",
    "Informer",
    "Progressed",
    "Restarted",
    "Resumed",
    "Selection",
    "Source",
    "Synced",
    "Transform",
    "Undecodable",
    "WatchFailed",
    "watch_forever",
]
