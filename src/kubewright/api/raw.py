"""Encoded objects, as caches hold them: JSON bytes with a small typed record of the metadata."""

import sys
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from kubewright.api.codec import decode
from kubewright.api.errors import DecodeError
from kubewright.api.failures import Status
from kubewright.api.identity import ObjectKey, key_of_pair
from kubewright.api.meta import OwnerReference
from kubewright.api.pieces import elements, members

WatchEventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
T = TypeVar("T", bound=msgspec.Struct)
_ITEMS = b'"items":['
_NONE = msgspec.Raw(b"null")


class PartialMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of an encoded object; labels and annotations are decoded on demand, managed fields never."""

    # In the order in which servers write them, where reading finds them fastest.
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    # A dict costs more than finding out where it ends, and is one more that the garbage collector follows.
    label_data: msgspec.Raw = msgspec.field(default=_NONE, name="labels")
    annotation_data: msgspec.Raw = msgspec.field(default=_NONE, name="annotations")
    # Empty tuples are shared: a list for each object would be two more that the garbage collector follows.
    owner_references: Sequence[OwnerReference] = ()
    finalizers: Sequence[str] = ()
    managed_fields: msgspec.Raw = msgspec.Raw()

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels, decoded for each call."""
        return _texts(self.label_data)

    @property
    def annotations(self) -> dict[str, str]:
        """Return the annotations, decoded for each call."""
        return _texts(self.annotation_data)

    @property
    def key(self) -> ObjectKey:
        """Return namespace and name."""
        return key_of_pair((self.namespace, self.name))

    def settle(self) -> None:
        """Copy views of the page that contained the object, so that the page can be freed."""
        # Ten thousand objects of one namespace and one template need not hold its name and labels each.
        self.namespace = sys.intern(self.namespace)
        self.label_data = _shared(bytes(self.label_data))
        self.annotation_data = self.annotation_data.copy()
        self.managed_fields = self.managed_fields.copy()


@lru_cache(maxsize=1024)
def _shared(data: bytes) -> msgspec.Raw:
    return msgspec.Raw(data)


class RawObject(msgspec.Struct, gc=False, frozen=True, eq=False):
    """An object as bytes, with decoded metadata; the bytes may be a view of a page of a list."""

    meta: PartialMeta
    data: bytes
    start: int = 0
    stop: int = sys.maxsize

    @property
    def raw(self) -> bytes:
        """Return the JSON bytes of the whole object."""
        return self.data[self.start : self.stop]

    def owned(self) -> "RawObject":
        """Return the object with its own copy of the bytes, so that its page can be freed."""
        if self.stop == sys.maxsize:
            return self
        self.meta.settle()
        return RawObject(self.meta, self.raw)

    def copied(self) -> "RawObject":
        """Return the object with a copy of its metadata on the same bytes, so that it can be changed."""
        return RawObject(replace(self.meta), self.data, self.start, self.stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawObject) and self.meta == other.meta and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

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
    shard_selector: str = ""
    """The selector of the server's `shardInfo`: empty if the server says nothing about shards."""


class WatchEvent(msgspec.Struct, gc=False, frozen=True):
    """One event of a watch; `status` describes an ERROR."""

    type: WatchEventType
    object: RawObject
    status: Status | None = None


class _Item(msgspec.Struct, gc=False):
    metadata: PartialMeta


class _ShardInfo(msgspec.Struct, gc=False):
    selector: str = ""


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
    shard_info: _ShardInfo | None = None

    def page(self, items: list[RawObject]) -> RawList:
        """Return the page that this is the metadata of."""
        selector = self.shard_info.selector if self.shard_info is not None else ""
        return RawList(self.resource_version, self.continue_, items, self.remaining_item_count, selector)


