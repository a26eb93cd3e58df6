"""Kubernetes operators in Python: kinds as typed classes, controllers as functions.

The tour, in reading order:

1. A kind is a class: `Model`, `Field`, `Resource[Spec, Status]`, `Object`, `Meta`, `Condition`, `Step`, `Column`,
   `Scale`, `Rule`, with `Quantity`, `Duration` and `IntOrString` for the types that Kubernetes writes as text. The built-in
   kinds are in `kubewright.api.builtin` (`apps_v1`, `core_v1`, ...); a kind without a class is a `Kind`.
2. A controller reconciles one kind: `controller`, `Controller`, `Context`, `Result`, and `Options` with a `Backoff`.
3. What triggers a reconcile: `owned`, `watch`, `reference`, `source`, an `Index`, a `Selector` for what is watched, and
   `kubewright.predicates` for `when=`. Access beyond that: `needs`. Whose child an object is: `is_controlled_by`.
4. Admission webhooks: `kubewright.admission`. Versions of one kind: `Conversion`.
5. An operator is its controllers and webhooks: `Operator`. Its Deployment: `kubewright.packaging`.
6. Exceptions: `KubewrightError`, `ApiError`, `NotFound`, `AlreadyExists`, `Conflict` and
   `OwnedByAnother`; a reconciler raises `RetryLater` and `TerminalError`. All of them are in `kubewright.errors`.

Everything here is declaration: importing it loads no HTTP library and contacts nothing. `kubewright run`, or `run`
in a program of your own, runs an operator; `kubewright.testing` tests one.
"""

from kubewright import admission, conditions, errors, packaging, predicates
from kubewright.api import (
    AlreadyExists,
    ApiError,
    Column,
    Condition,
    Conflict,
    Duration,
    Field,
    IntOrString,
    Kind,
    KubewrightError,
    Meta,
    Model,
    NotFound,
    Object,
    ObjectKey,
    Quantity,
    Resource,
    Rule,
    Scale,
    Step,
    is_controlled_by,
)
from kubewright.backoff import Backoff
from kubewright.controller import (
    Context,
    Controller,
    Index,
    Operator,
    Options,
    OwnedByAnother,
    Result,
    RetryLater,
    Selector,
    TerminalError,
    controller,
    needs,
    owned,
    reference,
    source,
    watch,
)
from kubewright.program import run
from kubewright.webhook import Conversion

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Backoff",
    "Column",
    "Condition",
    "Conflict",
    "Context",
    "Controller",
    "Conversion",
    "Duration",
    "Field",
    "Index",
    "IntOrString",
    "Kind",
    "KubewrightError",
    "Meta",
    "Model",
    "NotFound",
    "Object",
    "ObjectKey",
    "Operator",
    "Options",
    "OwnedByAnother",
    "Quantity",
    "Resource",
    "Result",
    "RetryLater",
    "Rule",
    "Scale",
    "Selector",
    "Step",
    "TerminalError",
    "admission",
    "conditions",
    "controller",
    "errors",
    "is_controlled_by",
    "needs",
    "owned",
    "packaging",
    "predicates",
    "reference",
    "run",
    "source",
    "watch",
]
