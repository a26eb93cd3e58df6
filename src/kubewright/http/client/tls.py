"""TLS on a byte transport: bytes are decrypted where they arrive, without a queue in either direction."""

import asyncio
import errno
import os
import ssl
from typing import cast

from kubewright.http.client.byte_transport import ARRIVAL, ByteTransport, Receiver

_RECORD = 16 * 1024


class Sessions:
    """The last TLS session with each server name, for one context: the next connection resumes it.

    The server's certificate was verified when the session began; resuming spares both sides the signatures.
    """

    def __init__(self) -> None:
        self._last: dict[str, ssl.SSLSession] = {}

    def last(self, server_name: str) -> ssl.SSLSession | None:
        """Return the session that a handshake can resume, if any."""
        return self._last.get(server_name)

    def note(self, server_name: str, session: ssl.SSLSession | None) -> None:
        """Remember a session if the server allows to resume it."""
        if session is not None and session.has_ticket:
            self._last[server_name] = session


class MissingCloseNotify(EOFError):
    """The TCP connection ended without the TLS message that ends a connection: what was received may be cut off."""


class TlsTransport(asyncio.BufferedProtocol):
    """Speak TLS as the client; the receiver gets decrypted bytes."""

    def __init__(
        self, context: ssl.SSLContext, server_name: str, sessions: Sessions, receiver: Receiver
    ) -> None:
        self._buffer = memoryview(bytearray(ARRIVAL))
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # A string would go through the codec for international names, which is slow to load.
        name = server_name.encode() if server_name.isascii() else server_name
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=name, session=sessions.last(server_name)
        )
        self._server_name = server_name
        self._sessions: Sessions | None = sessions
        self._receiver = receiver
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._below: ByteTransport | None = None
        self._open = False
        self._closing = False
        self._failure: ssl.SSLError | None = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the receiver: for TLS in TLS, behind a proxy that uses TLS itself."""
        self._receiver = cast("Receiver", protocol)

    # Called by the transport below.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start on a transport of the event loop."""
        self.attach(cast("asyncio.Transport", transport))

    def attach(self, transport: ByteTransport) -> None:
        """Start the handshake."""
        self._below = transport
        self._shake_hands()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that is used for every arrival: allocating one each time could cost more than the rest."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes from the event loop."""
        self.data_received(self._buffer[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Decrypt bytes and pass them to the receiver."""
        if self._closing:
            return
        self._incoming.write(data)
        if not self._open:
            self._shake_hands()
            if not self._open:
                return
        pieces: list[bytes] = []
        end: ssl.SSLError | None = None
        try:
            self._decrypt(pieces)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            end = error
        if pieces:
            if self._sessions is not None:
                # Not right after the handshake: tickets follow it, before the first response.
                self._sessions.note(self._server_name, self._tls.session)
                self._sessions = None
            # Servers send a record for each event: what arrived together is passed on together.
            self._receiver.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if isinstance(end, ssl.SSLZeroReturnError):
            self.close()
        elif end is not None:
            self._break(end)
        elif self._outgoing.pending:
            self._flush()

    def _decrypt(self, pieces: list[bytes]) -> None:
        incoming, tls = self._incoming, self._tls
        # Reading until nothing is left would cost an exception; most arrivals are whole records.
        while incoming.pending or tls.pending():
            plain = tls.read(_RECORD)
            if not plain:
                raise ssl.SSLZeroReturnError
            pieces.append(plain)

    def eof_received(self) -> bool:
        """Close when the server closes its sending side."""
        return False

    def pause_writing(self) -> None:
        """Pass on that the server reads slowly."""
        self._receiver.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that there is room again."""
        self._receiver.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on that nothing more arrives; an end without close_notify is an error, anyone could have caused it."""
        if exc is None and not self._closing:
            exc = MissingCloseNotify("the connection ended without a TLS close_notify")
        self._below = None
        self._closing = True
        if self._open:
            self._receiver.connection_lost(self._failure or exc)
        elif not self.ready.done():
            self.ready.set_exception(self._failure or (exc if isinstance(exc, OSError) else None) or _reset())

    # Called by the receiver above.

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
        """Stop delivering bytes."""
        if self._below is not None:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Deliver bytes again."""
        if self._below is not None:
            self._below.resume_reading()

    def is_closing(self) -> bool:
        """Return True if either side has closed or is closing the connection."""
        return self._closing or self._below is None or self._below.is_closing()

    def close(self) -> None:
        """Send close_notify and close, without waiting for that of the server."""
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
        """Close immediately."""
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
        self._receiver.attach(self)
        if not self.ready.done():
            self.ready.set_result(None)

    def _break(self, error: ssl.SSLError) -> None:
        # The alert with the reason is still sent.
        self._failure = error
        self._flush()
        self._closing = True
        if self._below is not None:
            self._below.close()

    def _flush(self) -> None:
        if self._below is not None and self._outgoing.pending:
            self._below.write(self._outgoing.read())


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
