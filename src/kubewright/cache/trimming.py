"""Trim objects before they are cached: remove managed fields that are not needed, transform, or keep only metadata.

If none of our field managers wrote an object, all its managedFields are removed. Otherwise the entries are kept that
can own a field that an entry of ours lists too: an apply may take such a field from its other owner, so whether it
would change anything depends on them (`controller/applying.py`).
"""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import compress

import msgspec

from kubewright.api import PartialMeta, RawObject, control_annotations, encode, parse, raw_object
from kubewright.cache.selection import Selection, Transform

_FIELD = b'"managedFields":'
_METADATA = b'"metadata":'
_NONE = msgspec.Raw()
_PLAIN = re.compile(r"[A-Za-z0-9 ._:@-]*")


class _Entry(msgspec.Struct, gc=False, rename="camel"):
    manager: str = ""
    fields_v1: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="fieldsV1")

    @property
    def parts(self) -> set[bool]:
        """Return the parts to which its fields belong: True for the status, False for the rest."""
        return {step == "f:status" for step in self.fields_v1 or ()}


class _Body(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_entries = msgspec.json.Decoder(list[msgspec.Raw])
_managers = msgspec.json.Decoder(list[_Entry])
_body = msgspec.json.Decoder(_Body)


class Trimmer:
    """Trim objects for one selection, keeping the managed fields that matter to these managers."""

    def __init__(self, selection: Selection, managers: Collection[str] = ()) -> None:
        self._managers = frozenset(managers)
        self._transform = selection.transform
        self._metadata_only = selection.metadata_only

    def trim(self, obj: RawObject) -> RawObject:
        """Return what to store of the object; the given record must not be used any more."""
        if self._metadata_only:
            # The response to a write is complete even if the watch sends only metadata.
            obj = raw_object(b'{"metadata":' + bytes(_body.decode(obj.raw).metadata) + b"}")
        kept = keep_managers(obj, self._managers)
        if self._transform is not None:
            kept = _transformed(kept, self._transform)
        return kept


def _transformed(obj: RawObject, transform: Transform) -> RawObject:
    made = raw_object(encode(transform(parse(obj.raw))))
    if _identity(made.meta) != _identity(obj.meta):
        raise ValueError("the transform must keep metadata.name, namespace, uid and resourceVersion")
    # A transform that drops annotations saves memory; it must not drop what pauses the object.
    if control_annotations(obj.meta) != control_annotations(made.meta):
        made.meta.annotation_data = obj.meta.annotation_data
    return made


def _identity(meta: PartialMeta) -> tuple[str, ...]:
    return meta.namespace, meta.name, meta.uid, meta.resource_version


def keep_managers(obj: RawObject, managers: frozenset[str]) -> RawObject:
    """Cut the entries that do not matter to these managers out of the object's bytes.

    The bytes are spliced, not decoded and encoded: managed fields are often a third of an object, and
    this runs for each one of a cold cache.
    """
    fields = bytes(obj.meta.managed_fields)
    if not fields:
        return obj.owned()
    kept = _kept_entries(fields, managers) if managers else b""
    if kept == fields:
        return obj.owned()
    raw = obj.raw
    start = raw.find(_FIELD)
    end = start + len(_FIELD) + len(fields)
    if start < 0 or raw[start + len(_FIELD) : end] != fields or not _is_only_place(raw, end):
        return _rebuilt(obj, kept)
    if kept:
        return _with_fields(obj.meta, raw[:start] + _FIELD + kept + raw[end:], kept)
    if raw[end : end + 1] == b",":
        end += 1
    elif raw[start - 1 : start] == b",":
        start -= 1
    return _with_fields(obj.meta, raw[:start] + raw[end:], b"")


def _is_only_place(raw: bytes, end: int) -> bool:
    """Return True if the fields found first, ending here, are certain to be those of the object itself."""
    # Where metadata is the first struct of the body, as servers write it, nothing nested comes before.
    brace = raw.find(b"{", 1)
    return raw.endswith(_METADATA, 0, brace) or raw.find(_FIELD, end) < 0


def _kept_entries(fields: bytes, managers: frozenset[str]) -> bytes:
    # Not `in`: bytes first try their operand as a number, and the error that this makes costs more than the search.
    if max(map(fields.find, _needles(managers))) < 0:
        return b""
    entries = _managers.decode(fields)
    ours = [entry for entry in entries if entry.manager in managers]
    if len(ours) == len(entries):
        return fields
    parts = {part for entry in ours for part in entry.parts}
    chosen = [entry.manager in managers or not parts.isdisjoint(entry.parts) for entry in entries]
    if all(chosen):
        return fields
    kept = [bytes(entry) for entry in compress(_entries.decode(fields), chosen)]
    return b"[" + b",".join(kept) + b"]" if kept else b""


@lru_cache(maxsize=64)
def _needles(managers: frozenset[str]) -> tuple[bytes, ...]:
    """Return texts of which one is in any fields that name one of the managers."""
    # JSON may spell other characters in several ways; the empty text is in everything.
    return tuple(f'"{name}"'.encode() if _PLAIN.fullmatch(name) else b"" for name in managers)


def _with_fields(meta: PartialMeta, raw: bytes, fields: bytes) -> RawObject:
    # The record's views of its page would keep the bytes before the splice alive.
    meta.managed_fields = msgspec.Raw(fields) if fields else _NONE
    meta.settle()
    return RawObject(meta, raw)


def _rebuilt(obj: RawObject, kept: bytes) -> RawObject:
    wire = parse(obj.raw)
    if kept:
        wire["metadata"]["managedFields"] = parse(kept)
    else:
        del wire["metadata"]["managedFields"]
    return _with_fields(obj.meta, encode(wire), kept)
