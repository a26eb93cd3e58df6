"""Watches: the current state if requested, then each change, from bytes that all watchers share."""

import asyncio
import contextlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubewright.devserver.core import Core
from kubewright.devserver.handlers.read import object_revision, wait_for_revision
from kubewright.devserver.handlers.selection import ObjectSelection
from kubewright.devserver.objects import JsonObject, decode, encode, with_revision
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.negotiation import PROTOBUF, ResponseFormat
from kubewright.devserver.request.options import ListParameters
from kubewright.devserver.storage import ADDED, DELETED, MODIFIED, Record, StoreEvent
from kubewright.devserver.strategy.tables import cells_of, columns_of, partial, table
from kubewright.devserver.wire import write_envelope, write_event
from kubewright.http.server import JSON, BodyWriter, Stream

MIN_SECONDS = 1800
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0
CONVERSION_SECONDS = 1.0
"""Seconds between calls of a conversion webhook that fails."""
BATCH_BYTES = 256 * 1024
INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(slots=True)
class WatchStream:
    """One client's watch."""

    core: Core
    chosen: ObjectSelection
    options: ListParameters
    format: ResponseFormat
    include: str
    context: RequestContext
    headers_sent: bool = False
    deadline: float = 0.0

    def response(self) -> Stream:
        """Start the watch; what cannot be watched is rejected before anything is sent."""
        revision = object_revision(self.options.resource_version)
        media = f"{PROTOBUF};stream=watch" if self.format.media == PROTOBUF else JSON
        return Stream(lambda writer: self._serve(writer, revision), media)

    async def _serve(self, writer: BodyWriter, revision: int) -> None:
        seconds = self.options.timeout or MIN_SECONDS * (1 + random.random())
        self.deadline = asyncio.get_running_loop().time() + seconds
        # A watch that cannot convert an object ends silently at its timeout, as in kube-apiserver.
        with contextlib.suppress(StatusError):
            await self._run(writer, revision)

    async def _run(self, writer: BodyWriter, revision: int) -> None:
        loop, deadline = asyncio.get_running_loop(), self.deadline
        collection = self.chosen.resource.collection
        epoch = collection.epoch
        if self._sends_state():
            if self.options.send_initial_events:
                try:
                    await wait_for_revision(self.core, revision)
                except StatusError as error:
                    await self._send_error(writer, error)
                    return
            cursor = self._newest()
            await self._send_state(writer, cursor)
        else:
            cursor = revision or self._newest()
            if cursor < collection.watch_floor:
                await self._send_expired(writer, cursor, collection.oldest)
                return
        bookmark = self._next_bookmark(loop.time(), deadline)
        while collection.epoch == epoch:
            now = loop.time()
            if now >= deadline:
                return
            if cursor < collection.watch_floor:
                await self._send_expired(writer, cursor, collection.oldest)
                return
            events = self._visible(collection.after(cursor))
            if events:
                cursor = await self._send_events(writer, events)
            elif self.options.bookmarks and now >= bookmark:
                # Read once: changes during a slow write are sent after the bookmark.
                reached = self._newest()
                # A cache that is behind the version the watch began with sends none until it has passed it.
                if reached >= cursor:
                    await writer.write(self._bookmark(reached))
                    cursor = reached
                bookmark = self._next_bookmark(now, deadline)
            else:
                await collection.changed(min(deadline, bookmark) if self.options.bookmarks else deadline)
        # What was stored before the end is still sent: a client would keep the deleted objects of a kind that is gone.
        end = self._newest()
        while cursor < end and (events := self._visible(collection.after(cursor))):
            cursor = await self._send_events(writer, events)

    def _newest(self) -> int:
        limit = self.context.max_visible_revision()
        return self.core.store.revision if limit is None else limit

    def _visible(self, events: list[StoreEvent]) -> list[StoreEvent]:
        limit = self.context.max_visible_revision()
        return events if limit is None else [event for event in events if event.revision <= limit]

    def _records(self, revision: int) -> list[Record]:
        collection = self.chosen.resource.collection
        if self.context.max_visible_revision() is None:
            return collection.records(self.chosen.prefix)
        return collection.page_at(revision, self.chosen.prefix, "")

    @staticmethod
    def _next_bookmark(now: float, deadline: float) -> float:
        last = deadline - LAST_BOOKMARK_SECONDS
        regular = now + BOOKMARK_SECONDS * random.uniform(0.9, 1.1)
        return min(regular, last) if now < last else deadline

    def _sends_state(self) -> bool:
        if self.options.send_initial_events is not None:
            return self.options.send_initial_events
        return self.options.resource_version in ("", "0")

    async def _send_state(self, writer: BodyWriter, revision: int) -> None:
        pieces: list[bytes] = []
        size = 0
        records = self._records(revision)
        await self._convert(records)
        for record in records:
            if self.chosen.whole or self.chosen.matches(record):
                pieces.append(self._frame(ADDED, record, record.revision))
                size += len(pieces[-1])
                if size > BATCH_BYTES:
                    await writer.write(b"".join(pieces))
                    pieces, size = [], 0
        # Also for watches that request initial events with resourceVersion 0 or none.
        if self.options.bookmarks:
            pieces.append(self._bookmark(revision, annotations=INITIAL_END))
        if pieces:
            await writer.write(b"".join(pieces))

    async def _send_events(self, writer: BodyWriter, events: list[StoreEvent]) -> int:
        """Send as many events as go well in one piece; return the revision that was reached."""
        pieces: list[bytes] = []
        size = 0
        cursor = events[-1].revision
        await self._prepare(events)
        for event in events:
            for piece in self._frames(event):
                pieces.append(piece)
                size += len(piece)
            if size > BATCH_BYTES:
                cursor = event.revision
                break
        if pieces:
            await writer.write(b"".join(pieces))
        return cursor

    async def _prepare(self, events: list[StoreEvent]) -> None:
        resource = self.chosen.resource
        if resource.converter is not None:
            seen = (record for event in events for record in (event.old, event.new) if record is not None)
            await self._convert(seen)

    async def _convert(self, records: Iterable[Record]) -> None:
        """Convert records to the watched version; while the conversion webhook fails, the watch waits and sends nothing."""
        resource, due, loop = self.chosen.resource, list(records), asyncio.get_running_loop()
        epoch = resource.collection.epoch
        while True:
            try:
                await resource.prepare(due)
                return
            except StatusError:
                await asyncio.sleep(CONVERSION_SECONDS)
                if loop.time() >= self.deadline or resource.collection.epoch != epoch:
                    raise

    def _frames(self, event: StoreEvent) -> Iterator[bytes]:
        chosen = self.chosen
        if not chosen.covers(event.key):
            return
        before = event.old if event.old is not None and (chosen.whole or chosen.matches(event.old)) else None
        after = event.new if event.new is not None and (chosen.whole or chosen.matches(event.new)) else None
        if after is not None:
            yield self._shared(event, MODIFIED if before is not None else ADDED, after)
        elif before is not None:
            yield self._shared(event, DELETED, before)

    def _shared(self, event: StoreEvent, kind: str, record: Record) -> bytes:
        if self.format.form != "object":
            return self._frame(kind, record, event.revision)
        shape = self.chosen.resource.form_key
        if self.format.media == PROTOBUF:
            shape += "+protobuf"
        return event.frame(kind, shape, lambda: self._frame(kind, record, event.revision))

    def _frame(self, kind: str, record: Record, revision: int) -> bytes:
        resource = self.chosen.resource
        if record.revision == revision and (self.format.media, self.format.form) == (PROTOBUF, "object"):
            message = resource.protobuf_message(self.core.types, record)
            return write_event(kind, write_envelope(resource.api_version, resource.kind, message))
        data = resource.render(record)
        if record.revision != revision:
            data = with_revision(data, revision, custom=resource.custom)
        if self.format.form != "object":
            data = self._form(decode(data))
        return self._event(kind, data)

    def _event(self, kind: str, data: bytes) -> bytes:
        """Return a frame of the stream from an object in JSON."""
        if self.format.media == PROTOBUF:
            return write_event(kind, self.core.types.encode_protobuf(decode(data)))
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), data)

    def _form(self, obj: JsonObject) -> bytes:
        version = self.format.version
        if self.format.form != "Table":
            return encode(partial(obj, version))
        headers, self.headers_sent = not self.headers_sent, True
        revision = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return encode(
            table(
                self.chosen.resource.strategy,
                [obj],
                revision,
                now=self.core.clock.seconds(),
                include=self.include,
                headers=headers,
                version=version,
            )
        )

    def _bookmark(self, revision: int, annotations: JsonObject | None = None) -> bytes:
        resource = self.chosen.resource
        metadata: JsonObject = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        obj: JsonObject = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if not resource.custom:
            obj = {**self.core.types.zero(resource.gvk), **obj}
        if self.format.form == "PartialObjectMetadata":
            obj = partial(obj, self.format.version)
        elif self.format.form == "Table":
            nameless: JsonObject = {**obj, "metadata": {"name": "", **metadata}}
            cells = cells_of(resource.strategy, nameless, self.core.clock.seconds())
            shown = partial(obj, self.format.version) if self.include != "None" else None
            columns = None if self.headers_sent else [item.wire() for item in columns_of(resource.strategy)]
            self.headers_sent = True
            obj = {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self.format.version}",
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": columns,
                "rows": [{"cells": cells, "object": shown}],
            }
        return self._event("BOOKMARK", encode(obj))

    async def _send_expired(self, writer: BodyWriter, revision: int, oldest: int) -> None:
        error = StatusError.expired(f"too old resource version: {revision} ({oldest})")
        await self._send_error(writer, error)

    async def _send_error(self, writer: BodyWriter, error: StatusError) -> None:
        await writer.write(self._event("ERROR", encode(error.wire())))
