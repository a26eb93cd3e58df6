"""Storage of a certificate bundle: a Secret that all replicas share, a file, or memory."""

import asyncio
import logging
import tempfile
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kubewright.api import AlreadyExists, Conflict, Forbidden, Kind, KubewrightError, NotFound
from kubewright.client import Client
from kubewright.webhook.certificates.authority import CertificateBundle, split_authorities

SECRET = Kind(group="", version="v1", kind="Secret", plural="secrets", builtin=True)
_log = logging.getLogger("kubewright.webhook")
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


class CertificateStoreError(KubewrightError):
    """Certificates cannot be read or stored."""


class CertificateStore(Protocol):
    """Stores one bundle; if several replicas write at once, one succeeds."""

    shared: bool
    """Whether other processes may change the stored bundle."""

    async def load(self) -> CertificateBundle | None:
        """Return the stored bundle, or None if there is no usable one."""
        ...

    async def save(self, bundle: CertificateBundle) -> bool:
        """Replace the bundle that was last loaded; return False if another replica did so first."""
        ...


class MemoryStore:
    """Stores the bundle in memory."""

    shared = False

    def __init__(self) -> None:
        self._bundle: CertificateBundle | None = None

    async def load(self) -> CertificateBundle | None:
        """Return the saved bundle."""
        return self._bundle

    async def save(self, bundle: CertificateBundle) -> bool:
        """Save the bundle."""
        self._bundle = bundle
        return True


class FileStore:
    """Stores the bundle in a file that only its owner can read, so that the next run is trusted at once.

    If the file cannot be written, the bundle lasts for this run: the next run is trusted a little later.
    """

    shared = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = b""
        self._held: CertificateBundle | None = None

    async def load(self) -> CertificateBundle | None:
        """Read the file."""
        if self._held is not None:
            return self._held
        self._content = await asyncio.to_thread(self._read)
        return await asyncio.to_thread(_bundle, _data(self._content))

    async def save(self, bundle: CertificateBundle) -> bool:
        """Replace the file unless another run did so first."""
        if self._held is None:
            try:
                return await asyncio.to_thread(self._write, msgspec.json.encode(_values(bundle)))
            except OSError as error:
                message = "Webhook certificates are not persisted: cannot write %s: %s"
                _log.warning(message, self._path, error.strerror or error)
        self._held = bundle
        return True

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError:
            return b""

    def _write(self, content: bytes) -> bool:
        if self._read() != self._content:
            return False
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Readable only by the owner, and written atomically.
        with tempfile.TemporaryDirectory(dir=self._path.parent, prefix=f".{self._path.name}-") as folder:
            whole = Path(folder, self._path.name)
            whole.touch(mode=0o600)
            whole.write_bytes(content)
            whole.replace(self._path)
        return True


class SecretStore:
    """Stores the bundle in a Secret, written with the resourceVersion that was read."""

    shared = True

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self.namespace: str = namespace
        self._name = name
        self._version = ""

    async def load(self) -> CertificateBundle | None:
        """Read the Secret."""
        try:
            found = await self._client.get(SECRET, self._name, self.namespace)
        except NotFound:
            self._version = ""
            return None
        self._version = found["metadata"]["resourceVersion"]
        return await asyncio.to_thread(_bundle, found.get("data") or {})

    async def save(self, bundle: CertificateBundle) -> bool:
        """Write the Secret; return False on a conflict: another replica wrote it."""
        data = _values(bundle)
        try:
            if self._version:
                patch = {"metadata": {"resourceVersion": self._version}, "data": data}
                await self._client.patch(SECRET, patch, name=self._name, namespace=self.namespace)
            else:
                metadata = {"name": self._name, "namespace": self.namespace}
                document: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
                await self._client.create({**document, "data": data}, kind=SECRET)
        except (Conflict, AlreadyExists, NotFound):
            return False
        except Forbidden as error:
            if self._version:
                raise
            raise CertificateStoreError(
                f"Secret {self.namespace}/{self._name} is not there and may not be created: "
                "apply what `kubewright manifests` prints"
            ) from error
        return True


def _values(bundle: CertificateBundle) -> dict[str, str]:
    values = (bundle.ca_bundle, bundle.authority_key, bundle.certificate, bundle.key)
    return {key: b64encode(value).decode() for key, value in zip(_KEYS, values, strict=True)}


def _data(content: bytes) -> dict[str, str]:
    try:
        return msgspec.json.decode(content, type=dict[str, str]) if content else {}
    except msgspec.DecodeError:
        return {}


def _bundle(data: dict[str, str]) -> CertificateBundle | None:
    try:
        authorities, authority_key, certificate, key = (b64decode(data[name]) for name in _KEYS)
        return CertificateBundle(split_authorities(authorities), authority_key, certificate, key)
    except (KeyError, ValueError):
        return None
