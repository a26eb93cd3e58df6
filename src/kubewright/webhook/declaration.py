"""Admission webhooks as data: a kind, a function, and when the API server calls it."""

import inspect
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, Literal, NoReturn, TypedDict, TypeVar, Unpack, cast, get_args

from kubewright.api import (
    DeclarationError,
    Kind,
    Requirement,
    SelectorError,
    kind_of,
    label_selector,
    names,
    parse_labels,
)
from kubewright.webhook.findings import Problem
from kubewright.webhook.request import AdmissionRequest, Operation

T = TypeVar("T")

FailurePolicy = Literal["Fail", "Ignore"]
SideEffects = Literal["None", "NoneOnDryRun"]
MatchPolicy = Literal["Equivalent", "Exact"]
Reinvocation = Literal["Never", "IfNeeded"]
Selecting = str | Mapping[str, Any]

Findings = Iterable[Problem] | None
AsyncFindings = Awaitable[Findings] | AsyncIterable[Problem]
AdmissionFunction = (
    Callable[[T], Findings | AsyncFindings]
    | Callable[[T, T | None], Findings | AsyncFindings]
    | Callable[[T, T | None, AdmissionRequest], Findings | AsyncFindings]
)

LONGEST_TIMEOUT = 30
MOST_CONDITIONS = 64
MOST_ARGUMENTS = 3
"""The object, the old one and the request."""
_BODIES = {("autoscaling", "Scale"), ("policy", "Eviction"), ("authentication.k8s.io", "TokenRequest")}
"""Kinds that only subresources of others have."""
_OPERATORS = {
    "in": "In",
    "=": "In",
    "==": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}
_PATH = r"(/[a-zA-Z0-9-_]+)+|/"


class Terms(TypedDict, total=False):
    """When the API server calls a webhook, and what it does if the call fails."""

    name: str
    """Distinguishes webhooks of one kind; by default the function's name."""
    path: str
    """Path of its URL; by default as kubebuilder names it: `/validate-example-com-v1-foo`."""
    subresources: Sequence[str]
    """Called for these subresources instead of the object itself: `["status"]`."""
    of: type[Any] | Kind
    """The kind that has these subresources, if their objects are of another kind: Eviction of Pod."""
    match_conditions: Mapping[str, str]
    """CEL expressions by name; the webhook is called only if all are true."""
    object_selector: Selecting
    """Labels of the object: `"app=web,tier in (a,b)"`, or a structured LabelSelector."""
    namespace_selector: Selecting
    """Labels of the object's namespace."""
    failure_policy: FailurePolicy
    """Reject the request (Fail, the default) or allow it (Ignore) if the webhook fails."""
    side_effects: SideEffects
    timeout: int
    """Seconds that the API server waits: 1 to 30, by default 10."""
    match_policy: MatchPolicy
    terminating: bool
    """Also called if only the metadata of a terminating object changes; by default such changes are allowed."""


