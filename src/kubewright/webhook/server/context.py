"""A TLS context whose certificate can change between two connections."""

import ssl
import tempfile
from pathlib import Path
from typing import Any


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
        """Say whether there is a certificate to show."""
        return self._newest is not None

    def load(self, certificate: bytes, key: bytes) -> None:
        """Show this certificate from now on; blocking, and raises ValueError where the pair cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Offering nothing else keeps API servers on HTTP/1.1, which is what we speak.
        context.set_alpn_protocols(["http/1.1"])
        try:
            # The TLS library reads certificates from files only.
            with tempfile.TemporaryDirectory() as folder:
                pair = Path(folder, "pair.pem")
                pair.touch(mode=0o600)
                pair.write_bytes(key + b"\n" + certificate)
                context.load_cert_chain(pair)
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
