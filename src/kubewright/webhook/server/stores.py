"""Where a bundle is kept: in a Secret that all replicas share, or in this process alone."""

import asyncio
from base64 import b64decode, b64encode
from typing import Any, Protocol

from kubewright.api import AlreadyExists, Conflict, Forbidden, Kind, KubewrightError, NotFound
from kubewright.client import Client
from kubewright.webhook.server.authority import Bundle, split_authorities

SECRET = Kind(group="", version="v1", kind="Secret", plural="secrets", builtin=True)
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


class CertificateError(KubewrightError):
    """Certificates that cannot be read or kept."""


class Store(Protocol):
    """Keeps one bundle; several replicas may write, one of them wins."""

    shared: bool
    """Whether others may change what is kept."""

    async def load(self) -> Bundle | None:
        """Return the bundle that is kept, or None where there is no usable one."""
        ...

    async def save(self, bundle: Bundle) -> bool:
        """Keep a bundle in the place of the one last loaded; False when somebody else was quicker."""
        ...


class MemoryStore:
    """Keeps the bundle for the life of this process."""

    shared = False

    def __init__(self) -> None:
        self._bundle: Bundle | None = None

    async def load(self) -> Bundle | None:
        """Return what was saved."""
        return self._bundle

    async def save(self, bundle: Bundle) -> bool:
        """Keep it."""
        self._bundle = bundle
        return True


class SecretStore:
    """Keeps the bundle in one Secret, written with the version that was read."""

    shared = True

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._version = ""

    async def load(self) -> Bundle | None:
        """Read the Secret."""
        try:
            found = await self._client.get(SECRET, self._name, self._namespace)
        except NotFound:
            self._version = ""
            return None
        self._version = found["metadata"]["resourceVersion"]
        return await asyncio.to_thread(_bundle, found.get("data") or {})

    async def save(self, bundle: Bundle) -> bool:
        """Write the Secret; a conflict means that another replica did."""
        values = (bundle.ca_bundle, bundle.authority_key, bundle.certificate, bundle.key)
        data = {key: b64encode(value).decode() for key, value in zip(_KEYS, values, strict=True)}
        try:
            if self._version:
                patch = {"metadata": {"resourceVersion": self._version}, "data": data}
                await self._client.patch(SECRET, patch, name=self._name, namespace=self._namespace)
            else:
                metadata = {"name": self._name, "namespace": self._namespace}
                document: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
                await self._client.create({**document, "data": data}, kind=SECRET)
        except (Conflict, AlreadyExists, NotFound):
            return False
        except Forbidden as error:
            if self._version:
                raise
            raise CertificateError(
                f"Secret {self._namespace}/{self._name} is not there and may not be created: "
                "apply what `kubewright manifests --only webhooks` prints"
            ) from error
        return True


def _bundle(data: dict[str, str]) -> Bundle | None:
    try:
        authorities, authority_key, certificate, key = (b64decode(data[name]) for name in _KEYS)
        return Bundle(split_authorities(authorities), authority_key, certificate, key)
    except (KeyError, ValueError):
        return None
