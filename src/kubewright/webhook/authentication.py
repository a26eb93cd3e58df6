"""Token authentication for an API server: respond to TokenReviews."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec

from kubewright.api import DeclarationError, JsonObject
from kubewright.webhook.declaration import is_async
from kubewright.webhook.envelope import BadReview, read_review
from kubewright.webhook.request import User

AUTHENTICATE_PATH = "/authenticate"
API_VERSIONS = ("authentication.k8s.io/v1", "authentication.k8s.io/v1beta1")
KIND = "TokenReview"

Found = User | None
TokenFunction = (
    Callable[[str], Found | Awaitable[Found]] | Callable[[str, Sequence[str]], Found | Awaitable[Found]]
)


class _Spec(msgspec.Struct, frozen=True, gc=False):
    token: str = ""
    audiences: tuple[str, ...] = ()


class _Review(msgspec.Struct, gc=False):
    spec: _Spec = _Spec()


_reviews = msgspec.json.Decoder(_Review)
_encoder = msgspec.json.Encoder()


class Authentication:
    """Authenticate the bearer of a token for an API server: made by `authenticates`.

    API servers are configured with the flag `--authentication-token-webhook-config-file`, not with an object in the
    cluster, so kubewright neither serves nor registers it. A `def` is run in a thread, an `async def` on the event loop.
    """

    def __init__(self, function: TokenFunction, *, path: str = AUTHENTICATE_PATH) -> None:
        self.function = function
        self.path = path
        self.is_async: bool = is_async(function)
        if not path.startswith("/"):
            raise DeclarationError(f"{self!r}: path={path!r} must begin with a slash")
        self._arguments = len(inspect.signature(function).parameters)
        if self._arguments not in (1, 2):
            raise DeclarationError(f"{self!r}: must take the token, and may take the audiences after it")

    def __repr__(self) -> str:
        return f"authenticates({getattr(self.function, '__name__', self.function)})"

    def call(self, token: str, audiences: Sequence[str]) -> Any:
        """Call the author's function with as many of the arguments as it takes."""
        return cast("Callable[..., Any]", self.function)(*(token, audiences)[: self._arguments])


def authenticates(function: TokenFunction) -> Authentication:
    """Declare a function that returns the user of a token, or None.

    It is called with the token, and with the audiences for which the token must be valid, if there are any.
    """
    return Authentication(function)


class TokenFailed(Exception):
    """The author's function raised an exception, which is the cause; `response` is the response to the API server."""

    def __init__(self, response: bytes) -> None:
        super().__init__("a token could not be reviewed")
        self.response = response


class TokenCall(msgspec.Struct, frozen=True):
    """One decoded TokenReview, before the author's function is called."""

    authentication: Authentication
    token: str
    audiences: tuple[str, ...]
    _version: str

    def run(self) -> bytes:
        """Respond with a function that is not async; raise TokenFailed if it raises an exception."""
        try:
            return self._response(self.authentication.call(self.token, self.audiences))
        except Exception as error:
            raise self._failed() from error

    async def run_async(self) -> bytes:
        """Respond with an async function; raise TokenFailed if it raises an exception."""
        try:
            return self._response(await self.authentication.call(self.token, self.audiences))
        except Exception as error:
            raise self._failed() from error

    def _response(self, user: Found) -> bytes:
        if user is None:
            return _review({"authenticated": False}, self._version)
        if not isinstance(cast(object, user), User):
            raise TypeError(f"returned {type(user).__name__}: return a User or None")
        status: JsonObject = {"authenticated": True, "user": user}
        if self.audiences:
            status["audiences"] = self.audiences
        return _review(status, self._version)

    def _failed(self) -> TokenFailed:
        return TokenFailed(token_failure("the token could not be reviewed", self._version))


def read_token(authentication: Authentication, body: bytes) -> TokenCall:
    """Read one TokenReview; raise BadReview for a body that is not a review."""
    review, version = read_review(_reviews, body, KIND, *API_VERSIONS)
    if not review.spec.token:
        raise BadReview("spec.token is missing")
    return TokenCall(authentication, review.spec.token, review.spec.audiences, version)


def token_failure(message: str, version: str = API_VERSIONS[0]) -> bytes:
    """Return the review that authenticates no user, with the reason."""
    return _review({"authenticated": False, "error": message}, version)


def _review(status: JsonObject, version: str) -> bytes:
    return _encoder.encode({"apiVersion": version, "kind": KIND, "status": status})
