"""ServiceAccount tokens: JSON Web Tokens, signed with the server's key."""

import base64
import binascii
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from kubewright.devserver.auth.token_keys import SigningKey, VerificationKey, base64url

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
"""The issuer of tokens that Secrets hold."""
_LEGACY = "kubernetes.io/serviceaccount"
MIN_SECONDS = 600
_MOST_VERIFIED = 1024
"""Tokens whose signature is not checked again: that takes longer than the rest of most requests."""


class InvalidToken(Exception):
    """The token was not issued by this server, or has expired."""


class TokenIssuer:
    """Sign and check ServiceAccount tokens.

    Tokens name the first of `issuers`, and those of all are accepted. `verification` are the public keys that verify
    tokens; by default that of the signing key. `now` returns the seconds since the epoch.
    """

    def __init__(
        self,
        key: SigningKey,
        now: Callable[[], float],
        *,
        verification: Sequence[VerificationKey] = (),
        issuers: Sequence[str] = (ISSUER,),
        audiences: Sequence[str] = (),
    ) -> None:
        self._key = key
        self._now = now
        self._verification = {item.key_id: item for item in verification or (key.verification,)}
        self._issuers = tuple(issuers)
        self.audiences: tuple[str, ...] = tuple(audiences or issuers)
        """The audiences of the server itself: those of a token that is requested for none."""
        self._verified: dict[str, dict[str, Any]] = {}

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
        """Sign a token for a ServiceAccount; return it and when it expires."""
        now = int(self._now())
        private: dict[str, Any] = {
            "namespace": namespace,
            **(bound or {}),
            "serviceaccount": {"name": name, "uid": uid},
        }
        claims = {
            "aud": list(audiences) or list(self.audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        return self._signed(claims), now + seconds

    def issue_for_secret(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """Sign a token that does not expire for a ServiceAccount; it is valid while the Secret holds it."""
        return self._signed(
            {
                "iss": LEGACY_ISSUER,
                f"{_LEGACY}/namespace": namespace,
                f"{_LEGACY}/secret.name": secret,
                f"{_LEGACY}/service-account.name": account,
                f"{_LEGACY}/service-account.uid": uid,
                "sub": f"system:serviceaccount:{namespace}:{account}",
            }
        )

    def _signed(self, claims: Mapping[str, Any]) -> str:
        head = {"alg": self._key.verification.algorithm, "kid": self._key.verification.key_id}
        body = f"{base64url(_json(head))}.{base64url(_json(claims))}"
        return f"{body}.{base64url(self._key.sign(body.encode()))}"

    def claims(self, token: str) -> dict[str, Any]:
        """Check a token's signature, issuer and times; return what it claims."""
        claims = self._verified.get(token)
        if claims is None:
            claims = self._verify(token)
            if len(self._verified) >= _MOST_VERIFIED:
                self._verified.clear()
            self._verified[token] = claims
        if "exp" in claims and claims["exp"] <= self._now():
            raise InvalidToken("[invalid bearer token, service account token has expired]")
        return claims

    def _verify(self, token: str) -> dict[str, Any]:
        body, _, signature = token.rpartition(".")
        if body.count(".") != 1:
            raise InvalidToken("invalid bearer token")
        head, _, payload = body.partition(".")
        key = self._verification.get(str(_read(head).get("kid")))
        if key is None or not key.verifies(_decode(signature), body.encode()):
            raise InvalidToken("invalid bearer token")
        claims = _read(payload)
        if claims.get("iss") not in (*self._issuers, LEGACY_ISSUER):
            raise InvalidToken("invalid bearer token")
        return claims

    def key_set(self) -> dict[str, Any]:
        """Return the public keys as a JSON Web Key Set."""
        return {"keys": [key.json_web_key() for key in self._verification.values()]}

    def document(self, url: str) -> dict[str, Any]:
        """Return the OpenID configuration of a server at a URL."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted(
                {key.algorithm for key in self._verification.values()}
            ),
        }

    @property
    def issuer(self) -> str:
        """Return the issuer that new tokens name."""
        return self._issuers[0]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _read(text: str) -> dict[str, Any]:
    """Decode a part of a token; raise InvalidToken if it is not a JSON object."""
    try:
        found = json.loads(_decode(text))
    except ValueError:
        raise InvalidToken("invalid bearer token") from None
    if not isinstance(found, dict):
        raise InvalidToken("invalid bearer token")
    return cast("dict[str, Any]", found)


def _decode(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise InvalidToken("invalid bearer token") from None
