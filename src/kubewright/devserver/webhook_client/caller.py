"""Call webhooks over HTTPS, with connections kept for the next call."""

import asyncio
import ssl
from collections.abc import Collection
from urllib.parse import quote as quoted

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import quote
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.webhook_client.destinations import Destination, destination, redirected
from kubewright.devserver.webhook_client.failures import (
    CallFailed,
    TooManyRedirects,
    connection_failure,
    status_failure,
)
from kubewright.devserver.wire import (
    PARSE_ERROR,
    WireDecodeError,
    find_kind,
    load_types,
    parse_json,
    parse_yaml,
)
from kubewright.http.client import (
    ClientResponse,
    ConnectionBroken,
    Exchange,
    ExchangeFailed,
    NotSent,
    Origin,
    Pool,
    Route,
    encode_headers,
    encode_request,
)
from kubewright.http.network import NETWORK

MAX_ANSWER = 64 * 1024 * 1024
MAX_CONTEXTS = 64
MAX_REQUESTS = 10
"""Requests of one call, redirects included."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEAD = (
    ("User-Agent", "kube-apiserver-admission"),
    ("Accept", "application/json, */*"),
    ("Content-Type", "application/json"),
)

_Peer = tuple[str, int, str, str]


class Caller:
    """Post documents to webhooks."""

    def __init__(self, api: Access) -> None:
        self._api = api
        self._pools: dict[_Peer, Exchange] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, config: JsonObject, body: bytes, seconds: float, query: str = "") -> bytes:
        """Post a body to where a client configuration leads; return the body of a successful response."""
        place = destination(config, query, self._api)
        try:
            async with asyncio.timeout(seconds):
                response, content = await self._follow(place, body, seconds)
        except TooManyRedirects as error:
            raise CallFailed(str(error)) from None
        except (ExchangeFailed, TimeoutError) as error:
            why = connection_failure(error, _address(place), place.server_name)
            raise CallFailed(f"Post {quote(place.url)}: {why}") from None
        except CallFailed as error:
            raise CallFailed(f"Post {quote(place.url)}: {error}") from None
        content_type = response.headers.get("Content-Type")
        if not 200 <= response.status < 300:
            raise CallFailed(status_failure(response.status, content_type, content))
        if not content:
            raise CallFailed(
                f"0-length response with status code: {response.status} and content type: {content_type}"
            )
        return content

    async def _follow(self, place: Destination, body: bytes, seconds: float) -> tuple[ClientResponse, bytes]:
        """Post a body and follow redirects as Go's HTTP client: only 307 and 308 repeat the method and the body."""
        method, location = "POST", ""
        for _ in range(MAX_REQUESTS):
            response, content = await self._send(place, method, body, seconds)
            location = response.headers.get("Location") or ""
            if response.status not in _REDIRECTS or not location:
                return response, content
            if response.status not in (307, 308):
                method, body = "GET", b""
            place = redirected(place, location)
        raise TooManyRedirects(
            f"{method.capitalize()} {quote(location)}: stopped after {MAX_REQUESTS} redirects"
        )

    async def _send(
        self, place: Destination, method: str, body: bytes, seconds: float
    ) -> tuple[ClientResponse, bytes]:
        host = place.url.removeprefix("https://").partition("/")[0]
        target = quoted(place.target, safe="/?&=%:@!$'()*+,;~")
        given = _HEAD if body else _HEAD[:-1]
        head = encode_request(method, target, encode_headers((("Host", host), *given)), body)
        pool = self._pool(place)
        while True:
            try:
                return await _exchange(pool, head, body, seconds)
            except NotSent:
                pass
            except ConnectionBroken as error:
                # The server may have closed an idle connection: retry on another.
                if error.begun or not error.stale:
                    raise

    def _pool(self, place: Destination) -> Exchange:
        network = NETWORK.get()
        if network is not None:
            return network.connect(place.host, place.port)
        peer = place.host, place.port, place.server_name, place.authority
        found = self._pools.get(peer)
        if found is None:
            server = Origin("https", place.host, place.port)
            route = Route(server, tls=self._context(place.authority), server_name=place.server_name)
            found = self._pools[peer] = Pool(route)
        return found

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
            # As in Go: any certificate of the bundle is trusted, and a common name identifies no server.
            found.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            found.hostname_checks_common_name = False
            self._contexts[authority] = found
        return found

    async def close(self) -> None:
        """Let all connections go."""
        for pool in self._pools.values():
            await pool.close()
        self._pools.clear()


async def _exchange(pool: Exchange, head: bytes, body: bytes, seconds: float) -> tuple[ClientResponse, bytes]:
    response, reply = await pool.stream(head, body, seconds)
    content = bytearray()
    try:
        while piece := await reply.read(seconds):
            content += piece
            if len(content) > MAX_ANSWER:
                raise CallFailed("the response is too large")
    finally:
        reply.release()
    return response, bytes(content)


def _address(place: Destination) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{host}:{place.port}"


_STATUS = GroupVersionKind("", "v1", "Status")


def read_review(
    body: bytes, expected: GroupVersionKind, versions: Collection[str], scheme: str
) -> JsonObject:
    """Read a response as the Go type of a review; raise CallFailed with kube-apiserver's error if it is no such one.

    `versions` are those that kube-apiserver's `scheme` knows; only the expected one can be read. A missing version or
    kind counts as the expected one, and stays missing.
    """
    review, header = _document(body)
    actual = GroupVersionKind.parse(
        header.get("apiVersion") or expected.api_version, header.get("kind") or expected.kind
    )
    if actual == _STATUS:
        raise _no_conversion(actual, expected)
    if (actual.group, actual.kind) != (expected.group, expected.kind) or actual.version not in versions:
        raise CallFailed(
            f"no kind {quote(actual.kind)} is registered for version {quote(actual.api_version)} "
            f"in scheme {quote(scheme)}"
        )
    types = load_types()
    try:
        decoded, _ = types.decode_request(actual if types.has(actual) else expected, review)
    except WireDecodeError as error:
        raise CallFailed(str(error)) from None
    if actual.version != expected.version:
        raise _no_conversion(actual, expected)
    return decoded


def _no_conversion(actual: GroupVersionKind, expected: GroupVersionKind) -> CallFailed:
    here, there = (f"{gvk.version}.{gvk.kind}" for gvk in (actual, expected))
    return CallFailed(f"converting ({here}) to ({there}): unknown conversion")


def _document(body: bytes) -> tuple[JsonObject, JsonObject]:
    """Parse a response as kube-apiserver does: as JSON if it begins like an object, else as YAML; find its kind."""
    is_json = body.lstrip()[:1] == b"{"
    try:
        value = (parse_json if is_json else parse_yaml)(body)[0]
    except WireDecodeError as error:
        raise CallFailed(f"{PARSE_ERROR if is_json else ''}{error}") from None
    if value is None:
        return {}, {}
    try:
        return value, find_kind(value)
    except WireDecodeError as error:
        raise CallFailed(str(error)) from None
