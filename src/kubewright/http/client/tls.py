"""TLS on a wire: bytes are decrypted where they arrive, without a queue of its own in either direction."""

import asyncio
import errno
import os
import ssl
from typing import cast

from kubewright.http.client.byte_transport import ARRIVAL, ByteTransport, Receiver

_RECORD = 16 * 1024


class Sessions:
    """The last session with each server, by its name, of one context: the next connection takes it up again.

    The server's certificate was verified when the session began, and both sides are spared certificates and signatures.
    """

    def __init__(self) -> None:
        self._last: dict[str, ssl.SSLSession] = {}

    def last(self, server_name: str) -> ssl.SSLSession | None:
        """Return what a handshake with the server can begin with, if anything."""
        return self._last.get(server_name)

    def note(self, server_name: str, session: ssl.SSLSession | None) -> None:
        """Remember a session, if the server lets it be taken up again."""
        if session is not None and session.has_ticket:
            self._last[server_name] = session


class TlsTransport(asyncio.BufferedProtocol):
    """Speak TLS as the client; the one end on it is told of plain bytes only."""

    def __init__(self, context: ssl.SSLContext, server_name: str, sessions: Sessions, end: Receiver) -> None:
        self._buffer = memoryview(bytearray(ARRIVAL))
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # A string would go through the codec for international names, which takes its time to load.
        name = server_name.encode() if server_name.isascii() else server_name
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=name, session=sessions.last(server_name)
        )
        self._server_name = server_name
        self._sessions: Sessions | None = sessions
        self._end = end
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._below: ByteTransport | None = None
        self._open = False
        self._closing = False
        self._failure: ssl.SSLError | None = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Put another end on it: TLS in TLS, behind a proxy that is spoken to in TLS itself."""
        self._end = cast("Receiver", protocol)

    # What is below.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin on a transport of the event loop."""
        self.attach(cast("asyncio.Transport", transport))

    def attach(self, wire: ByteTransport) -> None:
        """Begin the handshake."""
        self._below = wire
        self._shake_hands()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Offer room that is used again: a new piece of memory for each arrival may cost more than all else."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what has come from the event loop."""
        self.data_received(self._buffer[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Decrypt, and hand on what it says."""
        if self._closing:
            return
        self._incoming.write(data)
        if not self._open:
            self._shake_hands()
            if not self._open:
                return
        pieces: list[bytes] = []
        over: ssl.SSLError | None = None
        try:
            self._decrypt(pieces)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            over = error
        if pieces:
            if self._sessions is not None:
                # Not right after the handshake: tickets come behind it, before the first answer.
                self._sessions.note(self._server_name, self._tls.session)
                self._sessions = None
            # Servers send a record for each event: all that arrived together is handed on together.
            self._end.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if isinstance(over, ssl.SSLZeroReturnError):
            self.close()
        elif over is not None:
            self._break(over)
        elif self._outgoing.pending:
            self._flush()

    def _decrypt(self, pieces: list[bytes]) -> None:
        incoming, tls = self._incoming, self._tls
        # To be told that nothing is left would cost an exception; most arrivals are whole records.
        while incoming.pending or tls.pending():
            plain = tls.read(_RECORD)
            if not plain:
                raise ssl.SSLZeroReturnError
            pieces.append(plain)

    def eof_received(self) -> bool:
        """Close when the other side has nothing more to say."""
        return False

    def pause_writing(self) -> None:
        """Hand on that the other side reads slowly."""
        self._end.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that there is room again."""
        self._end.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on that nothing comes any more."""
        self._below = None
        self._closing = True
        if self._open:
            self._end.connection_lost(self._failure or exc)
        elif not self.ready.done():
            self.ready.set_exception(
                self._failure or exc or ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            )

    # What is above.

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        if self._below is None or self._closing:
            return
        try:
            sent = self._tls.write(data)
            while sent < len(data):
                sent += self._tls.write(data[sent:])
        except ssl.SSLError as error:
            self._break(error)
            return
        self._flush()

    def pause_reading(self) -> None:
        """Let no more bytes come in."""
        if self._below is not None:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Let bytes come in again."""
        if self._below is not None:
            self._below.resume_reading()

    def is_closing(self) -> bool:
        """Tell whether it is closed or being closed, by either side."""
        return self._closing or self._below is None or self._below.is_closing()

    def close(self) -> None:
        """Say good-bye and close; the other side's good-bye is not waited for."""
        if self._closing or self._below is None:
            return
        self._closing = True
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass
        self._flush()
        self._below.close()

    def abort(self) -> None:
        """Close at once."""
        self._closing = True
        if self._below is not None:
            self._below.abort()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._break(error)
            return
        self._flush()
        self._open = True
        self._end.attach(self)
        if not self.ready.done():
            self.ready.set_result(None)

    def _break(self, error: ssl.SSLError) -> None:
        # The alert that says why still goes out.
        self._failure = error
        self._flush()
        self._closing = True
        if self._below is not None:
            self._below.close()

    def _flush(self) -> None:
        if self._below is not None and self._outgoing.pending:
            self._below.write(self._outgoing.read())
