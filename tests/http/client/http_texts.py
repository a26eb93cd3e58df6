"""Answers as servers write them, for every way that a body can end, and every way to cut them into arrivals."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).map(lambda name: f"X-{name}")
values = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)


@dataclass(frozen=True)
class Written:
    """An answer and its bytes."""

    status: int
    reason: str
    fields: list[tuple[str, str]]
    body: bytes
    wire: bytes
    lasting: bool
    until_end: bool = False


@st.composite
def answers(draw: st.DrawFn, *, delimited: bool = False) -> Written:
    """Any answer that HTTP/1.1 allows."""
    status = draw(st.sampled_from([200, 201, 204, 304, 404, 500]))
    reason = draw(st.sampled_from(["OK", "Not Found", ""]))
    fields = draw(st.lists(st.tuples(names, values), max_size=6))
    body = b"" if status in (204, 304) else draw(st.binary(max_size=300))
    interim = draw(
        st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 X\r\nX-Y: z\r\n\r\n"])
    )
    ways = ["length", "chunks"] if delimited or status in (204, 304) else ["length", "chunks", "end"]
    way = draw(st.sampled_from(ways))
    close = way == "end" or draw(st.booleans())
    sent = [*fields, *([("Connection", "close")] if close else [])]
    payload = body
    if status not in (204, 304):
        if way == "length":
            sent.append(("Content-Length", str(len(body))))
        elif way == "chunks":
            sent.append(("Transfer-Encoding", "chunked"))
            payload = draw(chunked(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in sent)
    wire = interim + f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode() + payload
    return Written(status, reason, sent, body, wire, not close, way == "end" and status not in (204, 304))


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> bytes:
    """A body in chunks of any size, with or without trailers."""
    written = b""
    for piece in draw(split(body)):
        if piece:
            written += b"%x\r\n%b\r\n" % (len(piece), piece)
    return written + b"0\r\n" + draw(st.sampled_from([b"", b"X-After: all\r\n"])) + b"\r\n"


@st.composite
def split(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes in any number of arrivals."""
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=12)) | {0, len(data)})
    return [data[start:end] for start, end in pairwise(cuts)]
