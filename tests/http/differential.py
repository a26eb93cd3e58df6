"""Differential fuzzing: what we read from bytes is what h11 reads, or the difference is listed with its reason.

A case is a seed: the same seed gives the same bytes, cut into the same arrivals. `STRICTER` and `LAXER` list the
differences that we choose; every other one is a failure. Run it for longer with `scripts/fuzz-http --seconds 3600`.
"""

import argparse
import asyncio
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import h11

from kubewright.http.client import ClientResponse, ExchangeFailed
from kubewright.http.client.connection import ClientConnection
from kubewright.http.server import Handler, Limits, Request, Response, ServerResponse, split_target, text
from kubewright.http.server.reader import BodyBudget, RequestReader

Message = tuple[object, ...]


class Reading(NamedTuple):
    """What a reader made of bytes: whole messages, then an error, or that more bytes are needed."""

    messages: tuple[Message, ...]
    error: bool
    partial: bool = False
    """Bytes of another message are buffered."""


# Cases.

_EOL = [b"\r\n"] * 30 + [b"\n", b"\r", b"\r\r\n", b"\r\n\r\n"]
_SPACE = [b" "] * 20 + [b"  ", b"\t", b""]
_METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"HEAD"] * 4 + [
    b"get",
    b"G@T",
    b"FOO",
    b"",
    b"POSTS",
    b"PRI",
]
_TARGETS = [b"/", b"/a/b?c=d&e=%20", b"*", b"http://h/a"] * 5 + [
    b"/\x80",
    b"/a b",
    b"",
    b"a",
    b"/a#b",
    b"/\x01",
    b"/%",
    b"?",
]
_VERSIONS = (
    [b"HTTP/1.1"] * 20
    + [b"HTTP/1.0"] * 4
    + [b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1x", b"HTTP/11", b"HTTP/1", b"HTTP/1.1 "]
)
_STATUS = [
    b"200 OK",
    b"201 Created",
    b"404 Not Found",
    b"500 ",
    b"204 No Content",
    b"304 Not Modified",
] * 4 + [
    b"200",
    b"99 X",
    b"1000 X",
    b"2x0 X",
    b" 200 OK",
    b"200  OK",
    b"200 \x80",
    b"100 Continue",
    b"103 Early",
    b"600 X",
]
_NAMES = [b"X-A", b"Accept", b"x-a", b"Authorization", b"Cookie"] * 4 + [
    b"X A",
    b"X\x00",
    b"X\x80",
    b"",
    b" X",
    b"X ",
    b"X\t",
    b"X(",
    b"X_y",
]
_VALUES = [b"", b"a", b"a b", b"a, b", b'"q"'] * 4 + [
    b"a\x80",
    b"a\x00b",
    b"a\x01b",
    b" a ",
    b"\ta\t",
    b"a\rb",
    b"a\nb",
    b"a\r\n b",
    b"\x0b",
]
_LENGTHS = [b"0", b"3", b"5"] * 5 + [
    b"+3",
    b"-1",
    b"3 ",
    b"0x3",
    b"3, 3",
    b"3,5",
    b"",
    b"03",
    b"99999999999999999999",
    b"3\x00",
    b"3_0",
]
_CODINGS = [b"chunked"] * 8 + [
    b"Chunked",
    b"identity",
    b"gzip, chunked",
    b"chunked, gzip",
    b"chunked, chunked",
    b"xchunked",
    b" chunked",
    b"chunked;q=1",
    b"",
]
_SIZES = [b"%x"] * 12 + [
    b"0%x",
    b"%x ",
    b"%x;ext",
    b"%x;a=b",
    b'%x;a="\r\n"',
    b"+%x",
    b"0x%x",
    b" %x",
    b"-%x",
    b"%xg",
]


def case(seed: int, kind: str) -> list[bytes]:
    """Return the bytes of a case, cut into arrivals."""
    chance = random.Random(f"{kind} {seed}")
    message = _request if kind == "requests" else _response
    data = b"".join(
        message(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]) if kind == "requests" else 1)
    )
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        data = _mutated(chance, data)
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice([0, 0, 1, 3, 8])))
    edges = [0, *cuts, len(data)]
    return [data[start:end] for start, end in pairwise(edges) if start < end]


