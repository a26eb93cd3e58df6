"""One HTTPS connection to a webhook: requests one after the other, answers read whole."""

import asyncio
import ssl
from dataclasses import dataclass, field

import httptools

from .destinations import Destination
from .failures import CallFailed

MAX_ANSWER = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_HEAD = (
    "POST {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kube-apiserver-admission\r\n"
    "Content-Length: {length}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\r\n"
)


@dataclass(slots=True)
class Reply:
    """An answer; also what the parser tells its parts to."""

    status: int = 0
    content_type: str = ""
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False
    parser: httptools.HttpResponseParser | None = None
    lasting: bool = True
    """The connection may be used again."""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note what the answer is made of."""
        if name.lower() == b"content-type":
            self.content_type = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Take in a piece of the body."""
        self.body += body
        if len(self.body) > MAX_ANSWER:
            raise CallFailed("the answer is too large")

    def on_message_complete(self) -> None:
        """Note that the answer is whole; afterwards the parser no longer knows what it was like."""
        self.complete = True
        if self.parser is not None:
            self.status = self.parser.get_status_code()
            self.lasting = self.parser.should_keep_alive()


class Exchange:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, place: Destination, context: ssl.SSLContext) -> "Exchange":
        """Connect, and make sure that the server is the one that was meant."""
        streams = await asyncio.open_connection(
            place.host, place.port, ssl=context, server_hostname=place.server_name, limit=_CHUNK
        )
        return cls(*streams)

    @property
    def usable(self) -> bool:
        """Tell whether the other side still listens, as far as is known."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def post(self, place: Destination, body: bytes) -> Reply:
        """Send a body and read the answer; an end without any answer is an EOFError."""
        host = place.url.removeprefix("https://").partition("/")[0]
        head = _HEAD.format(target=place.target, host=host, length=len(body))
        self._writer.write(head.encode("latin-1", "replace") + body)
        reply = Reply()
        reply.parser = parser = httptools.HttpResponseParser(reply)
        while not reply.complete:
            data = await self._reader.read(_CHUNK)
            if not data:
                raise EOFError
            try:
                parser.feed_data(data)
            except httptools.HttpParserCallbackError:
                raise CallFailed("the answer is too large") from None
            except httptools.HttpParserError:
                shown = data[:40].decode("latin-1")
                raise CallFailed(
                    f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{shown}"'
                ) from None
        return reply

    def close(self) -> None:
        """Let the connection go."""
        self._writer.close()
