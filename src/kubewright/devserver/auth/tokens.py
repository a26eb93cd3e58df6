"""ServiceAccount tokens: JSON Web Tokens signed with the server's elliptic-curve key (ES256)."""

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

ISSUER = "https://kubernetes.default.svc.cluster.local"
MIN_SECONDS = 600
_ES256 = ec.ECDSA(hashes.SHA256())
_HALF = 32
_MOST_VERIFIED = 1024
"""Tokens whose signature is not checked again: that takes longer than the rest of most requests."""


class InvalidToken(Exception):
    """The token is not one of ours, or no longer good."""


class TokenIssuer:
    """Sign and check ServiceAccount tokens."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, now: Callable[[], float]) -> None:
        self._key = key
        self._now = now
        self._public = key.public_key()
        der = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._key_id = _encode(hashlib.sha256(der).digest())
        self._verified: dict[str, dict[str, Any]] = {}

    @classmethod
    def from_pem(cls, pem: bytes, now: Callable[[], float]) -> "TokenIssuer":
        """Return an issuer with a stored key; `now` returns the seconds since the epoch."""
        key = serialization.load_pem_private_key(pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the token key is not an elliptic curve key")
        return cls(key, now)

    def issue(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        audiences: Sequence[str],
        seconds: int,
        bound: Mapping[str, Any] | None = None,
    ) -> tuple[str, int]:
        """Sign a token for a ServiceAccount; return it and the time it ends."""
        now = int(self._now())
        private: dict[str, Any] = {
            "namespace": namespace,
            **(bound or {}),
            "serviceaccount": {"name": name, "uid": uid},
        }
        claims = {
            "aud": list(audiences) or [ISSUER],
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        head = {"alg": "ES256", "kid": self._key_id}
        body = f"{_encode(_json(head))}.{_encode(_json(claims))}"
        r, s = decode_dss_signature(self._key.sign(body.encode(), _ES256))
        signature = r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")
        return f"{body}.{_encode(signature)}", now + seconds

    def claims(self, token: str) -> dict[str, Any]:
        """Check a token's signature, issuer and times; return what it claims."""
        claims = self._verified.get(token)
        if claims is None:
            claims = self._verify(token)
            if len(self._verified) >= _MOST_VERIFIED:
                self._verified.clear()
            self._verified[token] = claims
        if claims["exp"] <= self._now():
            raise InvalidToken("[invalid bearer token, service account token has expired]")
        return claims

    def _verify(self, token: str) -> dict[str, Any]:
        body, _, signature = token.rpartition(".")
        raw = _decode(signature)
        if body.count(".") != 1 or len(raw) != 2 * _HALF:
            raise InvalidToken("invalid bearer token")
        der = encode_dss_signature(int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big"))
        try:
            self._public.verify(der, body.encode(), _ES256)
        except InvalidSignature:
            raise InvalidToken("invalid bearer token") from None
        claims: dict[str, Any] = json.loads(_decode(body.partition(".")[2]))
        if claims.get("iss") != ISSUER:
            raise InvalidToken("invalid bearer token")
        return claims

    def key_set(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key Set."""
        numbers = self._public.public_numbers()
        key = {
            "use": "sig",
            "kty": "EC",
            "kid": self._key_id,
            "crv": "P-256",
            "alg": "ES256",
            "x": _encode(numbers.x.to_bytes(_HALF, "big")),
            "y": _encode(numbers.y.to_bytes(_HALF, "big")),
        }
        return {"keys": [key]}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise InvalidToken("invalid bearer token") from None
