"""The certificate that a server shows: from a mounted directory, read again when it changes, or its own."""

import asyncio
import logging
import socket
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.api import KubewrightError

POLL = 10.0
LIFE = timedelta(days=365)

_log = logging.getLogger("kubewright.serving")


class CertificateError(KubewrightError):
    """A certificate that cannot be used."""


class ServingCertificate:
    """A TLS context that follows `tls.crt` and `tls.key` of a directory; without one it signs its own."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self.context: ssl.SSLContext = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._stamp: tuple[int, int] | None = None
        if directory is None:
            self._load_own()
        else:
            self._load(directory)

    async def follow(self) -> None:
        """Read the certificate again whenever its files change; a broken one leaves the old in place."""
        while self._directory is not None:
            await asyncio.sleep(POLL)
            try:
                if self._files_changed(self._directory):
                    await asyncio.to_thread(self._load, self._directory)
                    _log.info("Read the serving certificate again")
            except CertificateError as error:
                _log.error("The new serving certificate cannot be used, the old one stays: %s", error)

    def _files_changed(self, directory: Path) -> bool:
        try:
            return _stamp(directory) != self._stamp
        except OSError:
            return False

    def _load(self, directory: Path) -> None:
        try:
            self._stamp = _stamp(directory)
            self.context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(f"{directory}/tls.crt and tls.key: {error}") from error

    def _load_own(self) -> None:
        certificate, key = _self_signed()
        # The TLS library reads certificates from files only.
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder, "pair.pem")
            pair.touch(mode=0o600)
            pair.write_bytes(key + certificate)
            self.context.load_cert_chain(pair)


def _stamp(directory: Path) -> tuple[int, int]:
    return (directory / "tls.crt").stat().st_mtime_ns, (directory / "tls.key").stat().st_mtime_ns


def _self_signed() -> tuple[bytes, bytes]:
    """Return a certificate for this host and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    host = socket.gethostname()[:64]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFE)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host), x509.DNSName("localhost")]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
