"""The HTTPS listener of the server: TLS settings, limits, common response headers and the client certificate."""

import asyncio
import hashlib
import random
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from kubewright.certificates import Authority, KeyPair, load_pair
from kubewright.devserver.objects import encode
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.info import FINGERPRINT
from kubewright.http.server import (
    JSON,
    DateField,
    Handler,
    HeaderFields,
    Limits,
    PendingResponse,
    Request,
    Response,
)

MAX_BODY = 3 * 1024 * 1024
LIMITS = Limits(
    head=1024 * 1024,
    held=1024 * 1024 * 1024,
    # Whole clusters of controllers connect, each with many watches.
    connections=100_000,
    idle_seconds=90.0,
    receive_seconds=32.0,
    blocked_seconds=30.0,
)


_random = random.Random()
"""The source of audit ids, which are no secrets: asking the operating system each time would take longer."""


class ApiServerHandler(Handler):
    """Respond to HTTP requests as kube-apiserver does; `handle` is the pipeline."""

    def __init__(
        self,
        handle: Callable[[Request], PendingResponse],
        seconds: Callable[[], float],
    ) -> None:
        self._handle = handle
        self._date = DateField(seconds)

    def handle(self, request: Request) -> PendingResponse:
        """Respond to a request, at once or later."""
        return self._handle(request)

    def admit(self, request: Request) -> int:
        """Return the maximum body size."""
        return MAX_BODY

    def too_large(self, request: Request, largest: int) -> Response:
        """Return a 413 response with a Status object."""
        return Response(413, encode(StatusError.too_large(f"limit is {largest}").wire()), JSON)

    def preamble(self, headers: HeaderFields) -> str:
        """Return the headers of every response: an audit id, the date, and no caching by others."""
        audit = f"{_random.getrandbits(128):032x}"
        lines = (
            f"Audit-Id: {audit[:8]}-{audit[8:12]}-{audit[12:16]}-{audit[16:20]}-{audit[20:]}\r\n{self._date}"
        )
        if headers and any(name == "Cache-Control" for name, _ in headers):
            return lines
        return f"{lines}Cache-Control: no-cache, private\r\n"

    def peer(self, transport: asyncio.BaseTransport) -> Mapping[str, Any] | None:
        """Return the client's verified certificate with its fingerprint, which identifies the credential in audits."""
        certificate: dict[str, Any] | None = transport.get_extra_info("peercert")
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        encoded = tls.getpeercert(binary_form=True) if certificate and tls else None
        if certificate is None or encoded is None:
            return certificate or None
        return {**certificate, FINGERPRINT: hashlib.sha256(encoded).hexdigest()}


_HOSTS = (
    *("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("127.0.0.1", "::1", "10.0.0.1"),
)


def server_context(
    authority: Authority, host: str, serving: KeyPair | None = None, client_ca: bytes = b""
) -> ssl.SSLContext:
    """Return the TLS settings of the server: client certificates are optional.

    Raise SSLError if `serving` or `client_ca` (PEM) are not valid.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    if client_ca:
        context.load_verify_locations(cadata=client_ca.decode("latin-1"))
    context.set_alpn_protocols(["http/1.1"])
    # Go's and Python's clients keep connections and resume no sessions; tickets were a third of each handshake.
    context.num_tickets = 0
    if serving is not None:
        load_pair(context, serving)
        return context
    pair = authority.serving("kube-apiserver", (*_HOSTS, host))
    # With the chain at hand: OpenSSL would look for it among the authorities at each handshake, a tenth of its time.
    load_pair(context, KeyPair(pair.certificate + b"\n" + authority.pair.certificate, pair.key))
    return context
