"""Controllers: what an author declares.

Everything here is data and pure functions; importing it loads no HTTP library and declaring it touches
nothing outside. `kubewright.controller.running` is the other half: the worker loop, the body of the
context and the writes. The manager imports it, an author never does.

In reading order: `declaration` (a controller), `operator` (several of them) and its `workload`, `watches` (what leads to a
reconcile), `filters` and `change`, `context` (what a reconciler is given), `result` and `errors` (what it
answers), `needs` and `permissions` (what it may do). `applying` (must an apply be sent?), `managed_fields`,
`children`, `conditions` and `finalizers` are the pure part of writing.
"""

from kubewright.api import Index
from kubewright.controller.change import Cause, Change
from kubewright.controller.context import Context, Reader
from kubewright.controller.declaration import Controller, Options, Reconciler, controller
from kubewright.controller.errors import (
    CannotOwn,
    ChildVanishes,
    ContestedField,
    ObjectTerminating,
    OwnedByAnother,
    StaleObject,
    TerminalError,
    UndeclaredAccess,
)
from kubewright.controller.needs import Needs, needs
from kubewright.controller.operator import Operator
from kubewright.controller.permissions import (
    Permissions,
    PolicyRule,
    certificate_rules,
    lease_rules,
    registration_rules,
    review_rules,
    rules_for,
    webhook_rules,
)
from kubewright.controller.predicates import (
    Predicate,
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    on,
    with_labels,
)
from kubewright.controller.result import Result
from kubewright.controller.watches import Owned, Selector, Source, Watch, owned, source, watch

__all__ = [
    "CannotOwn",
    "Cause",
    "Change",
    "ChildVanishes",
    "ContestedField",
    "Context",
    "Controller",
    "Index",
    "Needs",
    "ObjectTerminating",
    "Operator",
    "Options",
    "Owned",
    "OwnedByAnother",
    "Permissions",
    "PolicyRule",
    "Predicate",
    "Reader",
    "Reconciler",
    "Result",
    "Selector",
    "Source",
    "StaleObject",
    "TerminalError",
    "UndeclaredAccess",
    "Watch",
    "all_of",
    "annotations_changed",
    "any_of",
    "certificate_rules",
    "controller",
    "generation_changed",
    "labels_changed",
    "lease_rules",
    "needs",
    "on",
    "owned",
    "registration_rules",
    "review_rules",
    "rules_for",
    "source",
    "watch",
    "webhook_rules",
    "with_labels",
]
