"""Expressions about writes: what match conditions and admission policies may say, and how it is evaluated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kubewright.api import GroupVersionKind, KubewrightError
from kubewright.devserver.identity import Attributes, Authorizer, User
from kubewright.devserver.objects import JsonObject, meta, section
from kubewright.devserver.operation import GroupVersionResource, Operation
from kubewright.schema import cel

CONDITIONS_BUDGET = 2_500_000
POLICY_BUDGET = 10_000_000
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

_TEXT: JsonObject = {"type": "string"}
_KIND: JsonObject = {"type": "object", "properties": dict.fromkeys(("group", "version", "kind"), _TEXT)}
_RESOURCE: JsonObject = {
    "type": "object",
    "properties": dict.fromkeys(("group", "version", "resource"), _TEXT),
}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}
_TIME: JsonObject = {"type": "string", "format": "date-time"}
_TEXT_MAP: JsonObject = {"type": "object", "additionalProperties": _TEXT}
_ANYTHING: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
_REQUEST: JsonObject = {
    "type": "object",
    "properties": {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": _TEXT,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": _TEXT,
        "name": _TEXT,
        "namespace": _TEXT,
        "operation": _TEXT,
        "userInfo": {
            "type": "object",
            "properties": {
                "username": _TEXT,
                "uid": _TEXT,
                "groups": _TEXTS,
                "extra": {"type": "object", "additionalProperties": _TEXTS},
            },
        },
        "dryRun": {"type": "boolean"},
        "options": _ANYTHING,
    },
}
_NAMESPACE: JsonObject = {
    "type": "object",
    "properties": {
        "metadata": {
            "type": "object",
            "properties": {
                **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), _TEXT),
                **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
                **dict.fromkeys(("labels", "annotations"), _TEXT_MAP),
                **{name: {"type": "integer"} for name in ("deletionGracePeriodSeconds", "generation")},
                "finalizers": _TEXTS,
            },
        },
        "spec": {"type": "object", "properties": {"finalizers": _TEXTS}},
        "status": {
            "type": "object",
            "properties": {
                "phase": _TEXT,
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "lastTransitionTime": _TIME,
                            **dict.fromkeys(("status", "type", "message", "reason"), _TEXT),
                        },
                    },
                },
            },
        },
    },
}


class ExpressionError(KubewrightError):
    """An expression that cannot be used."""


@lru_cache(maxsize=1)
def _standard() -> dict[str, cel.Type | cel.Declared]:
    request = cel.declare(_REQUEST, name="kubernetes.AdmissionRequest")
    namespace = cel.declare(_NAMESPACE, name="kubernetes.Namespace")
    assert request is not None
    assert namespace is not None
    return {
        "object": cel.DYN,
        "oldObject": cel.DYN,
        "request": request,
        "namespaceObject": namespace,
        "authorizer": cel.AUTHORIZER,
        "authorizer.requestResource": cel.RESOURCE_CHECK,
    }


def environment(
    *,
    params: bool = False,
    variables: Mapping[str, cel.Type] | None = None,
    mutating: bool = False,
) -> cel.Environment:
    """Give the environment of expressions about writes; `variables` are those that a policy names itself.

    Expressions that are `mutating` may make objects and patches.
    """
    known = dict(_standard())
    if params:
        known["params"] = cel.DYN
    if variables is not None:
        declared = cel.Declared(cel.struct("kubernetes.variables"), 0, 2)
        for name, kind in variables.items():
            declared.fields[name] = cel.Declared(kind, 0, 0)
            declared.names[name] = name
        known["variables"] = declared
    library = cel.authorization_library()
    if not mutating:
        return cel.Environment(known, functions=library)
    return cel.Environment(
        known,
        functions=cel.Library(library, cel.mutation_library()),
        messages=[cel.OBJECT, cel.JSON_PATCH],
    )


@lru_cache(maxsize=1)
def _conditions() -> cel.Environment:
    return environment()


@lru_cache(maxsize=1024)
def compile_condition(text: str) -> cel.Program:
    """Compile a match condition; raises ExpressionError with the real server's words."""
    return compile_in(_conditions(), text, cel.BOOL)


