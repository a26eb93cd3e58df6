"""API errors: every failure is a `Status` object with a reason and a code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from kubewright.api import FieldError, KubewrightError, invalid_message, problems

OPTIMISTIC_LOCK = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

_KNOWN_REASONS = frozenset(
    (
        *("Unauthorized", "Forbidden", "NotFound", "AlreadyExists", "Conflict", "Gone", "Invalid", "Timeout"),
        *(
            "ServerTimeout",
            "StorageReadError",
            "TooManyRequests",
            "BadRequest",
            "MethodNotAllowed",
            "Expired",
        ),
        *("NotAcceptable", "RequestEntityTooLarge", "UnsupportedMediaType", "InternalError"),
        "ServiceUnavailable",
    )
)

quote: Callable[[str], str] = problems.quoted


def group_resource(group: str, resource: str) -> str:
    """Write a resource the way messages name it: `deployments.apps`, `configmaps`."""
    return f"{resource}.{group}" if group else resource


def success(details: Mapping[str, Any], code: int | None = None) -> dict[str, Any]:
    """Return the Status of a success."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    kept = {name: value for name, value in details.items() if value}
    if kept:
        body["details"] = kept
    if code is not None:
        body["code"] = code
    return body


class StatusError(KubewrightError):
    """Refuse a request with a Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        status: str = "Failure",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.reason = reason
        self.message = message
        self.details: dict[str, Any] | None = (
            None if details is None else {key: value for key, value in details.items() if value}
        )
        self.metadata: dict[str, Any] = dict(metadata or {})

    @property
    def retry_after(self) -> int:
        """Return the seconds of the Retry-After header; 0 for none."""
        return int((self.details or {}).get("retryAfterSeconds", 0))

    @property
    def is_not_found(self) -> bool:
        """Return True if clients take the error for NotFound: by its reason, or by its code if the reason is unknown."""
        return self.reason == "NotFound" or (self.code == 404 and self.reason not in _KNOWN_REASONS)

    def wire(self) -> dict[str, Any]:
        """Build the Status document."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": self.status,
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body

    @classmethod
    def bad_request(cls, message: str) -> Self:
        """Return the error for an invalid request."""
        return cls(400, "BadRequest", message)

    @classmethod
    def unauthorized(cls, message: str = "Unauthorized") -> Self:
        """Return the error for a request without valid credentials."""
        return cls(401, "Unauthorized", message)

    @classmethod
    def forbidden(
        cls,
        group: str,
        resource: str,
        name: str,
        why: str,
        *,
        causes: Sequence[Mapping[str, str]] = (),
    ) -> Self:
        """Return the error for a request that is not allowed."""
        if not resource:
            message = f"forbidden: {why}"
        elif not name:
            message = f"{group_resource(group, resource)} is forbidden: {why}"
        else:
            message = f"{group_resource(group, resource)} {quote(name)} is forbidden: {why}"
        details = {
            "name": name,
            "group": group,
            "kind": resource,
            "causes": [dict(cause) for cause in causes],
        }
        return cls(403, "Forbidden", message, details)

    @classmethod
    def not_found(cls, group: str, resource: str, name: str) -> Self:
        """Return the error for an object that does not exist."""
        message = f"{group_resource(group, resource)} {quote(name)} not found"
        return cls(404, "NotFound", message, {"name": name, "group": group, "kind": resource})

    @classmethod
    def no_such_path(cls) -> Self:
        """Return the error for an unknown resource of a served group version."""
        return cls(404, "NotFound", "the server could not find the requested resource", {})

    @classmethod
    def method_not_allowed(cls) -> Self:
        """Return the error for a method that the path does not support."""
        return cls(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
        )

    @classmethod
    def not_acceptable(cls, accepted: Iterable[str]) -> Self:
        """Return the error for an Accept header without a supported media type."""
        message = f"only the following media types are accepted: {', '.join(accepted)}"
        return cls(406, "NotAcceptable", message)

    @classmethod
    def already_exists(cls, group: str, resource: str, name: str, *, deleting: bool = False) -> Self:
        """Return the error for a name that is in use."""
        message = f"{group_resource(group, resource)} {quote(name)} already exists"
        if deleting:
            message = f"object is being deleted: {message}"
        return cls(409, "AlreadyExists", message, {"name": name, "group": group, "kind": resource})

    @classmethod
    def no_unique_name(cls, group: str, resource: str, name: str, *, deleting: bool = False) -> Self:
        """Return the error for generateName without a free name."""
        message = (
            f"{group_resource(group, resource)} {quote(name)} already exists, "
            "the server was not able to generate a unique name for the object"
        )
        if deleting:
            message = f"object is being deleted: {message}"
        details = {"name": name, "group": group, "kind": resource, "retryAfterSeconds": 1}
        return cls(409, "AlreadyExists", message, details)

    @classmethod
    def conflict(cls, group: str, resource: str, name: str, why: str = OPTIMISTIC_LOCK) -> Self:
        """Return the error for a write of an outdated object."""
        message = f"Operation cannot be fulfilled on {group_resource(group, resource)} {quote(name)}: {why}"
        return cls(409, "Conflict", message, {"name": name, "group": group, "kind": resource})

    @classmethod
    def apply_conflict(cls, message: str, causes: Sequence[Mapping[str, str]]) -> Self:
        """Return the error for an apply that conflicts with other field managers."""
        return cls(409, "Conflict", message, {"causes": [dict(cause) for cause in causes]})

    @classmethod
    def expired(cls, message: str, *, metadata: Mapping[str, Any] | None = None) -> Self:
        """Return the error for a compacted revision."""
        return cls(410, "Expired", message, metadata=metadata)

    @classmethod
    def too_large(cls, message: str) -> Self:
        """Return the error for a request body that is too large."""
        return cls(413, "RequestEntityTooLarge", f"Request entity too large: {message}")

    @classmethod
    def unsupported_media_type(cls, accepted: Iterable[str]) -> Self:
        """Return the error for a request body of an unsupported media type."""
        types = ", ".join(accepted)
        message = f"the body of the request was in an unknown format - accepted media types include: {types}"
        return cls(415, "UnsupportedMediaType", message)

    @classmethod
    def invalid(cls, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Self:
        """Return the error that lists invalid fields."""
        message = invalid_message(group_resource(group, kind), name, list(errors))
        causes = [error.cause() for error in errors]
        return cls(422, "Invalid", message, {"name": name, "group": group, "kind": kind, "causes": causes})

    @classmethod
    def rejected_patch(cls) -> Self:
        """Return the error for a JSON patch that does not apply."""
        message = "the server rejected our request due to an error in our request"
        return cls(422, "Invalid", message, {})

    @classmethod
    def too_many_requests(cls, message: str, retry_after: int = 1) -> Self:
        """Return the error after which the client retries later."""
        return cls(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after})

    @classmethod
    def unknown(cls, message: str) -> Self:
        """Return an error without a reason, as kube-apiserver responds to untyped errors."""
        return cls(500, "", message)

    @classmethod
    def internal(cls, message: str) -> Self:
        """Return the error for a failure of the server."""
        details = {"causes": [{"message": message}]}
        return cls(500, "InternalError", f"Internal error occurred: {message}", details)

    @classmethod
    def unavailable(cls, message: str) -> Self:
        """Return the error for a service that is unavailable."""
        return cls(503, "ServiceUnavailable", message)

    @classmethod
    def too_large_revision(cls, requested: int, current: int) -> Self:
        """Return the error for a revision that the store has not reached."""
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        message = f"Timeout: Too large resource version: {requested}, current: {current}"
        return cls(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})
