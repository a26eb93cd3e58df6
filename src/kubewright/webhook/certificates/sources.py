"""Sources of the serving certificates of webhooks and metrics: a mounted directory, or the operator's own authority."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from kubewright.api import KubewrightError
from kubewright.certificates import FollowingContext
from kubewright.metrics import Registry
from kubewright.webhook import Lifetimes
from kubewright.webhook.certificates.authority import CertificateBundle, advance, expiry, next_step, utc_now
from kubewright.webhook.certificates.stores import CertificateStore, CertificateStoreError, SecretStore

DIRECTORY_POLL = 10.0
RETRY = 5.0
ATTEMPTS = 10
LONGEST_SLEEP = 86400.0
USUAL_LIFETIMES = Lifetimes()

Announce = Callable[[bytes], Awaitable[None]]
"""Set the CA bundle in the cluster; the bundle is empty if another program manages it."""

_log = logging.getLogger("kubewright.webhook")


class CertificateSource(ABC):
    """A source of the serving certificate: loaded before anything is served, then kept up to date."""

    def __init__(self, context: FollowingContext, metrics: Registry) -> None:
        self.context = context
        self.last_error: str = ""
        """Why the last attempt to load the certificate failed; empty if it succeeded."""
        self._certificate = b""
        self._reads = metrics.counter("certwatcher_read_certificate_total", "Certificates read").labels()
        self._errors = metrics.counter(
            "certwatcher_read_certificate_errors_total", "Certificates that could not be used"
        ).labels()

    @abstractmethod
    async def prepare(self) -> bytes:
        """Load a certificate, and return the authorities to trust."""

    @abstractmethod
    async def follow(self, announce: Announce) -> None:
        """Keep the certificate up to date until cancelled."""

    def problem(self) -> str | None:
        """Return why the certificate is missing or expired, or None."""
        if not self.context.loaded:
            return "there is no certificate yet"
        if expiry(self._certificate) <= utc_now():
            return f"the serving certificate has expired{f': {self.last_error}' if self.last_error else ''}"
        return None

    async def _load(self, certificate: bytes, key: bytes) -> None:
        self._reads.inc()
        if certificate == self._certificate:
            return
        try:
            await asyncio.to_thread(self.context.load, certificate, key)
        except ValueError as error:
            self._errors.inc()
            raise CertificateStoreError(f"the certificate cannot be used: {error}") from error
        self._certificate = certificate


def source_of_service(
    store: SecretStore,
    service: str,
    metrics: Registry,
    context: FollowingContext | None = None,
    times: Lifetimes = USUAL_LIFETIMES,
) -> "OwnSource":
    """Return the source of certificates for a Service, which all replicas keep in a Secret beside it."""
    name = f"{service}.{store.namespace}"
    hosts = (f"{name}.svc", f"{name}.svc.cluster.local", name)
    return OwnSource(FollowingContext() if context is None else context, metrics, store, hosts, times)


class DirectorySource(CertificateSource):
    """Loads `tls.crt`, `tls.key` and, if present, `ca.crt` of a directory, in cert-manager's layout."""

    def __init__(self, context: FollowingContext, metrics: Registry, directory: Path) -> None:
        super().__init__(context, metrics)
        self._directory = directory

    async def prepare(self) -> bytes:
        """Read the files."""
        try:
            certificate, key, authorities = await asyncio.to_thread(self._read)
        except OSError as error:
            self._reads.inc()
            self._errors.inc()
            raise CertificateStoreError(f"{self._directory}: {error}") from error
        await self._load(certificate, key)
        return authorities

    async def follow(self, announce: Announce) -> None:
        """Read the files periodically; if they are invalid, the old certificate stays."""
        announced = b""
        while True:
            await asyncio.sleep(DIRECTORY_POLL)
            try:
                authorities = await self.prepare()
                if authorities != announced:
                    await announce(authorities)
                    announced = authorities
                self.last_error: str = ""
            except KubewrightError as error:
                self.last_error = str(error)
                _log.error("The serving certificate cannot be followed, the old one stays: %s", error)

    def _read(self) -> tuple[bytes, bytes, bytes]:
        certificate, key = ((self._directory / name).read_bytes() for name in ("tls.crt", "tls.key"))
        authority = self._directory / "ca.crt"
        return certificate, key, authority.read_bytes() if authority.is_file() else b""


class OwnSource(CertificateSource):
    """Signs its own certificates, and renews them and their authority step by step."""

    def __init__(
        self,
        context: FollowingContext,
        metrics: Registry,
        store: CertificateStore,
        hosts: Sequence[str],
        times: Lifetimes,
    ) -> None:
        super().__init__(context, metrics)
        self._store = store
        self._hosts = tuple(hosts)
        self._times = times
        self._bundle: CertificateBundle | None = None

    async def prepare(self) -> bytes:
        """Load the stored bundle, or create one; if several replicas create one at once, all use the first that is stored."""
        return (await self._step()).ca_bundle

    async def follow(self, announce: Announce) -> None:
        """Renew in time; no certificate is served before the cluster trusts its authority."""
        pause = self._pause(self._bundle)
        while True:
            await asyncio.sleep(pause)
            try:
                kept = await self._store.load()
                if kept is not None:
                    await announce(kept.ca_bundle)
                taken = await self._step()
                await announce(taken.ca_bundle)
                self.last_error: str = ""
                pause = self._pause(taken)
            except KubewrightError as error:
                self.last_error = str(error)
                pause = min(RETRY, self._times.poll.total_seconds())
                _log.error("The serving certificate cannot be renewed, trying again: %s", error)

    def _pause(self, bundle: CertificateBundle | None) -> float:
        """Return the delay until the next check: short if other replicas may change the bundle, otherwise until it is due."""
        poll = self._times.poll.total_seconds()
        if self._store.shared or bundle is None:
            return poll
        due = next_step(bundle, self._times, utc_now()).total_seconds()
        return min(max(due, poll / 10), LONGEST_SLEEP)

    async def _step(self) -> CertificateBundle:
        for _ in range(ATTEMPTS):
            kept = await self._store.load()
            desired = await asyncio.to_thread(
                advance, kept, self._hosts, self._times, utc_now(), self._bundle
            )
            if desired == kept or await self._store.save(desired):
                await self._load(desired.certificate, desired.key)
                self._bundle = desired
                if desired != kept:
                    fields = {
                        "authorities": len(desired.authorities),
                        "expires": str(expiry(desired.certificate)),
                    }
                    _log.info("Serving with new certificates", extra={"fields": fields})
                return desired
        raise CertificateStoreError("other replicas write the certificates all the time")
