"""Authentication and authorization of scrapes by the cluster, without a proxy beside the operator."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec

from kubewright.api import ApiError, ConnectionFailed, Kind
from kubewright.client import Client, requests
from kubewright.http.server import Request, Response, text

TOKEN_LIFE = 60.0
ALLOWED_LIFE = 300.0
DENIED_LIFE = 30.0
MAX_REMEMBERED = 1000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_log = logging.getLogger("kubewright.serving")

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


class _User(msgspec.Struct, frozen=True):
    name: str
    uid: str
    groups: tuple[str, ...]
    extra: Mapping[str, Any]


class Guard:
    """Authenticate clients with a TokenReview and authorize them with a SubjectAccessReview."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._users = _Memory[bytes, _User | None]()
        self._decisions = _Memory[tuple[bytes, str, str], bool]()

    async def refusal(self, request: Request) -> Response | None:
        """Return the response that rejects a request, or None if its client may read the path."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            return text(401, "Unauthorized\n")
        try:
            user = await self._authenticated(token.strip())
            if user is None:
                return text(401, "Unauthorized\n")
            if not await self._authorized(user, request.path, request.method.lower()):
                return text(403, f"Authorization denied for user {user.name}\n")
        except (ApiError, ConnectionFailed) as error:
            _log.warning("Cannot authorize a request for %s: %s", request.path, error)
            return text(500, "Authentication failed\n")
        return None

    async def _authenticated(self, token: str) -> _User | None:
        # Only a digest is stored: a memory dump must not reveal tokens.
        key = sha256(token.encode()).digest()
        return await self._users.recall(key, lambda: self._review_token(token))

    async def _authorized(self, user: _User, path: str, verb: str) -> bool:
        key = (msgspec.json.encode(user, order="deterministic"), path, verb)
        return await self._decisions.recall(key, lambda: self._review_access(user, path, verb))

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
        response = await self._client.raw(requests.create({"metadata": {}, "spec": spec}, kind))
        return msgspec.json.decode(response.body).get("status") or {}


class _Memory(Generic[K, V]):
    """Cache review results, each with its own lifetime."""

    def __init__(self) -> None:
        self._known: dict[K, tuple[float, V]] = {}

    async def recall(self, key: K, ask: Callable[[], Awaitable[tuple[float, V]]]) -> V:
        """Return the cached value, or call `ask` for the value and its lifetime in seconds."""
        now = asyncio.get_running_loop().time()
        found = self._known.get(key)
        if found is not None and now < found[0]:
            return found[1]
        life, response = await ask()
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = (now + life, response)
        return response
