"""Encoding and decoding of SPDY 3.1 frames, as far as port forwarding needs them.

kubectl sends them inside a WebSocket and does not use flow control, so it is not implemented.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING = 1, 2, 3, 6
_CONTROL, _FIN = 0x80, 0x01
_CANCEL = 5
_MOST_HEADERS = 64 * 1024

# The initial compression dictionary of SPDY 3.
_WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age
allow authorization cache-control connection content-base content-encoding content-language content-length
content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since
if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate
proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning
www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"""
_REST = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    b"Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    b"Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    b"00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    b"application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset="
    b"iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    words = (word.replace("_", " ").encode() for word in _WORDS.split())
    return b"".join(struct.pack("!I", len(word)) + word for word in words) + _REST


DICTIONARY = _dictionary()


class SpdyError(ValueError):
    """The data is not valid SPDY."""


class Opened(NamedTuple):
    """The client opens a stream."""

    stream: int
    headers: dict[str, str]


class Data(NamedTuple):
    """Data of a stream; `last` means that the sender has no more."""

    stream: int
    data: bytes
    last: bool


class Reset(NamedTuple):
    """A stream was reset."""

    stream: int


class Ping(NamedTuple):
    """A ping of the client."""

    number: int


class SpdyReader:
    """Decode frames from a client; frames that port forwarding does not use are skipped."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Opened | Data | Reset | Ping]:
        """Add data and yield the complete frames."""
        self._waiting += data
        while len(self._waiting) >= 8:
            head, flags = bytes(self._waiting[:4]), self._waiting[4]
            end = 8 + int.from_bytes(self._waiting[5:8], "big")
            if len(self._waiting) < end:
                return
            body = bytes(self._waiting[8:end])
            del self._waiting[:end]
            if not head[0] & _CONTROL:
                yield Data(int.from_bytes(head, "big"), body, bool(flags & _FIN))
            elif int.from_bytes(head[:2], "big") & 0x7FFF != _VERSION:
                raise SpdyError("unknown frame version")
            else:
                yield from self._control(int.from_bytes(head[2:], "big"), flags, body)

    def _control(self, kind: int, flags: int, body: bytes) -> Iterator[Opened | Data | Reset | Ping]:
        if kind in (_SYN_STREAM, _RST_STREAM, _PING) and len(body) < 4:
            raise SpdyError("the frame is too short")
        number = int.from_bytes(body[:4], "big")
        if kind == _SYN_STREAM:
            yield Opened(number, self._headers(body[10:]))
            if flags & _FIN:
                yield Data(number, b"", last=True)
        elif kind == _RST_STREAM:
            yield Reset(number)
        elif kind == _PING:
            yield Ping(number)

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, _MOST_HEADERS)
            if self._inflate.unconsumed_tail:
                raise SpdyError("the headers are too large")
            return _pairs(plain)
        except (zlib.error, struct.error, UnicodeDecodeError):
            raise SpdyError("invalid headers") from None


def _pairs(plain: bytes) -> dict[str, str]:
    (count,), position = struct.unpack_from("!I", plain), 4
    words: list[str] = []
    for _ in range(2 * count):
        (size,) = struct.unpack_from("!I", plain, position)
        position += 4 + size
        words.append(plain[position - size : position].decode())
    return dict(zip(words[::2], words[1::2], strict=True))


class SpdyWriter:
    """Encode frames from the server."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._deflate.compress(struct.pack("!I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(_SYN_REPLY, struct.pack("!I", stream) + block)

    def data(self, stream: int, data: bytes, *, last: bool = False) -> bytes:
        """Send up to 16 MB of data; `last` means that there is no more."""
        return struct.pack("!IB", stream, _FIN if last else 0) + len(data).to_bytes(3, "big") + data

    def reset(self, stream: int) -> bytes:
        """End a stream in both directions."""
        return _control_frame(_RST_STREAM, struct.pack("!II", stream, _CANCEL))

    def ping(self, number: int) -> bytes:
        """Respond to a ping."""
        return _control_frame(_PING, struct.pack("!I", number))


def _control_frame(kind: int, body: bytes) -> bytes:
    return struct.pack("!HHB", 0x8000 | _VERSION, kind, 0) + len(body).to_bytes(3, "big") + body
