"""A TLS context whose certificate can change between two connections."""

import ssl
import tempfile
from pathlib import Path
from typing import Any

from kubewright.certificates.authority import KeyPair


class FollowingContext(ssl.SSLContext):
    """Uses the newest context for each new connection; loading into a live context could mix an old and a new file."""

    def __new__(cls, client_ca: Path | None = None) -> "FollowingContext":
        """Create a server context."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, client_ca: Path | None = None) -> None:
        self._client_ca = client_ca
        self._newest: ssl.SSLContext | None = None

    @property
    def loaded(self) -> bool:
        """Return True if a certificate is loaded."""
        return self._newest is not None

    def load(self, certificate: bytes, key: bytes) -> None:
        """Use this certificate from now on; blocks, and raises ValueError if the pair is invalid."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Offer only HTTP/1.1, the version that the server supports.
        context.set_alpn_protocols(["http/1.1"])
        try:
            load_pair(context, KeyPair(certificate, key))
            if self._client_ca is not None:
                context.load_verify_locations(self._client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except (ssl.SSLError, OSError) as error:
            raise ValueError(str(error)) from error
        self._newest = context

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection with the newest certificate."""
        if self._newest is None:
            raise ssl.SSLError("there is no certificate yet")
        return self._newest.wrap_bio(*arguments, **options)


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load a certificate into a context; raise SSLError if certificate and key do not match."""
    # Python's ssl reads them only from files: this one is readable only by its owner and removed at once.
    with tempfile.TemporaryDirectory(prefix="kubewright-") as folder:
        path = Path(folder, "pair.pem")
        path.touch(mode=0o600)
        path.write_bytes(pair.key + b"\n" + pair.certificate)
        context.load_cert_chain(path)
