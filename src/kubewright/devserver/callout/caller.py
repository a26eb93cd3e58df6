"""Call webhooks over HTTPS, with connections kept for the next call."""

import asyncio
import ssl
from collections import deque

from kubewright.devserver.access import Access
from kubewright.devserver.objects import Wire
from kubewright.devserver.status import quote

from .destinations import Destination, destination
from .exchange import Exchange, Reply
from .failures import CallFailed, connection_failure, status_failure

MAX_IDLE = 8
MAX_CONTEXTS = 64

_Peer = tuple[str, int, str, str]


class Caller:
    """Post documents to webhooks."""

    def __init__(self, api: Access) -> None:
        self._api = api
        self._idle: dict[_Peer, deque[Exchange]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, config: Wire, body: bytes, seconds: float, query: str = "") -> bytes:
        """Post a body to where a client configuration leads; gives the body of a good answer."""
        place = destination(config, query, self._api)
        try:
            async with asyncio.timeout(seconds):
                reply = await self._send(place, body)
        except (OSError, EOFError) as error:
            why = connection_failure(error, _address(place), place.server_name)
            raise CallFailed(f"Post {quote(place.url)}: {why}") from None
        except CallFailed as error:
            raise CallFailed(f"Post {quote(place.url)}: {error}") from None
        if not 200 <= reply.status < 300:
            raise CallFailed(status_failure(reply.status, reply.content_type, bytes(reply.body)))
        if not reply.body:
            raise CallFailed(
                f"0-length response with status code: {reply.status} and content type: {reply.content_type}"
            )
        return bytes(reply.body)

    async def _send(self, place: Destination, body: bytes) -> Reply:
        kept = self._take(place)
        if kept is not None:
            try:
                return await self._exchange(place, kept, body)
            except (ConnectionError, EOFError):
                # The other side has closed a connection that it was free to close: ask again on a new one.
                pass
        return await self._exchange(place, await Exchange.open(place, self._context(place.authority)), body)

    async def _exchange(self, place: Destination, exchange: Exchange, body: bytes) -> Reply:
        lasting = False
        try:
            reply = await exchange.post(place, body)
            lasting = reply.lasting
            return reply
        finally:
            idle = self._idle.setdefault(_peer(place), deque())
            if lasting and exchange.usable and len(idle) < MAX_IDLE:
                idle.append(exchange)
            else:
                exchange.close()

    def _take(self, place: Destination) -> Exchange | None:
        idle = self._idle.get(_peer(place))
        while idle:
            exchange = idle.pop()
            if exchange.usable:
                return exchange
            exchange.close()
        return None

    def _context(self, authority: str) -> ssl.SSLContext:
        found = self._contexts.get(authority)
        if found is None:
            if len(self._contexts) >= MAX_CONTEXTS:
                self._contexts.clear()
            try:
                found = ssl.create_default_context(cadata=authority or None)
            except ssl.SSLError:
                raise CallFailed(
                    "unable to load root certificates: unable to parse bytes as PEM block"
                ) from None
            found.set_alpn_protocols(["http/1.1"])
            self._contexts[authority] = found
        return found

    def close(self) -> None:
        """Let all connections go."""
        for idle in self._idle.values():
            for exchange in idle:
                exchange.close()
        self._idle.clear()


def _peer(place: Destination) -> _Peer:
    return place.host, place.port, place.server_name, place.authority


def _address(place: Destination) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{host}:{place.port}"
