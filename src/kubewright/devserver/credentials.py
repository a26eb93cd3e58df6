"""Certificates, keys and tokens that a server uses in place of generated ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubewright.certificates import KeyPair
from kubewright.devserver.auth import TokenIssuer
from kubewright.devserver.auth.token_keys import SigningKey, verification_keys
from kubewright.devserver.auth.tokens import ISSUER


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """The certificates, keys and tokens of a server; everything that is not set is generated. All keys are PEM."""

    serving: KeyPair | None = None
    """The certificate, with its chain, that clients see."""
    client_ca: bytes = b""
    """Certificates of authorities whose client certificates are accepted, in addition to the server's own authority."""
    token_key: bytes = b""
    """The private key (RSA or elliptic curve) that signs ServiceAccount tokens."""
    token_verification_keys: Sequence[bytes] = ()
    """Files with public keys, certificates or private keys that verify ServiceAccount tokens; default: `token_key`."""
    token_issuers: Sequence[str] = (ISSUER,)
    """The issuer of ServiceAccount tokens, then further issuers whose tokens are accepted."""
    token_audiences: Sequence[str] = ()
    """The audiences of the server itself; default: the issuers."""
    token_file: Path | None = None
    """Static bearer tokens: lines of `token,user,uid,"group,group"`."""

    def issuer(self, generated_key: bytes, now: Callable[[], float]) -> TokenIssuer:
        """Return the issuer of ServiceAccount tokens; `generated_key` signs if no key is set."""
        return TokenIssuer(
            SigningKey.from_pem(self.token_key or generated_key),
            now,
            verification=[key for pem in self.token_verification_keys for key in verification_keys(pem)],
            issuers=self.token_issuers,
            audiences=self.token_audiences,
        )
