"""The client interface of a cache: lists and watches of objects as bytes, with decoded metadata."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from kubewright.api import Kind, RawList, WatchEvent


class ListerWatcher(Protocol):
    """A client that lists and watches.

    Failures are KubewrightErrors; error responses of the server have a `status`.
    """

    def list_raw(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        shard_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[RawList, None]:
        """Yield the pages of one consistent list."""
        ...

    def watch_raw(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        initial_events: bool = False,
        shard_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield events, as many at once as have arrived, until the server ends the stream; raise if it breaks or stalls.

        The first yield is an empty sequence, as soon as the server has accepted the watch.
        """
        ...