class _List(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _EventType(msgspec.Struct, gc=False):
    type: WatchEventType


class _Event(msgspec.Struct, gc=False):
    type: WatchEventType
    object: msgspec.Raw


_items = msgspec.json.Decoder(_Item)
_metas = msgspec.json.Decoder(PartialMeta)
_list_metas = msgspec.json.Decoder(_ListMeta)
_text_maps = msgspec.json.Decoder(dict[str, str] | None)
_lists = msgspec.json.Decoder(_List)
_events = msgspec.json.Decoder(_Event)


def raw_object(data: bytes) -> RawObject:
    """Decode the metadata of an object and keep its bytes."""
    try:
        return RawObject(_read(_items, _Item, data).metadata, data)
    except RecursionError:
        # One invalid object must not hide all others: decoding it completely reports the error.
        return RawObject(_read(_metas, PartialMeta, _shallow(members(data).get("metadata", b""))), data)


def _shallow(metadata: bytes) -> bytes:
    """Remove the managed fields, which are nested as deeply as the object."""
    kept = (
        b"%b:%b" % (msgspec.json.encode(name), value)
        for name, value in members(metadata).items()
        if name != "managedFields"
    )
    return b"{%b}" % b",".join(kept)


def split_list(data: bytes) -> RawList:
    """Split a list into its objects, which share the bytes of the page; `owned` copies one."""
    try:
        return _cut(data) or _parted(data)
    except RecursionError:
        found = members(data)
        meta = _read(_list_metas, _ListMeta, found.get("metadata", b""))
        items = [raw_object(item) for item in elements(found.get("items", b"[]"))]
        return meta.page(items)


def _parted(data: bytes) -> RawList:
    """Split a page of any format."""
    page = _read(_lists, _List, data)
    objects, read = list(map(bytes, page.items or ())), _items.decode
    try:
        items = [RawObject(read(raw).metadata, raw) for raw in objects]
    except (msgspec.DecodeError, UnicodeDecodeError):
        items = list(map(raw_object, objects))
    return page.metadata.page(items)


def _cut(data: bytes) -> RawList | None:
    """Split a page at the common beginning of its objects; return None if that is not possible.

    JSON objects end themselves: when each piece is one whole object and the page without them is a whole list, no other
    division is possible. So one reading does, where finding the pieces by parsing takes two.
    """
    start, stop = data.find(_ITEMS) + len(_ITEMS), data.rfind(b"}]") + 1
    # How each begins: `{"metadata":{"name":"` or, if each has its kind, `{"apiVersion":"example.com/v1","kind":"Widget`;
    # the version alone begins the entries of managed fields too.
    quotes = 8 if data.startswith(b'{"apiVersion":', start) else 4
    opening = b'"'.join(data[start : start + 800].split(b'"', quotes)[:quotes])
    if not opening.startswith(b'{"') or stop <= start:
        return None
    read, view = _items.decode, memoryview(data)
    items: list[RawObject] = []
    add = items.append
    try:
        page = _lists.decode(b"%b0%b" % (data[:start], data[stop:]))
        if [bytes(item) for item in page.items or ()] != [b"0"]:
            return None
        for end in _ends(data, b"}," + opening, start, stop):
            add(RawObject(read(view[start:end]).metadata, data, start, end))
            start = end + 1
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return page.metadata.page(items)


def _ends(data: bytes, separator: bytes, start: int, stop: int) -> list[int]:
    """Return the ends of the pieces: at each separator, whose first byte belongs to the piece, and at the stop."""
    ends: list[int] = []
    add, find = ends.append, data.find
    while (found := find(separator, start, stop)) >= 0:
        start = found + 1
        add(start)
    add(stop)
    return ends


def decode_event(line: bytes) -> WatchEvent:
    """Decode one line of a watch."""
    try:
        event = _read(_events, _Event, line)
    except RecursionError:
        found = members(line)
        kind = decode(_EventType, b'{"type":%b}' % found.get("type", b"null")).type
        event = _Event(kind, msgspec.Raw(found.get("object", b"null")))
    raw = bytes(event.object)
    if event.type == "ERROR":
        return WatchEvent(event.type, RawObject(PartialMeta(), raw), decode(Status, raw))
    return WatchEvent(event.type, raw_object(raw))


def _texts(data: msgspec.Raw) -> dict[str, str]:
    if data is _NONE:
        return {}
    try:
        return _text_maps.decode(data) or {}
    except msgspec.DecodeError as error:
        raise DecodeError(f"labels and annotations are texts: {error}") from error


def _read(decoder: msgspec.json.Decoder[T], cls: type[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Nulls that real servers send, or invalid JSON: the slow path reports which.
        return decode(cls, data)
