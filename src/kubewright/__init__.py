"""Kubernetes operators in Python: kinds as typed classes, controllers as functions.

The tour, in reading order:

1. A kind is a class: `Model`, `Field`, `Resource[Spec, Status]`, `Object`, `Meta`, `Condition`, `Column`,
   `Scale`, `Rule`. The built-in kinds are in `kubewright.api.builtin` (`apps_v1`, `core_v1`, …).
2. A controller is a function from an object to the world: `controller`, `Controller`, `Context`, `Result`,
   `TerminalError`.
3. What leads to it: `owned`, `watch`, `Scope`, `Index`, `source`, and the filters `generation_changed`,
   `labels_match`, `on`, `all_of`, `any_of`. What it may do beside: `needs`.
4. An operator is its controllers and what lives as long as they run: `Operator`, `Env`.
5. What can go wrong: `KubewrightError`, `DeclarationError`, `Undeclared`, `ApiError` and its kinds
   (`NotFound`, `AlreadyExists`, `Conflict`, `Forbidden`, `Invalid`), `ConfigError`.

Everything here is declaration: importing it loads no HTTP library and touches nothing outside. What runs an
operator is `kubewright run`, or `kubewright.manager`; what tests one is `kubewright.testing`.
"""

from kubewright.api import (
    AlreadyExists,
    ApiError,
    Column,
    Condition,
    ConfigError,
    Conflict,
    DeclarationError,
    Field,
    Forbidden,
    Invalid,
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
)
from kubewright.controller import (
    Change,
    Context,
    Controller,
    Env,
    Index,
    Operator,
    Result,
    Scope,
    TerminalError,
    Tuning,
    Undeclared,
    all_of,
    any_of,
    controller,
    generation_changed,
    labels_match,
    needs,
    on,
    owned,
    source,
    watch,
)

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Change",
    "Column",
    "Condition",
    "ConfigError",
    "Conflict",
    "Context",
    "Controller",
    "DeclarationError",
    "Env",
    "Field",
    "Forbidden",
    "Index",
    "Invalid",
    "KubewrightError",
    "Meta",
    "Model",
    "NotFound",
    "Object",
    "ObjectKey",
    "Operator",
    "Quantity",
    "Resource",
    "Result",
    "Rule",
    "Scale",
    "Scope",
    "TerminalError",
    "Tuning",
    "Undeclared",
    "all_of",
    "any_of",
    "controller",
    "generation_changed",
    "labels_match",
    "needs",
    "on",
    "owned",
    "source",
    "watch",
]
