"""Filters: which changes are worth a reconcile. They never touch what the cache holds."""

from collections.abc import Callable
from typing import Any, TypeVar

from kubewright.api import DeclarationError, parse_labels
from kubewright.controller.change import Change, ChangeType

T = TypeVar("T")

Predicate = Callable[[Change[T]], bool]
"""A pure function that tells whether a change matters."""

_TYPES: tuple[ChangeType, ...] = ("create", "update", "delete")


def generation_changed(change: Change[Any]) -> bool:
    """Pass what the spec's owner did: updates of status or metadata alone are dropped."""
    if change.before is None or change.after is None:
        return True
    return change.before.meta.generation != change.after.meta.generation


def labels_changed(change: Change[Any]) -> bool:
    """Pass what came, went, or has other labels than before."""
    if change.before is None or change.after is None:
        return True
    return change.before.meta.labels != change.after.meta.labels


def annotations_changed(change: Change[Any]) -> bool:
    """Pass what came, went, or has other annotations than before."""
    if change.before is None or change.after is None:
        return True
    return change.before.meta.annotations != change.after.meta.annotations


def with_labels(selector: str) -> Predicate[Any]:
    """Pass objects whose labels match, and those that just ceased to."""
    parsed = parse_labels(selector)

    def matches(change: Change[Any]) -> bool:
        return any(parsed.matches(meta.labels) for meta in change.metas)

    return matches


def on(*types: ChangeType) -> Predicate[Any]:
    """Pass only these types of change: "create", "update", "delete"."""
    unknown = [text for text in types if text not in _TYPES]
    if unknown or not types:
        raise DeclarationError(f"on({', '.join(map(repr, types))}): name one or more of {', '.join(_TYPES)}")

    def is_on(change: Change[Any]) -> bool:
        return change.type in types

    return is_on


def all_of(*filters: Predicate[T]) -> Predicate[T]:
    """Pass what every filter passes."""
    return lambda change: all(passes(change) for passes in filters)


def any_of(*filters: Predicate[T]) -> Predicate[T]:
    """Pass what at least one filter passes."""
    return lambda change: any(passes(change) for passes in filters)