def compile_in(place: cel.Environment, text: str, *wanted: cel.Type) -> cel.Program:
    """Compile an expression whose type has to be one of those wanted, or any."""
    try:
        program = place.compile(text)
    except cel.CompileError as error:
        raise ExpressionError(f"compilation failed: {error}") from None
    except cel.EvaluationError as error:
        raise ExpressionError(f"program instantiation failed: {error}") from None
    if wanted and not any(program.type.same(kind) for kind in wanted):
        if len(wanted) == 1:
            raise ExpressionError(f"must evaluate to {wanted[0]} but got {program.type}")
        listed = " ".join("null_type" if kind.kind == "null" else str(kind) for kind in wanted)
        raise ExpressionError(f"must evaluate to one of [{listed}] but got {program.type}")
    return program


@dataclass(slots=True)
class Situation:
    """A write as expressions see it, in the version that was matched."""

    operation: Operation
    resource: GroupVersionResource
    kind: GroupVersionKind
    object: JsonObject | None
    old_object: JsonObject | None
    authorizer: Authorizer
    namespace: JsonObject | None = None
    params: JsonObject | None = None
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def values(self) -> dict[str, Any]:
        """Give the variables."""
        ask = _asking(self.authorizer, self.operation.user)
        group, _, plural = self.operation.resource
        question = cel.Question(
            group=group,
            resource=plural,
            subresource=self.operation.subresource,
            namespace=self.operation.namespace,
            name=self.operation.name,
        )
        return {
            "object": self.object,
            "oldObject": self.old_object,
            "request": admission_request(self.operation, self.resource, self.kind),
            "namespaceObject": _namespace_object(self.namespace),
            "params": self.params,
            "variables": self.variables,
            "authorizer": cel.Authorizer(ask),
            "authorizer.requestResource": cel.ResourceCheck(ask, question),
        }


def _namespace_object(namespace: JsonObject | None) -> JsonObject | None:
    if namespace is None:
        return None
    metadata = {
        name: value
        for name, value in meta(namespace).items()
        if name not in ("managedFields", "ownerReferences", "selfLink")
    }
    return {
        "metadata": metadata,
        "spec": section(namespace, "spec"),
        "status": section(namespace, "status"),
    }


def admission_request(
    operation: Operation, resource: GroupVersionResource, kind: GroupVersionKind
) -> JsonObject:
    """Describe a write without its objects, as webhooks and expressions are told of it."""
    request: JsonObject = {"kind": kind._asdict(), "resource": resource._asdict()}
    if operation.subresource:
        request["subResource"] = operation.subresource
    request["requestKind"] = operation.kind._asdict()
    request["requestResource"] = operation.resource._asdict()
    if operation.subresource:
        request["requestSubResource"] = operation.subresource
    if operation.name:
        request["name"] = operation.name
    if operation.namespace:
        request["namespace"] = operation.namespace
    request["operation"] = operation.operation
    request["userInfo"] = operation.user.to_wire()
    request["dryRun"] = operation.dry_run
    request["options"] = operation.options
    return request


def _asking(authorizer: Authorizer, user: User) -> Callable[[cel.Question], cel.Decision]:
    def ask(question: cel.Question) -> cel.Decision:
        asker = user if question.service_account is None else _service_account(*question.service_account)
        attributes = Attributes(
            question.verb,
            group=question.group,
            version="*" if question.resource else "",
            resource=question.resource,
            subresource=question.subresource,
            namespace=question.namespace,
            name=question.name,
            path=question.path,
        )
        decision = authorizer.authorize(asker, attributes)
        return cel.Decision(decision.allowed, decision.reason)

    return ask


def _service_account(namespace: str, name: str) -> User:
    everyone = "system:serviceaccounts"
    groups = (everyone, f"{everyone}:{namespace}", "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups=groups)


class Budget:
    """What the expressions about one write may still cost together."""

    def __init__(self, total: int) -> None:
        self.left: int = total

    def evaluate(self, program: cel.Program, values: dict[str, Any]) -> Any:
        """Evaluate an expression; a failure of its own is an EvaluationError, an empty purse an ExpressionError."""
        frame = program.frame(values)
        try:
            value = program.step(frame)
        except cel.EvaluationError as error:
            self.spend(frame.cost)
            raise cel.EvaluationError(f"expression '{program.source}' resulted in error: {error}") from None
        self.spend(frame.cost)
        return value

    def spend(self, cost: int) -> None:
        """Take a cost off."""
        if cost > self.left:
            raise ExpressionError(OUT_OF_BUDGET)
        self.left -= cost
