"""A TLS context whose certificate can change between two connections."""

import ssl
import tempfile
from pathlib import Path
from typing import Any

from kubewright.certificates.authority import KeyPair


class FollowingContext(ssl.SSLContext):
    """Hands each new connection to the newest context; loading into a live one could show half a pair."""

    def __new__(cls, client_ca: Path | None = None) -> "FollowingContext":
        """Make a context that serves."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, client_ca: Path | None = None) -> None:
        self._client_ca = client_ca
        self._newest: ssl.SSLContext | None = None

    @property
    def loaded(self) -> bool:
        """Return True if there is a certificate to show."""
        return self._newest is not None

    def load(self, certificate: bytes, key: bytes) -> None:
        """Show this certificate from now on; blocking, and raises ValueError where the pair cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Offering nothing else keeps API servers on HTTP/1.1, which is what we speak.
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
    """Have a context show a certificate; raises SSLError where the two do not belong together."""
    # The TLS library reads them from files only: this one is its owner's alone, and gone at once.
    with tempfile.TemporaryDirectory(prefix="kubewright-") as folder:
        path = Path(folder, "pair.pem")
        path.touch(mode=0o600)
        path.write_bytes(pair.key + b"\n" + pair.certificate)
        context.load_cert_chain(path)