class Admission(Generic[T]):
    """One admission webhook: made by `validating_webhook` and `mutating_webhook`, callable like its function.

    A `def` is run in a thread, an `async def` on the event loop.
    """

    def __init__(
        self,
        kind: type[T] | Kind,
        function: AdmissionFunction[T],
        *,
        on: Sequence[Operation] = ("create", "update"),
        mutates: bool = False,
        reinvocation: Reinvocation = "Never",
        **terms: Unpack[Terms],
    ) -> None:
        self.kind = kind
        self.function = function
        self.mutates = mutates
        self.on: tuple[Operation, ...] = tuple(dict.fromkeys(on))
        self.reinvocation: Reinvocation = reinvocation
        self.name: str = terms.get("name", "") or _name_of(function)
        self.path: str = terms.get("path", "")
        self.subresources: tuple[str, ...] = tuple(terms.get("subresources", ()))
        self.resource: Kind = kind_of(terms.get("of", kind))
        self.match_conditions: MappingProxyType[str, str] = MappingProxyType(
            dict(terms.get("match_conditions", {}))
        )
        self.failure_policy: FailurePolicy = terms.get("failure_policy", "Fail")
        self.side_effects: SideEffects = terms.get("side_effects", "None")
        self.match_policy: MatchPolicy = terms.get("match_policy", "Equivalent")
        self.timeout: int = terms.get("timeout", 10)
        self.terminating: bool = terms.get("terminating", False)
        self._check(terms)
        self.object_selector: dict[str, Any] | None = self._selector(
            "object_selector", terms.get("object_selector")
        )
        self.namespace_selector: dict[str, Any] | None = self._selector(
            "namespace_selector", terms.get("namespace_selector")
        )
        self.is_async: bool = is_async(function)
        self._arguments = self._count_arguments()

    @property
    def verb(self) -> str:
        """Return the verb at the start of paths and messages."""
        return "mutate" if self.mutates else "validate"

    def call(self, subject: T, old: T | None, request: AdmissionRequest) -> Findings:
        """Call a function that is not async, with as many of the arguments as it takes."""
        findings = self(*(subject, old, request)[: self._arguments])
        if inspect.iscoroutine(findings):
            findings.close()
            raise TypeError("returned a coroutine: declare the function with `async def`")
        return findings

    async def call_async(self, subject: T, old: T | None, request: AdmissionRequest) -> Findings:
        """Call an async function or generator, with as many of the arguments as it takes."""
        findings = self(*(subject, old, request)[: self._arguments])
        if isinstance(findings, AsyncIterable):
            return [found async for found in cast("AsyncIterable[Problem]", findings)]
        return await findings

    def __call__(self, *arguments: Any) -> Any:
        """Call the author's function directly."""
        return cast("Callable[..., Any]", self.function)(*arguments)

    def __repr__(self) -> str:
        return f"{_WORDS[self.mutates]}({kind_of(self.kind).kind}, name={self.name!r})"

    def _check(self, terms: Terms) -> None:
        allowed = [
            operation for operation in get_args(Operation) if not (self.mutates and operation == "delete")
        ]
        if not self.on or any(operation not in allowed for operation in self.on):
            self._refuse(f"on={list(self.on)!r}: choose from {', '.join(allowed)}")
        if not 1 <= self.timeout <= LONGEST_TIMEOUT:
            self._refuse(f"timeout={self.timeout}: the API server waits 1 to {LONGEST_TIMEOUT} seconds")
        if self.path and not re.fullmatch(_PATH, self.path):
            self._refuse(
                f"path={self.path!r}: use letters, digits, `-` and `_` between slashes: /validate/foo"
            )
        if "of" in terms and not self.subresources:
            self._refuse('of= belongs to subresources=: name them, like subresources=["eviction"]')
        if "of" in terms and (self.resource.group, self.resource.kind) in _BODIES:
            body, word, owner = self.resource.kind, _WORDS[self.mutates], kind_of(self.kind).kind
            self._refuse(
                f"of={body}: write @{word}({body}, subresources={list(self.subresources)}, of={owner})"
            )
        if len(self.match_conditions) > MOST_CONDITIONS:
            self._refuse(f"match_conditions: at most {MOST_CONDITIONS} of them")
        for condition in self.match_conditions:
            if problems := names.qualified_name(condition):
                self._refuse(f"match_conditions: name {condition!r}: {problems[0]}")
        if problems := names.dns1123_subdomain(self.name):
            self._refuse(f"{problems[0]}: give it another name=")

    def _selector(self, keyword: str, given: Selecting | None) -> dict[str, Any] | None:
        try:
            return None if given is None else _structured(given)
        except SelectorError as error:
            self._refuse(f"{keyword}: {error}")

    def _count_arguments(self) -> int:
        signature = inspect.signature(self.function)
        fitting = [count for count in range(1, MOST_ARGUMENTS + 1) if _takes(signature, count)]
        if not fitting:
            self._refuse("must take the object, and may take the old object and the request after it")
        return fitting[-1]

    def _refuse(self, what: str) -> NoReturn:
        raise DeclarationError(f"{self!r}: {what}")


_WORDS = {True: "mutating_webhook", False: "validating_webhook"}


def validating_webhook(
    kind: type[T] | Kind, *, on: Sequence[Operation] = ("create", "update"), **terms: Unpack[Terms]
) -> Callable[[AdmissionFunction[T]], Admission[T]]:
    """Declare a function that validates objects of a kind before they are stored.

    It is called with the object, the old object on an update, and the request, and returns or yields its findings.
    On a delete both arguments are the deleted object. A `def` is run in a thread, an `async def` on the event loop.
    Finalizers can be removed from a terminating object without a call, unless `terminating=True`.
    """

    def declare(function: AdmissionFunction[T]) -> Admission[T]:
        return Admission(kind, function, on=on, **terms)

    return declare


def mutating_webhook(
    kind: type[T] | Kind,
    *,
    on: Sequence[Operation] = ("create", "update"),
    reinvocation: Reinvocation = "Never",
    **terms: Unpack[Terms],
) -> Callable[[AdmissionFunction[T]], Admission[T]]:
    """Declare a function that sets defaults of objects of a kind, by changing the object that it is called with.

    Its changes become a minimal patch; fields that the class does not declare stay as they are. A `def` is run in a
    thread, an `async def` on the event loop.
    """

    def declare(function: AdmissionFunction[T]) -> Admission[T]:
        return Admission(kind, function, on=on, mutates=True, reinvocation=reinvocation, **terms)

    return declare


def is_async(function: Callable[..., Any]) -> bool:
    """Return True if the function returns an awaitable or an async iterator."""
    while isinstance(function, partial):
        function = function.func
    method = getattr(type(function), "__call__", None)  # noqa: B004 (an object whose class defines it with `async def`)
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in (function, method)
    )


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _name_of(function: Any) -> str:
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("_").replace("_", "-").lower()


def _structured(selector: Selecting) -> dict[str, Any]:
    """Return a LabelSelector for `app=web,!canary`, or for one that is already structured."""
    if not isinstance(selector, str):
        label_selector(dict(selector))
        return dict(selector)
    chosen = parse_labels(selector)
    return {"matchExpressions": [_expression(requirement) for requirement in chosen.requirements]}


def _expression(requirement: Requirement) -> dict[str, Any]:
    operator = _OPERATORS.get(requirement.operator)
    if operator is None:
        raise SelectorError(f"{requirement}: webhooks cannot compare labels as numbers")
    expression: dict[str, Any] = {"key": requirement.key, "operator": operator}
    return expression | ({"values": sorted(requirement.values)} if requirement.values else {})
