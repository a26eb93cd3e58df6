"""Decode many lines of a watch at once: filling a cache may take ten thousand of them."""

import msgspec

from kubewright.api.raw import PartialMeta, RawObject, WatchEvent, WatchEventType, decode_event


class _Body(msgspec.Struct, gc=False):
    metadata: PartialMeta


class _Event(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    type: WatchEventType
    object: _Body


_events = msgspec.json.Decoder(_Event)
_OPENINGS: dict[str, bytes] = {
    name: b'{"type":"%b","object":' % name.encode() for name in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
}


def decode_events(lines: bytes) -> list[WatchEvent]:
    """Read whole lines of a watch; the events share their bytes, `owned` frees one of them."""
    try:
        read = _events.decode_lines(lines)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # An error, nulls that real servers send, one nested too deeply, or not an event: decoded line by line.
        return _one_by_one(lines)
    events: list[WatchEvent] = []
    at, find, openings = 0, lines.find, _OPENINGS
    for event in read:
        end = find(b"\n", at)
        if end < 0:
            end = len(lines)
        opening = openings.get(event.type)
        # The object is everything between a known beginning and the last brace: decoding the line has validated it.
        if opening is None or not lines.startswith(opening, at) or lines[end - 2 : end] != b"}}":
            return _one_by_one(lines)
        found = RawObject(event.object.metadata, lines, at + len(opening), end - 1)
        events.append(WatchEvent(event.type, found))
        at = end + 1
    return events


def _one_by_one(lines: bytes) -> list[WatchEvent]:
    return [decode_event(line) for line in lines.split(b"\n") if line]
