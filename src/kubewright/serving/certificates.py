"""The serving certificate: from a mounted directory, reloaded when it changes, or self-signed."""

import asyncio
import logging
import socket
from datetime import timedelta
from pathlib import Path

from kubewright.api import KubewrightError
from kubewright.certificates import Authority, FollowingContext

POLL = 10.0
LIFE = timedelta(days=365)

_log = logging.getLogger("kubewright.serving")


class ServingCertificateError(KubewrightError):
    """The serving certificate cannot be loaded."""


class ServingCertificate:
    """A TLS context for `tls.crt` and `tls.key` of a directory, or for a self-signed certificate."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self.context: FollowingContext = FollowingContext()
        self._stamp: tuple[int, int] | None = None
        if directory is None:
            self._load_own()
        else:
            self._load(directory)

    async def follow(self) -> None:
        """Reload the certificate when its files change; keep the old one if the new one is invalid."""
        while self._directory is not None:
            await asyncio.sleep(POLL)
            try:
                if self._files_changed(self._directory):
                    await asyncio.to_thread(self._load, self._directory)
                    _log.info("Reloaded the serving certificate")
            except ServingCertificateError as error:
                _log.error("Cannot load the new serving certificate, keeping the old one: %s", error)

    def _files_changed(self, directory: Path) -> bool:
        try:
            return _stamp(directory) != self._stamp
        except OSError:
            return False

    def _load(self, directory: Path) -> None:
        try:
            self._stamp = _stamp(directory)
            pair = [(directory / name).read_bytes() for name in ("tls.crt", "tls.key")]
            self.context.load(*pair)
        except (OSError, ValueError) as error:
            raise ServingCertificateError(f"{directory}/tls.crt and tls.key: {error}") from error

    def _load_own(self) -> None:
        host = socket.gethostname()
        own = Authority.create(life=LIFE).serving(host, [host, "localhost"], life=LIFE)
        self.context.load(own.certificate, own.key)


def _stamp(directory: Path) -> tuple[int, int]:
    return (directory / "tls.crt").stat().st_mtime_ns, (directory / "tls.key").stat().st_mtime_ns
