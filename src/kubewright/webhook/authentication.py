"""Tokens that an API server does not know: who is it? TokenReview in, TokenReview out."""

import inspect
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from kubewright.api import DeclarationError, JsonObject
from kubewright.guards import must_propagate
from kubewright.webhook.envelope import BadReview, read_review
from kubewright.webhook.request import User

AUTHENTICATE_PATH = "/authenticate"
API_VERSIONS = ("authentication.k8s.io/v1", "authentication.k8s.io/v1beta1")
KIND = "TokenReview"

TokenFunction = Callable[[str], User | None] | Callable[[str, Sequence[str]], User | None]


class _Spec(msgspec.Struct, frozen=True, gc=False):
    token: str = ""
    audiences: tuple[str, ...] = ()


class _Review(msgspec.Struct, gc=False):
    spec: _Spec = _Spec()


_reviews = msgspec.json.Decoder(_Review)
_encoder = msgspec.json.Encoder()


class Authentication:
    """Tell an API server whose a token is: made by `authenticates`.

    API servers are told of it by their flag `--authentication-token-webhook-config-file`, not by an object in
    the cluster, so it is served and registered nowhere.
    """

    def __init__(self, function: TokenFunction, *, path: str = AUTHENTICATE_PATH) -> None:
        self.function = function
        self.path = path
        if inspect.iscoroutinefunction(function):
            raise DeclarationError(f"{self!r}: must be a plain `def`: it is asked within a request")
        if not path.startswith("/"):
            raise DeclarationError(f"{self!r}: path={path!r} must begin with a slash")
        self._arguments = len(inspect.signature(function).parameters)
        if self._arguments not in (1, 2):
            raise DeclarationError(f"{self!r}: must take the token, and may take the audiences after it")

    def __repr__(self) -> str:
        return f"authenticates({getattr(self.function, '__name__', self.function)})"

    def user(self, token: str, audiences: Sequence[str]) -> User | None:
        """Run the author's function with as much as it takes."""
        function = cast("Callable[..., User | None]", self.function)
        return function(*(token, audiences)[: self._arguments])


def authenticates(function: TokenFunction) -> Authentication:
    """Let the decorated function say whose a token is; None is nobody's.

    It is given the token, and the audiences that the token has to be meant for, if there are any.
    """
    return Authentication(function)


class TokenFailed(Exception):
    """The author's function raised; `answer` tells the API server so, the cause is what it raised."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("a token could not be judged")
        self.answer = answer


def review_token(authentication: Authentication, body: bytes) -> bytes:
    """Answer one TokenReview; raise BadReview for what is none, TokenFailed for what the author raised."""
    review, version = read_review(_reviews, body, KIND, *API_VERSIONS)
    token, audiences = review.spec.token, review.spec.audiences
    if not token:
        raise BadReview("spec.token is missing")
    try:
        user = authentication.user(token, audiences)
    except BaseException as error:
        if must_propagate(error):
            raise
        raise TokenFailed(token_failure("the token could not be judged", version)) from error
    if user is None:
        return _review({"authenticated": False}, version)
    status: JsonObject = {"authenticated": True, "user": user}
    if audiences:
        status["audiences"] = audiences
    return _review(status, version)


def token_failure(message: str, version: str = API_VERSIONS[0]) -> bytes:
    """Return the review that authenticates nobody and says why."""
    return _review({"authenticated": False, "error": message}, version)


def _review(status: JsonObject, version: str) -> bytes:
    return _encoder.encode({"apiVersion": version, "kind": KIND, "status": status})
