"""Requests to an identity provider, which has its own address and certificate authority."""

import asyncio
import os
import ssl
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from msgspec.structs import replace

from kubewright.api import ConnectionFailed
from kubewright.client.config import OidcProvider
from kubewright.client.credentials import basic_authorization
from kubewright.client.proxies import proxy_for
from kubewright.client.tls import trusting_only
from kubewright.http.client import ExchangeFailed, Origin, Pool, Route, encode_headers, encode_request

TIMEOUT = 30.0


async def ask_provider(
    provider: OidcProvider, url: str, form: Mapping[str, str] | None, basic: tuple[str, str] | None
) -> tuple[int, bytes]:
    """GET a URL, or POST a form to it, and return the status and body of the response."""
    try:
        server = Origin.of(url)
        proxy = proxy_for(url, "", os.environ)
        route = Route(server, Origin.of(proxy) if proxy else None)
        if route.needs_tls:
            route = replace(route, tls=await asyncio.to_thread(_trust, provider))
        return await _exchange(route, url, form, basic)
    except (ExchangeFailed, ValueError) as error:
        # Their own text may show the proxy's password.
        raise ConnectionFailed(f"{url}: {type(error).__name__}") from None


async def _exchange(
    route: Route, url: str, form: Mapping[str, str] | None, basic: tuple[str, str] | None
) -> tuple[int, bytes]:
    fields = [*route.head(), ("User-Agent", "kubewright"), ("Accept", "application/json")]
    body = urlencode(form).encode() if form else b""
    if form:
        fields.append(("Content-Type", "application/x-www-form-urlencoded"))
    if basic:
        fields.append(("Authorization", basic_authorization(*basic)))
    parts = urlsplit(url)
    target = route.target((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    head = encode_request("POST" if form else "GET", target, encode_headers(fields), body)
    pool = Pool(route)
    try:
        response = await pool.send(head, body, TIMEOUT)
    finally:
        await pool.close()
    return response.status, response.body


def _trust(provider: OidcProvider) -> ssl.SSLContext:
    if provider.ca_data:
        return trusting_only(provider.ca_data, provider.issuer_url)
    return ssl.create_default_context()
