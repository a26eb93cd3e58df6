"""Exceptions of requests to an API server, and `Status`, the response to a failed request and to some deletions.

KubewrightError
├── ApiError                an error response; the subclass depends on Status.reason
│   ├── BadRequest  Unauthorized  Forbidden  NotFound  MethodNotAllowed  NotAcceptable
│   ├── AlreadyExists  Conflict  Expired  RequestTooLarge  UnsupportedMediaType  Invalid
│   └── TooManyRequests  InternalError  ServerTimeout  ServiceUnavailable  GatewayTimeout
├── ConnectionFailed        no response
│   ├── ConnectionLost      an established connection was lost, perhaps during a response
│   └── TimedOut            no response in time
├── UnexpectedResponse      the response is not from a Kubernetes API server
├── InvalidRequest          an invalid request that was not sent
└── ConfigError             an invalid kubeconfig or environment
    └── CredentialError     credentials that are not available
"""

import re
from collections.abc import Sequence

import msgspec

from kubewright.api.errors import KubewrightError
from kubewright.api.model import Model

_MISSING_RULE = (
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_MISSING_PATH = r'cannot (?P<verb>\S+) path "(?P<path>[^"]+)"'
_MANAGER = r'conflict with "(?P<manager>.*?)"(?: |$)'
_NAMESPACE_TERMINATING = "NamespaceTerminating"
_TERMINATED = r"namespace (?P<namespace>\S+) is being terminated"
_ANOTHER_UID = "UID in precondition"
"""The server's message for a wrong uid: this conflict has no cause of its own."""


class StatusCause(Model, builtin=True):
    """One cause of a failure, often one field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Model, builtin=True):
    """The object of a failure, and its causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class Status(Model, builtin=True):
    """The outcome of a request: `reason` is for programs, `message` for people."""

    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails = msgspec.field(default_factory=StatusDetails)
    code: int = 0


class ApiError(KubewrightError):
    """An error response of the API server; the message names the request, the object, the reason and a fix."""

    def __init__(
        self,
        status: Status,
        *,
        verb: str = "",
        object: str = "",  # noqa: A002 (the word of the whole API)
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, verb, object)
        self.status = status
        self.verb = verb
        self.object = object
        self.retry_after = retry_after
        self.after_lost_response: bool = False
        """Whether an earlier copy of the same request may have taken effect: its response was lost."""

    @property
    def remedy(self) -> str:
        """Return what the caller can do, or an empty string."""
        return ""

    def __str__(self) -> str:
        asked = f"{self.verb} {self.object}".strip()
        message = self.status.message or self.status.reason or f"HTTP {self.status.code}"
        lost = "the response to an earlier attempt was lost, which may have taken effect"
        parts = (
            f"{asked}: {message}" if asked else message,
            lost if self.after_lost_response else "",
            self.remedy,
        )
        return "; ".join(part for part in parts if part)


class BadRequest(ApiError):
    """The request is malformed (400)."""


class Unauthorized(ApiError):
    """The credentials are missing or were not accepted (401)."""

    hint = ""

    @property
    def remedy(self) -> str:
        """Return what is known about the credentials."""
        return self.hint or "check the token, certificate or plugin of the user in the kubeconfig"


class MissingRule(msgspec.Struct, frozen=True):
    """The RBAC rule that a forbidden request lacks."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f'{{nonResourceURLs: ["{self.path}"], verbs: ["{self.verb}"]}} in a ClusterRole'
        where = (
            f'a Role in namespace "{self.namespace}" or a ClusterRole' if self.namespace else "a ClusterRole"
        )
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"], verbs: ["{self.verb}"]}} in {where}'


class Forbidden(ApiError):
    """RBAC or an admission plugin does not allow the request (403)."""

    @property
    def rule(self) -> MissingRule | None:
        """Return the missing RBAC rule, or None if something other than RBAC denied the request."""
        message = self.status.message
        if found := re.search(_MISSING_RULE, message):
            return MissingRule(found["verb"], found["group"], found["resource"], found["namespace"] or "")
        if found := re.search(_MISSING_PATH, message):
            return MissingRule(found["verb"], path=found["path"])
        return None

    @property
    def remedy(self) -> str:
        """Return the rule to add."""
        rule = self.rule
        return f"missing rule: {rule}" if rule else ""

    @property
    def namespace_terminating(self) -> bool:
        """Return True if the namespace is being deleted, so that the server creates nothing in it."""
        return any(cause.reason == _NAMESPACE_TERMINATING for cause in self.status.details.causes)

    @property
    def terminating_namespace(self) -> str | None:
        """Return the name of the namespace that is being deleted, if that is the reason and the server names it."""
        for cause in self.status.details.causes:
            if cause.reason == _NAMESPACE_TERMINATING:
                found = re.fullmatch(_TERMINATED, cause.message)
                return found["namespace"] if found else None
        return None


class NotFound(ApiError):
    """The object, its namespace or its kind does not exist (404)."""

    @property
    def kind_missing(self) -> bool:
        """Return True if the server does not serve the kind at all."""
        return not self.status.details.name

    @property
    def remedy(self) -> str:
        """Return what to install."""
        if not self.kind_missing:
            return ""
        if self.verb == "discover":
            return "is its CRD installed?"
        resource, slash, subresource = self.object.partition(" ")[0].partition("/")
        if resource and slash:
            return f"the kind has no {subresource.partition('.')[0]} here, or its CRD is not installed"
        return "the server does not serve this kind: is its CRD installed? (`kubewright install` installs those of an operator)"


class MethodNotAllowed(ApiError):
    """The resource does not support the verb (405)."""


class NotAcceptable(ApiError):
    """The server cannot respond in the requested content type (406)."""


class AlreadyExists(ApiError):
    """An object with this name exists (409)."""


class FieldConflict(msgspec.Struct, frozen=True):
    """One field of an apply that another field manager owns."""

    field: str
    manager: str
    message: str


class Conflict(ApiError):
    """The object was changed meanwhile, has another uid, or other field managers own the fields (409)."""

    @property
    def replaced(self) -> bool:
        """Return True if another object (with another uid) has that name."""
        return _ANOTHER_UID in self.status.message

    @property
    def fields(self) -> Sequence[FieldConflict]:
        """Return the fields that other managers own; empty unless an apply conflicted."""
        found: list[FieldConflict] = []
        for cause in self.status.details.causes:
            if cause.reason == "FieldManagerConflict":
                manager = re.search(_MANAGER, cause.message)
                found.append(FieldConflict(cause.field, manager["manager"] if manager else "", cause.message))
        return found

    @property
    def remedy(self) -> str:
        """Return how to resolve the conflict."""
        return "leave these fields out, or apply with force" if self.fields else ""


class Expired(ApiError):
    """The resourceVersion or continue token is too old: list again (410)."""


class RequestTooLarge(ApiError):
    """The request is larger than the server accepts (413)."""

    @property
    def remedy(self) -> str:
        """Return the limit."""
        return "an API server takes requests of 3 MiB and stores objects of about 1.5 MB"


class UnsupportedMediaType(ApiError):
    """The server does not accept this content type, such as a strategic merge patch of a custom resource (415)."""


class Invalid(ApiError):
    """The object fails validation (422); `status.details.causes` has one entry for each field."""


class TooManyRequests(ApiError):
    """The server limits requests, or a PodDisruptionBudget allows no eviction now (429)."""


class InternalError(ApiError):
    """The server failed (500)."""


class ServerTimeout(ApiError):
    """The server could not finish in time; the request can be sent again."""


class ServiceUnavailable(ApiError):
    """The server, or an aggregated API server, is not ready (503)."""


class GatewayTimeout(ApiError):
    """The request timed out on the server (504); a write may or may not have been carried out."""


class ConnectionFailed(KubewrightError):
    """No response was received; `sent` is True if the request may have reached the server."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class ConnectionLost(ConnectionFailed):
    """The connection was lost before the whole response was received."""


class TimedOut(ConnectionFailed, TimeoutError):
    """No response was received in time; a write may or may not have been carried out."""


class UnexpectedResponse(KubewrightError):
    """The response is not from a Kubernetes API server: a login page, a proxy, another server."""


class InvalidRequest(KubewrightError, ValueError):
    """An invalid request, such as a name with a slash; nothing was sent."""


class ConfigError(KubewrightError):
    """A kubeconfig, certificate or environment variable is missing or invalid; the message contains the fix."""


class CredentialError(ConfigError):
    """Credentials are not available: a plugin failed, a token file is missing, a refresh was denied."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "NotAcceptable": NotAcceptable,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "RequestEntityTooLarge": RequestTooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "StoreReadError": InternalError,
    "ServerTimeout": ServerTimeout,
    "ServiceUnavailable": ServiceUnavailable,
    "Timeout": GatewayTimeout,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Expired,
    413: RequestTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: GatewayTimeout,
}


def error_from_status(
    status: Status,
    *,
    verb: str = "",
    object: str = "",  # noqa: A002 (the word of the whole API)
    retry_after: float | None = None,
) -> ApiError:
    """Return the exception for a Status: by its reason, or by its code if the reason is unknown."""
    chosen = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, ApiError)
    if retry_after is None and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    return chosen(status, verb=verb, object=object, retry_after=retry_after)
