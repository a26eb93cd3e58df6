"""SPDY 3.1 frames as values, as far as port forwarding needs them: streams are opened, carry data, end.

kubectl speaks it inside a WebSocket and does not use its flow control, so this does not either.
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

# Both sides begin with the words that headers of 2011 were likely to have.
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
    """What arrived is not SPDY."""


class Opened(NamedTuple):
    """The client opens a stream."""

    stream: int
    headers: dict[str, str]


class Data(NamedTuple):
    """A stream carries data; `last`: its sender has no more."""

    stream: int
    data: bytes
    last: bool


class Reset(NamedTuple):
    """A stream is no more."""

    stream: int


class Ping(NamedTuple):
    """A ping of the client."""

    number: int


class SpdyReader:
    """Cut what a client sends into frames; those that mean nothing to port forwarding are left out."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Opened | Data | Reset | Ping]:
        """Take bytes, and give the frames that are whole with them."""
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
                raise SpdyError("the version of the frame is not known")
            else:
                yield from self._control(int.from_bytes(head[2:], "big"), flags, body)

    def _control(self, sort: int, flags: int, body: bytes) -> Iterator[Opened | Data | Reset | Ping]:
        if sort in (_SYN_STREAM, _RST_STREAM, _PING) and len(body) < 4:
            raise SpdyError("the frame is too short")
        number = int.from_bytes(body[:4], "big")
        if sort == _SYN_STREAM:
            yield Opened(number, self._headers(body[10:]))
            if flags & _FIN:
                yield Data(number, b"", last=True)
        elif sort == _RST_STREAM:
            yield Reset(number)
        elif sort == _PING:
            yield Ping(number)

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, _MOST_HEADERS)
            if self._inflate.unconsumed_tail:
                raise SpdyError("the headers are too large")
            return _pairs(plain)
        except (zlib.error, struct.error, UnicodeDecodeError):
            raise SpdyError("the headers cannot be read") from None


def _pairs(plain: bytes) -> dict[str, str]:
    (count,), position = struct.unpack_from("!I", plain), 4
    words: list[str] = []
    for _ in range(2 * count):
        (size,) = struct.unpack_from("!I", plain, position)
        position += 4 + size
        words.append(plain[position - size : position].decode())
    return dict(zip(words[::2], words[1::2], strict=True))


class SpdyWriter:
    """Encode the frames of a server."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._deflate.compress(struct.pack("!I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(_SYN_REPLY, struct.pack("!I", stream) + block)

    def data(self, stream: int, data: bytes, *, last: bool = False) -> bytes:
        """Send a piece of at most 16 MB; `last`: there is no more."""
        return struct.pack("!IB", stream, _FIN if last else 0) + len(data).to_bytes(3, "big") + data

    def reset(self, stream: int) -> bytes:
        """End a stream in both directions."""
        return _control_frame(_RST_STREAM, struct.pack("!II", stream, _CANCEL))

    def ping(self, number: int) -> bytes:
        """Answer a ping."""
        return _control_frame(_PING, struct.pack("!I", number))


def _control_frame(sort: int, body: bytes) -> bytes:
    return struct.pack("!HHB", 0x8000 | _VERSION, sort, 0) + len(body).to_bytes(3, "big") + body
