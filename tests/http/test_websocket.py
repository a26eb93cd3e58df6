"""WebSocket frames."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.http.websocket import (
    FrameError,
    FrameReader,
    Opcode,
    WebSocketMessage,
    accept_key,
    frame,
    unmasked,
)


def masked(opcode: Opcode, data: bytes, *, last: bool = True) -> bytes:
    """Encode a message as a masked client frame."""
    mask, made = os.urandom(4), frame(opcode, data)
    head = len(made) - len(data)
    first = made[0] if last else made[0] & 0x7F
    return bytes([first, made[1] | 0x80]) + made[2:head] + mask + unmasked(data, mask)


def test_the_accept_key_follows_rfc_6455() -> None:
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@given(st.lists(st.binary(max_size=70_000), max_size=3), st.integers(1, 5000))
def test_messages_are_decoded_from_any_chunks(messages: list[bytes], step: int) -> None:
    stream = b"".join(masked(Opcode.BINARY, data) for data in messages)
    reader = FrameReader()
    found = [
        item for start in range(0, len(stream), step) for item in reader.feed(stream[start : start + step])
    ]
    assert found == [WebSocketMessage(Opcode.BINARY, data) for data in messages]


def test_a_fragmented_message_is_joined_around_a_ping() -> None:
    stream = (
        masked(Opcode.BINARY, b"one ", last=False)
        + masked(Opcode.PING, b"?")
        + masked(Opcode.CONTINUATION, b"two")
    )
    assert list(FrameReader().feed(stream)) == [
        WebSocketMessage(Opcode.PING, b"?"),
        WebSocketMessage(Opcode.BINARY, b"one two"),
    ]


@pytest.mark.parametrize(
    "data", [frame(Opcode.BINARY, b"bare"), b"\x83\x80", b"\x82\xff" + b"\xff" * 8 + b"mask"]
)
def test_invalid_client_frames_are_rejected(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(FrameReader().feed(data))
