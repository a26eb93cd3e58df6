"""Who may read: asked of the cluster, so that no proxy is needed beside the operator."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from kubewright.api import ApiError, ConnectionFailed, Kind
from kubewright.client import Client, requests
from kubewright.http.server import Request, Response, text

TOKEN_LIFE = 60.0
ALLOWED_LIFE = 300.0
DENIED_LIFE = 30.0
MAX_REMEMBERED = 1000

TOKEN_REVIEW = Kind(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenReview",
    plural="tokenreviews",
    namespaced=False,
    builtin=True,
)
ACCESS_REVIEW = Kind(
    group="authorization.k8s.io",
    version="v1",
    kind="SubjectAccessReview",
    plural="subjectaccessreviews",
    namespaced=False,
    builtin=True,
)


@dataclass(frozen=True, slots=True)
class _User:
    name: str
    uid: str
    groups: tuple[str, ...]
    extra: Mapping[str, Any]


class Guard:
    """Let the cluster say who asks and whether they may: TokenReview, then SubjectAccessReview."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._users: dict[bytes, tuple[float, _User | None]] = {}
        self._decisions: dict[tuple[bytes, str, str], tuple[float, bool]] = {}

    async def refusal(self, request: Request) -> Response | None:
        """Return the answer to somebody who may not read the path; None to those who may."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            return text(401, "Unauthorized\n")
        try:
            user = await self._authenticated(token.strip())
            if user is None:
                return text(401, "Unauthorized\n")
            if not await self._authorized(user, request.path, request.method.lower()):
                return text(403, f"Authorization denied for user {user.name}\n")
        except (ApiError, ConnectionFailed):
            return text(500, "Authentication failed\n")
        return None

    async def _authenticated(self, token: str) -> _User | None:
        # Only a digest is kept: a memory dump must not give tokens away.
        key = sha256(token.encode()).digest()
        return await _remembered(self._users, key, lambda: self._review_token(token))

    async def _authorized(self, user: _User, path: str, verb: str) -> bool:
        key = (msgspec.json.encode(user, order="deterministic"), path, verb)
        return await _remembered(self._decisions, key, lambda: self._review_access(user, path, verb))

    async def _review_token(self, token: str) -> tuple[float, _User | None]:
        status = await self._review(TOKEN_REVIEW, {"token": token})
        if not status.get("authenticated"):
            return DENIED_LIFE, None
        found: dict[str, Any] = status.get("user") or {}
        groups: tuple[str, ...] = tuple(found.get("groups") or ())
        return TOKEN_LIFE, _User(
            found.get("username", ""), found.get("uid", ""), groups, found.get("extra") or {}
        )

    async def _review_access(self, user: _User, path: str, verb: str) -> tuple[float, bool]:
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": dict(user.extra),
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        allowed = bool((await self._review(ACCESS_REVIEW, spec)).get("allowed"))
        return (ALLOWED_LIFE if allowed else DENIED_LIFE), allowed

    async def _review(self, kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.raw(requests.create({"metadata": {}, "spec": spec}, kind))
        return msgspec.json.decode(answer.body).get("status") or {}


async def _remembered(
    known: dict[Any, Any], key: Any, ask: Callable[[], Awaitable[tuple[float, Any]]]
) -> Any:
    """Return what is known under the key while it is fresh, else ask."""
    now = asyncio.get_running_loop().time()
    found = known.get(key)
    if found is not None and now < found[0]:
        return found[1]
    life, answer = await ask()
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    known[key] = (now + life, answer)
    return answer
