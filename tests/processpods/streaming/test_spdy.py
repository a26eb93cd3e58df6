"""SPDY frames of a port-forward client."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.processpods.streaming.spdy import (
    DICTIONARY,
    Data,
    Opened,
    Ping,
    Reset,
    SpdyError,
    SpdyReader,
    SpdyWriter,
)

HEADERS = {"streamtype": "data", "port": "8080", "requestid": "0"}


class Client:
    """Encodes frames as kubectl does: all headers of a connection share one compression context."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, headers: dict[str, str]) -> bytes:
        plain = struct.pack("!I", len(headers))
        for word in (part for pair in headers.items() for part in pair):
            plain += struct.pack("!I", len(word)) + word.encode()
        block = self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack("!IIBB", stream, 0, 0, 0) + block)


def control(sort: int, body: bytes, version: int = 3) -> bytes:
    return struct.pack("!HHB", 0x8000 | version, sort, 0) + len(body).to_bytes(3, "big") + body


@given(st.lists(st.integers(1, 50), max_size=20))
def test_frames_are_decoded_from_any_chunks(cuts: list[int]) -> None:
    client, writer, reader = Client(), SpdyWriter(), SpdyReader()
    sent = client.open(1, {**HEADERS, "streamtype": "error"}) + client.open(3, HEADERS)
    sent += writer.data(3, b"hello") + writer.data(3, b"", last=True)
    sent += writer.reset(3) + writer.ping(7) + control(9, b"\0" * 8)
    found: list[Opened | Data | Reset | Ping] = []
    for cut in cuts:
        found += reader.feed(sent[:cut])
        sent = sent[cut:]
    found += reader.feed(sent)
    assert found == [
        Opened(1, {**HEADERS, "streamtype": "error"}),
        Opened(3, HEADERS),
        Data(3, b"hello", last=False),
        Data(3, b"", last=True),
        Reset(3),
        Ping(7),
    ]


def test_a_reply_accepts_a_stream_without_headers() -> None:
    writer, inflate = SpdyWriter(), zlib.decompressobj(zdict=DICTIONARY)
    for stream in (1, 3):
        reply = writer.reply(stream)
        assert reply[:4] == struct.pack("!HH", 0x8003, 2)
        assert struct.unpack("!I", reply[8:12]) == (stream,)
        assert inflate.decompress(reply[12:]) == struct.pack("!I", 0)


@pytest.mark.parametrize(
    "sent",
    [
        control(1, b"\0" * 10, version=2),
        control(6, b""),
        control(1, b"\0" * 10 + b"no headers"),
        Client().open(1, {"large": "x" * 100_000}),
    ],
    ids=["version", "short", "not compressed", "large"],
)
def test_invalid_spdy_is_rejected(sent: bytes) -> None:
    with pytest.raises(SpdyError):
        list(SpdyReader().feed(sent))


@given(st.binary(max_size=200))
def test_any_data_is_decoded_or_rejected(sent: bytes) -> None:
    try:
        assert list(SpdyReader().feed(sent)) is not None
    except SpdyError:
        pass
