"""Declarations of controllers.

Everything here is data and pure functions; importing it loads no HTTP library and sends no requests.
`kubewright.controller.running` does the I/O: the worker loop, the implementation of the context and the writes. The
manager imports it, an author's program does not.

Read in this order: `declaration` (a controller, its options and results) and `operator` (several controllers),
`watches`, `references` and `predicates` (what triggers a reconcile), `context` (the interface of a reconciler), `steps`
(work that is recorded in the status), `disruption` and `windows` (limits for disruptive writes), `errors`, and `permissions` (what a controller may do). The pure part of writing:
`writes` (the documents and patches that are sent), `applying` and `managed_fields` (whether an apply must be sent).
"""

from kubewright.api import Index
from kubewright.controller.context import Context, Reader
from kubewright.controller.declaration import (
    Controller,
    Needs,
    Options,
    Reconciler,
    Result,
    controller,
    needs,
)
from kubewright.controller.errors import (
    CannotOwn,
    ChildRecreateBackoff,
    ContestedField,
    DisruptionDeferred,
    ObjectTerminating,
    OwnedByAnother,
    RetryLater,
    StaleObject,
    TerminalError,
    UndeclaredAccess,
)
from kubewright.controller.operator import Operator
from kubewright.controller.permissions import (
    Permissions,
    disruption_object,
    disruption_rules,
    rules_for,
)
from kubewright.controller.predicates import (
    Cause,
    Change,
    Predicate,
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    on,
    with_labels,
)
from kubewright.controller.references import FieldReference, reference
from kubewright.controller.steps import StepRun
from kubewright.controller.watches import Owned, Selector, Source, Watch, owned, source, watch

__all__ = [
    "CannotOwn",
    "Cause",
    "Change",
    "ChildRecreateBackoff",
    "ContestedField",
    "Context",
    "Controller",
    "DisruptionDeferred",
    "FieldReference",
    "Index",
    "Needs",
    "ObjectTerminating",
    "Operator",
    "Options",
    "Owned",
    "OwnedByAnother",
    "Permissions",
    "Predicate",
    "Reader",
    "Reconciler",
    "Result",
    "RetryLater",
    "Selector",
    "Source",
    "StaleObject",
    "StepRun",
    "TerminalError",
    "UndeclaredAccess",
    "Watch",
    "all_of",
    "annotations_changed",
    "any_of",
    "controller",
    "disruption_object",
    "disruption_rules",
    "generation_changed",
    "labels_changed",
    "needs",
    "on",
    "owned",
    "reference",
    "rules_for",
    "source",
    "watch",
    "with_labels",
]
