"""Predicates: functions of a `Change` that decide whether it leads to a reconcile; passed as `when=`.

`generation_changed`, `labels_changed` and `annotations_changed` are predicates themselves; `with_labels(...)` and
`on(...)` make one; `all_of` and `any_of` combine them. A predicate of your own takes a `Change` and returns a bool.
"""

from kubewright.controller.predicates import (
    Change,
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    on,
    with_labels,
)

__all__ = [
    "Change",
    "all_of",
    "annotations_changed",
    "any_of",
    "generation_changed",
    "labels_changed",
    "on",
    "with_labels",
]
