"""Credentials from an OpenID Connect provider: the id token is refreshed before it expires."""

import asyncio
import base64
import binascii
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import yaml

from kubewright.api import (
    ConnectionFailed,
    CredentialError,
)
from kubewright.client.config import OidcProvider
from kubewright.client.credentials import Credential, bearer
from kubewright.client.exec_plugin import loop_time_of
from kubewright.client.identity import ask_provider
from kubewright.documents import DocumentError, YamlDocument, read_yaml

_log = logging.getLogger("kubewright.client")

EARLY = 10.0
"""A token is refreshed this many seconds before it expires, so that it does not expire during a request."""

ProviderRequest = Callable[
    [str, Mapping[str, str] | None, tuple[str, str] | None], Awaitable[tuple[int, bytes]]
]
"""GET a URL, or POST a form to it with user and password: (status, body)."""


class _Discovery(msgspec.Struct):
    token_endpoint: str


class _Tokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""


class _Claims(msgspec.Struct):
    exp: float = 0


_discoveries = msgspec.json.Decoder(_Discovery)
_tokens = msgspec.json.Decoder(_Tokens)
_claims = msgspec.json.Decoder(_Claims)


def oidc_source(provider: OidcProvider) -> "OidcSource":
    """Return the credentials of a provider that is reached over the network."""
    return OidcSource(provider, lambda url, form, basic: ask_provider(provider, url, form, basic))


class OidcSource:
    """Use the ID token while it is valid, then use the refresh token to get another."""

    def __init__(self, provider: OidcProvider, exchange: ProviderRequest) -> None:
        self._provider = provider
        self._exchange = exchange
        self._id_token = provider.id_token
        self._refresh_token = provider.refresh_token

    async def obtain(self, refused: bool) -> Credential:
        """Return the id token, refreshed if it is missing, stale or refused."""
        until = loop_time_of(expiry_of(self._id_token)) - EARLY
        if refused or until <= asyncio.get_running_loop().time():
            await self._refresh()
            until = loop_time_of(expiry_of(self._id_token)) - EARLY
        return Credential(bearer(self._id_token, self._provider.issuer_url), valid_until=until)

    async def _refresh(self) -> None:
        issuer = self._provider.issuer_url
        if not self._refresh_token:
            raise CredentialError(
                f"the id token of {issuer} has expired and there is no refresh token: log in again"
            )
        endpoint = await self._token_endpoint()
        client_id, secret = self._provider.client_id, self._provider.client_secret
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
        status, body = await self._ask(endpoint, form, (quote(client_id, safe=""), quote(secret, safe="")))
        if status in (400, 401):
            # Providers differ in where they expect the client's own secret.
            status, body = await self._ask(
                endpoint, {**form, "client_id": client_id, "client_secret": secret}, None
            )
        if status != 200:
            raise CredentialError(f"{issuer} refused to refresh the token (HTTP {status}): log in again")
        try:
            tokens = _tokens.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise CredentialError(f"{issuer} answered a refresh with something that is no token") from None
        if not tokens.id_token:
            raise CredentialError(f"{issuer} answered a refresh without an id token")
        self._id_token = tokens.id_token
        self._refresh_token = tokens.refresh_token or self._refresh_token
        await self._keep()

    async def _token_endpoint(self) -> str:
        url = f"{self._provider.issuer_url.rstrip('/')}/.well-known/openid-configuration"
        status, body = await self._ask(url, None, None)
        try:
            if status == 200:
                return _discoveries.decode(body).token_endpoint
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        raise CredentialError(f"{url} does not describe an identity provider (HTTP {status})")

    async def _ask(
        self, url: str, form: Mapping[str, str] | None, basic: tuple[str, str] | None
    ) -> tuple[int, bytes]:
        try:
            return await self._exchange(url, form, basic)
        except ConnectionFailed as error:
            raise CredentialError(f"the identity provider cannot be reached: {error}") from None

    async def _keep(self) -> None:
        provider = self._provider
        if not provider.kubeconfig:
            return
        tokens = {"id-token": self._id_token, "refresh-token": self._refresh_token}
        try:
            await asyncio.to_thread(store_tokens, Path(provider.kubeconfig), provider.user, tokens)
        except (OSError, DocumentError) as error:
            _log.warning(
                "refreshed tokens could not be kept in %s: %s", provider.kubeconfig, type(error).__name__
            )


def expiry_of(token: str) -> datetime:
    """Return when a JSON web token expires; one that cannot be read has expired."""
    try:
        payload = token.split(".")[1]
        claims = _claims.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(claims.exp, UTC)
    except (IndexError, binascii.Error, msgspec.DecodeError, ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def store_tokens(path: Path, user: str, tokens: Mapping[str, str]) -> None:
    """Write refreshed tokens into a user's auth-provider of a kubeconfig, replacing the file in one step.

    If the file was rewritten without that user in the meantime, it is not changed.
    """
    document = next(read_yaml(path.read_bytes()), YamlDocument(None, [])).value
    try:
        users: list[Any] = [entry["user"] for entry in document["users"] if entry["name"] == user]
        users[0]["auth-provider"]["config"].update(tokens)
    except (LookupError, TypeError, AttributeError):
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        os.chmod(name, path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
