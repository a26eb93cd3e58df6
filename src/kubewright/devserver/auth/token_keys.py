"""Keys that sign and verify ServiceAccount tokens: RSA and elliptic curves, read from PEM files as kube-apiserver does."""

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

# By curve: the algorithm of a token, the curve's name in a JSON Web Key, the bytes of a coordinate, the digest.
_CURVES: dict[str, tuple[str, str, int, hashes.HashAlgorithm]] = {
    "secp256r1": ("ES256", "P-256", 32, hashes.SHA256()),
    "secp384r1": ("ES384", "P-384", 48, hashes.SHA384()),
    "secp521r1": ("ES512", "P-521", 66, hashes.SHA512()),
}
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


class VerificationKey:
    """A public key that verifies tokens, named in them by `key_id`."""

    def __init__(self, public: PublicKey) -> None:
        if isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name not in _CURVES:
            raise ValueError(f"the curve {public.curve.name} cannot sign tokens: use P-256, P-384 or P-521")
        self.public: PublicKey = public
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.key_id: str = base64url(hashlib.sha256(der).digest())

    @property
    def algorithm(self) -> str:
        """Return the algorithm in the header of tokens: RS256, ES256, ES384 or ES512."""
        public = self.public
        return _CURVES[public.curve.name][0] if isinstance(public, ec.EllipticCurvePublicKey) else "RS256"

    def verifies(self, signature: bytes, body: bytes) -> bool:
        """Return True if the signature of a token's body is by this key."""
        public = self.public
        try:
            if isinstance(public, rsa.RSAPublicKey):
                public.verify(signature, body, padding.PKCS1v15(), hashes.SHA256())
                return True
            _, _, size, digest = _CURVES[public.curve.name]
            if len(signature) != 2 * size:
                return False
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            public.verify(encode_dss_signature(r, s), body, ec.ECDSA(digest))
        except InvalidSignature:
            return False
        return True

    def json_web_key(self) -> dict[str, Any]:
        """Return the key as an element of a JSON Web Key Set."""
        key: dict[str, Any] = {"use": "sig", "kid": self.key_id, "alg": self.algorithm}
        if isinstance(self.public, rsa.RSAPublicKey):
            numbers = self.public.public_numbers()
            return {**key, "kty": "RSA", "n": _integer(numbers.n), "e": _integer(numbers.e)}
        _, curve, size, _ = _CURVES[self.public.curve.name]
        point = self.public.public_numbers()
        x, y = (base64url(value.to_bytes(size, "big")) for value in (point.x, point.y))
        return {**key, "kty": "EC", "crv": curve, "x": x, "y": y}


class SigningKey:
    """A private key that signs tokens; `verification` is its public half."""

    def __init__(self, private: PrivateKey) -> None:
        self._private = private
        self.verification: VerificationKey = VerificationKey(private.public_key())

    @classmethod
    def from_pem(cls, pem: bytes) -> "SigningKey":
        """Read a private key; raise ValueError if the text holds none that can sign tokens."""
        try:
            found = serialization.load_pem_private_key(pem, None)
        except (ValueError, TypeError):
            raise ValueError("not an unencrypted private key in PEM") from None
        if not isinstance(found, PrivateKey):
            raise ValueError("the key is neither RSA nor an elliptic curve key")
        return cls(found)

    def sign(self, body: bytes) -> bytes:
        """Return the signature of a token's body."""
        private = self._private
        if isinstance(private, rsa.RSAPrivateKey):
            return private.sign(body, padding.PKCS1v15(), hashes.SHA256())
        _, _, size, digest = _CURVES[private.curve.name]
        r, s = decode_dss_signature(private.sign(body, ec.ECDSA(digest)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def verification_keys(pem: bytes) -> list[VerificationKey]:
    """Return the public keys in a PEM file: public keys, certificates, or private keys; raise ValueError without any."""
    found = [VerificationKey(public) for public in _public_keys(pem)]
    if not found:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys")
    return found


def base64url(data: bytes) -> str:
    """Encode bytes as tokens do: URL-safe, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _public_keys(pem: bytes) -> Iterator[PublicKey]:
    for block in _BLOCK.finditer(pem):
        text, label = block.group(), block.group(1)
        try:
            if label == b"CERTIFICATE":
                key = x509.load_pem_x509_certificate(text).public_key()
            elif label.endswith(b"PRIVATE KEY"):
                key = SigningKey.from_pem(text).verification.public
                if label == b"PRIVATE KEY" and isinstance(key, ec.EllipticCurvePublicKey):
                    # kube-apiserver takes the public half of a PKCS #8 file from RSA keys only.
                    continue
            elif label.endswith(b"PUBLIC KEY"):
                key = serialization.load_pem_public_key(text)
            else:
                continue
        except ValueError:
            # As kube-apiserver: what is no key is skipped, and only a file without any key is an error.
            continue
        if isinstance(key, PublicKey):
            yield key


def _integer(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))
