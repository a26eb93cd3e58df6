"""Questions to the authorizer, for admission policies: `authorizer.group('apps').resource('deployments').check('get')`."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import BOOL, STRING, struct
from kubewright.schema.cel.values import OpaqueValue

AUTHORIZER = struct("kubernetes.authorization.Authorizer")
PATH_CHECK = struct("kubernetes.authorization.PathCheck")
GROUP_CHECK = struct("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK = struct("kubernetes.authorization.ResourceCheck")
DECISION = struct("kubernetes.authorization.Decision")


@dataclass(frozen=True)
class Decision(OpaqueValue):
    """The answer of an authorizer."""

    type_name: ClassVar[str] = DECISION.name
    allowed: bool
    reason: str = ""
    error: str = ""


@dataclass(frozen=True)
class Question:
    """What an authorizer is asked, as far as the expression said it."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None


Authorize = Callable[[Question], Decision]
"""Answers a question about the user of the request, or about the service account it names."""


@dataclass(frozen=True)
class Authorizer(OpaqueValue):
    """The variable `authorizer`."""

    type_name: ClassVar[str] = AUTHORIZER.name
    authorize: Authorize
    question: Question = field(default_factory=Question)


class PathCheck(Authorizer):
    """A question about a URL path."""

    type_name: ClassVar[str] = PATH_CHECK.name


class GroupCheck(Authorizer):
    """A question about an API group, still without a resource."""

    type_name: ClassVar[str] = GROUP_CHECK.name


class ResourceCheck(Authorizer):
    """A question about a resource; the variable `authorizer.requestResource` is one."""

    type_name: ClassVar[str] = RESOURCE_CHECK.name


def authorization_library() -> Library:
    """Return the functions on authorizers; give it to an Environment that has the variable."""
    library = Library()
    method = library.method
    method("path", "authorizer_path", (AUTHORIZER, STRING), PATH_CHECK, _narrowed(PathCheck, "path"))
    method("group", "authorizer_group", (AUTHORIZER, STRING), GROUP_CHECK, _narrowed(GroupCheck, "group"))
    method(
        "serviceAccount", "authorizer_serviceaccount", (AUTHORIZER, STRING, STRING), AUTHORIZER,
        lambda value, namespace, name: _with(Authorizer, value, service_account=(namespace, name)),
    )  # fmt: skip
    method(
        "resource",
        "groupcheck_resource",
        (GROUP_CHECK, STRING),
        RESOURCE_CHECK,
        _narrowed(ResourceCheck, "resource"),
    )
    for function, attribute in (
        ("subresource", "subresource"),
        ("namespace", "namespace"),
        ("name", "name"),
        ("fieldSelector", "field_selector"),
        ("labelSelector", "label_selector"),
    ):
        name = f"resourcecheck_{function.lower()}"
        method(function, name, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _narrowed(ResourceCheck, attribute))
    method("check", "pathcheck_check", (PATH_CHECK, STRING), DECISION, _check)
    method("check", "resourcecheck_check", (RESOURCE_CHECK, STRING), DECISION, _check)
    method("allowed", "decision_allowed", (DECISION,), BOOL, lambda decision: decision.allowed)
    method("reason", "decision_reason", (DECISION,), STRING, lambda decision: decision.reason)
    method("errored", "decision_errored", (DECISION,), BOOL, lambda decision: bool(decision.error))
    method("error", "decision_error", (DECISION,), STRING, lambda decision: decision.error)
    return library


def _with(kind: type[Authorizer], value: Authorizer, **change: Any) -> Authorizer:
    return kind(value.authorize, replace(value.question, **change))


def _narrowed(kind: type[Authorizer], attribute: str) -> Callable[[Authorizer, str], Authorizer]:
    return lambda value, text: _with(kind, value, **{attribute: text})


def _check(value: Authorizer, verb: str) -> Decision:
    return value.authorize(replace(value.question, verb=verb))
