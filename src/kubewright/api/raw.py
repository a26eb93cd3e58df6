"""Objects as caches keep them: their JSON bytes beside a small typed record of the metadata."""

from datetime import datetime
from typing import Literal, TypeVar

import msgspec

from kubewright.api.codec import decode
from kubewright.api.identity import ObjectKey
from kubewright.api.meta import OwnerReference
from kubewright.api.status import Status

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
T = TypeVar("T", bound=msgspec.Struct)


class PartialMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a kept object; managed fields stay unread."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        return ObjectKey(self.namespace, self.name)


class RawObject(msgspec.Struct, gc=False, frozen=True):
    """An object as bytes, with its metadata read."""

    meta: PartialMeta
    raw: bytes

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        return self.meta.key


class RawList(msgspec.Struct, gc=False, frozen=True):
    """One page of a list."""

    resource_version: str
    continue_: str
    items: list[RawObject]
    remaining: int | None = None


class WatchEvent(msgspec.Struct, gc=False, frozen=True):
    """One event of a watch; `status` tells what an ERROR is."""

    type: EventType
    object: RawObject
    status: Status | None = None


class _Item(msgspec.Struct, gc=False):
    metadata: PartialMeta


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct, gc=False):
    type: EventType
    object: msgspec.Raw


_items = msgspec.json.Decoder(_Item)
_lists = msgspec.json.Decoder(_List)
_events = msgspec.json.Decoder(_Event)


def raw_object(data: bytes) -> RawObject:
    """Read the metadata of an object and keep its bytes."""
    return RawObject(_read(_items, _Item, data).metadata, data)


def split_list(data: bytes) -> RawList:
    """Split a list into its objects, each with bytes of its own so that the page can be freed."""
    page = _read(_lists, _List, data)
    objects, read = list(map(bytes, page.items or ())), _items.decode
    try:
        items = [RawObject(read(raw).metadata, raw) for raw in objects]
    except (msgspec.DecodeError, UnicodeDecodeError):
        items = list(map(raw_object, objects))
    meta = page.metadata
    return RawList(meta.resource_version, meta.continue_, items, meta.remaining_item_count)


def decode_event(line: bytes) -> WatchEvent:
    """Read one line of a watch."""
    event = _read(_events, _Event, line)
    raw = bytes(event.object)
    if event.type == "ERROR":
        return WatchEvent(event.type, RawObject(PartialMeta(), raw), decode(Status, raw))
    return WatchEvent(event.type, raw_object(raw))


def _read(decoder: msgspec.json.Decoder[T], cls: type[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Nulls that real servers send, or no JSON at all: the thorough way tells which.
        return decode(cls, data)