def _mutated(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    byte = bytes([chance.choice(b"\r\n\t :;,\x00\x7f\x80/0aA")])
    return chance.choice(
        [
            data[:at] + byte + data[at:],
            data[:at] + byte + data[at + 1 :],
            data[:at] + data[at + 1 :],
            data[:at],
        ]
    )


def _request(chance: random.Random) -> bytes:
    pick = chance.choice
    first = pick(_METHODS) + pick(_SPACE) + pick(_TARGETS) + pick(_SPACE) + pick(_VERSIONS)
    fields = [
        b"Host:%b%b" % (pick(_SPACE), pick([b"h", b"h:80", b"[::1]"] * 6 + [b"", b"a b", b"a,b", b"a/b"]))
    ]
    if chance.random() < 0.06:
        fields = fields * chance.choice([0, 2])
    return _finished(chance, first, fields, pick([b"none", b"length", b"chunks"]))


def _response(chance: random.Random) -> bytes:
    pick = chance.choice
    first = pick(_VERSIONS) + pick(_SPACE) + pick(_STATUS)
    interim = pick([b""] * 8 + [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 X\r\nA: b\r\n\r\n"])
    return interim + _finished(chance, first, [], pick([b"end", b"length", b"chunks", b"chunks"]))


def _finished(chance: random.Random, first: bytes, fields: list[bytes], framing: bytes) -> bytes:
    pick = chance.choice
    for _ in range(pick([0, 1, 2])):
        fields.append(pick(_NAMES) + b":" + pick(_SPACE) + pick(_VALUES))
    body = bytes(chance.choices(b"abc\r\n0", k=pick([0, 3, 5])))
    if framing == b"length":
        length = pick(_LENGTHS) if chance.random() < 0.3 else b"%d" % len(body)
        fields.append(b"Content-Length: " + length)
        if chance.random() < 0.05:
            fields.append(b"Content-Length: " + pick(_LENGTHS))
    elif framing == b"chunks":
        fields.append(b"Transfer-Encoding: " + pick(_CODINGS))
        if chance.random() < 0.05:
            fields.append(pick([b"Content-Length: 3", b"Transfer-Encoding: chunked"]))
        size = pick(_SIZES)
        body = (size % len(body) + pick(_EOL) + body + pick(_EOL) if body else b"") + b"0" + pick(_EOL)
        body += pick([b""] * 6 + [b"X-T: t\r\n", b"bad trailer\r\n", b": x\r\n"]) + pick(_EOL)
    if chance.random() < 0.15:
        fields.append(b"Connection: " + pick([b"close", b"keep-alive", b"Close", b"x, close"]))
    chance.shuffle(fields)
    return first + pick(_EOL) + b"".join(field + pick(_EOL) for field in fields) + pick(_EOL) + body


def _normal(fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Write codings in lower case, as h11 does."""
    return [(name, value.lower() if name == "transfer-encoding" else value) for name, value in fields]


# Requests.


class _Everything(Handler):
    def admit(self, request: Request) -> int:
        return 1 << 40

    def handle(self, request: Request) -> ServerResponse:
        return text(200, "")


class _Sink:
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.error = False
        self.ended = False

    def begun(self) -> None: ...

    def expected(self) -> None: ...

    def received(self, request: Request) -> None:
        if not self.ended:
            self.requests.append(request)
            self.ended = not request.keep_alive or request.upgrade

    def refuse(self, answer: Response, *, bodiless: bool) -> None:
        self.error = self.error or not self.ended

    def refused(self) -> None: ...

    def switched(self, rest: bytes) -> None:
        self.ended = True

    def abort(self) -> None:
        self.error = True


def our_requests(arrivals: Sequence[bytes]) -> Reading:
    """Read requests as the server does."""
    sink = _Sink()
    reader = RequestReader(sink, _Everything(), Limits(head=1 << 30), BodyBudget(1 << 40), None)
    for data in arrivals:
        if not (sink.error or sink.ended):
            reader.feed(data)
    messages = tuple((it.method, it.path, it.query, _normal(it.fields), it.body) for it in sink.requests)
    return Reading(messages, sink.error, reader.receiving and not sink.error)


def h11_requests(data: bytes) -> Reading:
    """Read requests as h11 does."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 30)
    connection.receive_data(data)
    messages: list[Message] = []
    request, body = None, b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                path, query = split_target(request.target.decode("latin-1"))
                fields = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers
                ]
                messages.append((request.method.decode("latin-1"), path, query, fields, body))
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return Reading(tuple(messages), error=False)
                connection.start_next_cycle()
            else:
                partial = connection.their_state is not h11.IDLE or bool(connection.trailing_data[0])
                return Reading(tuple(messages), error=False, partial=partial)
    except h11.RemoteProtocolError:
        return Reading(tuple(messages), error=True)


# Responses.

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


class _Memory:
    """A transport whose arrivals are the test's."""

    def __init__(self) -> None:
        self.connection = ClientConnection(asyncio.get_running_loop())
        self.connection.attach(self)
        self.closed = False

    def write(self, data: bytes) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.connection.connection_lost(None)

    abort = close


async def our_response(arrivals: Sequence[bytes]) -> Reading:
    """Read a response, and the end of the connection, as the client does."""
    memory = _Memory()
    deadline = asyncio.get_running_loop().time() + 60.0
    sending = asyncio.ensure_future(memory.connection.send(REQUEST, b"", deadline))
    await asyncio.sleep(0)
    for data in arrivals:
        if not memory.closed:
            memory.connection.data_received(data)
    memory.close()
    try:
        found: ClientResponse = await sending
    except ExchangeFailed:
        return Reading((), error=True)
    fields = [(name, value) for name in found.headers for value in found.headers.all(name)]
    return Reading(((found.status, sorted(_normal(fields)), found.body),), error=False)


def h11_response(data: bytes) -> Reading:
    """Read a response, and the end of the connection, as h11 does."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 30)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    if data:
        connection.receive_data(data)
    response, body = None, b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                response, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and response is not None:
                fields = [
                    (name.decode("latin-1"), value.decode("utf-8", "replace"))
                    for name, value in response.headers
                ]
                return Reading(((response.status_code, sorted(fields), body),), error=False)
            elif event is h11.NEED_DATA:
                connection.receive_data(b"")
            elif not isinstance(event, h11.InformationalResponse):
                return Reading((), error=True)
    except h11.RemoteProtocolError:
        return Reading((), error=True)


# Differences that we choose.

# We refuse, and h11 accepts or waits for more: safe, as long as no ordinary client sends it.
STRICTER = {
    "an unfinished head: we refuse at the first wrong byte": None,
    "a line that does not end with CR LF": rb"(?<!\r)\n|\r(?!\n)",
    "a folded header line (obs-fold), obsolete since RFC 7230": rb"\r\n[ \t]",
    "a control character or a byte beyond ASCII in the head": rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xff]",
    "another version than 1.0 and 1.1": rb"HTTP/(?!1\.[01]\r)",
    "a method that is not registered": rb"(?m)^(?!(?:GET|POST|PUT|DELETE|PATCH|OPTIONS|HEAD) )[^ \r\n:]* [^\r\n]* HTTP/1",
    "a target that is no path, URL or asterisk": rb"(?m)^[A-Z]+ (?![/*]|https?://)",
    "a malformed Host header": rb"(?i)host:[ \t]*[^\r\n]*[ \t/][^\r\n]*",
    "white space or an extension without a name behind a chunk size": rb"\r\n[0-9A-Fa-f]+(?:[ \t]|;)",
    "several lengths, even equal ones": rb"(?is)content-length:(?:[^\r\n]*,|.*content-length:)",
    "a length beside chunks, which proxies could read differently": rb"(?is)content-length:.*transfer-encoding:|transfer-encoding:.*content-length:",
}
# We accept, and h11 refuses: each of these is safe because there is one way to read it.
LAXER = {
    "several spaces in a request line: RFC 9112, section 3, lets servers split it at white space": rb"[A-Z] {2,}\S| {2,}HTTP/1",
    "the preface of HTTP/2, which is waited for until its time is over": rb"(?m)^PRI ",
    "line breaks before a message: servers ignore them (RFC 9112, section 2.2)": rb"\A[\r\n]|\r\n\r\n[\r\n]|[\r\n]{2}[A-Z]+ ",
}


def _agree_without_line_breaks(data: bytes, ours: Reading) -> bool:
    ends = range(len(data) - 1, len(data.rstrip(b"\r\n")) - 1, -1)
    return any(h11_requests(data[:end])[:2] == ours[:2] for end in ends)


def _is_prefix(shorter: Reading, longer: Reading) -> bool:
    return longer.messages[: len(shorter.messages)] == shorter.messages


def difference(data: bytes, ours: Reading, theirs: Reading) -> str | None:
    """Return None if both read the same, the reason of a difference that we choose, or "unknown"."""
    if ours.messages == theirs.messages and ours.error == theirs.error:
        return None
    if ours.error and _is_prefix(ours, theirs):
        for reason, pattern in STRICTER.items():
            if theirs.partial if pattern is None else re.search(pattern, data):
                return reason
    if ours.messages == theirs.messages and _agree_without_line_breaks(data, ours):
        return "line breaks behind the last message"
    if ours.partial and ours.messages == theirs.messages[:-1] and re.search(rb"(?m)^PRI ", data):
        return "the method PRI, which the parser takes for the preface of HTTP/2"
    if theirs.error and _is_prefix(theirs, ours):
        for reason, pattern in LAXER.items():
            if re.search(pattern, data):
                return reason
    return "unknown"


async def compare(kind: str, seeds: range, until: float | None = None) -> tuple[Counter[str], list[int]]:
    """Compare cases; return how many differences there are by reason, and the seeds of the unknown ones."""
    found: Counter[str] = Counter()
    unknown: list[int] = []
    for seed in seeds:
        if until is not None and time.monotonic() > until:
            break
        arrivals = case(seed, kind)
        data = b"".join(arrivals)
        if kind == "requests":
            ours, theirs = our_requests(arrivals), h11_requests(data)
        else:
            ours, theirs = await our_response(arrivals), h11_response(data)
        reason = difference(data, ours, theirs)
        found[reason or "same"] += 1
        if reason == "unknown":
            unknown.append(seed)
    return found, unknown


def explain(kind: str, seed: int) -> str:
    """Describe a case, to repeat it."""
    arrivals = case(seed, kind)
    data = b"".join(arrivals)
    if kind == "requests":
        ours, theirs = our_requests(arrivals), h11_requests(data)
    else:
        ours, theirs = asyncio.run(our_response(arrivals)), h11_response(data)
    return f"{kind} {seed} (scripts/fuzz-http --kind {kind} --seed {seed}): {arrivals}\n  ours: {ours}\n  h11:  {theirs}"


def main() -> None:
    """Compare random cases for a time."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz-http", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--kind", choices=["requests", "responses"], help="only one of both")
    parser.add_argument("--seed", type=int, help="explain one case")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else ["requests", "responses"]
    if options.seed is not None:
        for kind in kinds:
            print(explain(kind, options.seed))
        return
    failed = False
    for kind in kinds:
        start = random.SystemRandom().randrange(1 << 48)
        until = time.monotonic() + options.seconds / len(kinds)
        found, unknown = asyncio.run(compare(kind, range(start, start + (1 << 40)), until))
        print(f"{kind}: {found.total()} cases from seed {start}: {dict(found)}")
        for seed in unknown[:20]:
            print(explain(kind, seed))
        failed = failed or bool(unknown)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
