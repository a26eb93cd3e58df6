"""The client's credential, and when it must be renewed."""

import asyncio
import base64
import logging
from math import inf
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec.structs import replace

from kubewright.api import CredentialError
from kubewright.client.config import ClusterConfig, Discreet

_log = logging.getLogger("kubewright.client")

FILE_LIFETIME = 60.0
"""Kubernetes rotates the files of a ServiceAccount long before they expire."""


class Credential(Discreet, frozen=True):
    """A credential, valid until `valid_until` on the event loop's clock."""

    secret: ClassVar[frozenset[str]] = frozenset({"authorization", "certificate", "key"})
    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""
    valid_until: float = inf

    def proves_the_same(self, other: "Credential") -> bool:
        """Return True if both authenticate the same way."""
        return (self.authorization, self.certificate, self.key) == (
            other.authorization,
            other.certificate,
            other.key,
        )


class CredentialSource(Protocol):
    """Obtain credentials: from values, files, a program or an identity provider."""

    async def obtain(self, refused: bool) -> Credential:
        """Return a credential; `refused` is True if the server did not accept the previous one."""
        ...


class Authenticator:
    """Hold the current credential; obtain another when it expires or is rejected, once for all callers."""

    def __init__(self, source: CredentialSource) -> None:
        self._source = source
        self._present: Credential | None = None
        self._lock = asyncio.Lock()

    def current(self) -> Credential | None:
        """Return the current credential, or None if it must be renewed first."""
        present = self._present
        if present is None or present.valid_until == inf:
            return present
        return present if asyncio.get_running_loop().time() < present.valid_until else None

    async def renew(self) -> Credential:
        """Return a valid credential; obtain one from the source if needed."""
        async with self._lock:
            present = self.current()
            if present is None:
                present = self._present = await self._source.obtain(refused=False)
            return present

    async def replace(self, refused: Credential) -> bool:
        """Request another credential than the refused one; return True if there is one."""
        async with self._lock:
            present = self._present
            if present is None or present.proves_the_same(refused):
                present = self._present = await self._source.obtain(refused=True)
            return not present.proves_the_same(refused)


class StaticSource:
    """Credentials of the configuration; files are read again each minute."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._last: Credential | None = None

    async def obtain(self, refused: bool) -> Credential:
        """Return the configured credential, with the files as they are now."""
        config = self._config
        if not (config.token_file or config.client_cert_file or config.client_key_file):
            return _configured(config, config.token, config.client_cert_data, config.client_key_data)
        until = asyncio.get_running_loop().time() + FILE_LIFETIME
        try:
            self._last = replace(await asyncio.to_thread(_read_files, config), valid_until=until)
        except OSError as error:
            if self._last is None:
                raise CredentialError(f"{error.filename} cannot be read: {error.strerror}") from None
            _log.warning("%s cannot be read, going on with what it held: %s", error.filename, error.strerror)
            self._last = replace(self._last, valid_until=until)
        return self._last


def _read_files(config: ClusterConfig) -> Credential:
    token = Path(config.token_file).read_text().strip() if config.token_file else ""
    certificate = (
        Path(config.client_cert_file).read_bytes() if config.client_cert_file else config.client_cert_data
    )
    key = Path(config.client_key_file).read_bytes() if config.client_key_file else config.client_key_data
    return _configured(config, token or config.token, certificate, key)


def _configured(config: ClusterConfig, token: str, certificate: bytes, key: bytes) -> Credential:
    authorization = ""
    if token:
        authorization = bearer(token, config.source)
    elif config.username:
        authorization = basic_authorization(config.username, config.password)
    return Credential(authorization, certificate, key)


def bearer(token: str, source: str) -> str:
    """Return the Authorization header of a token; raise if the token is not valid in a header."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialError(f"the token of {source} holds characters that no token has")
    return f"Bearer {token}"


def basic_authorization(user: str, password: str) -> str:
    """Return the Authorization header of a user and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
