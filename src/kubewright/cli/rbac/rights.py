"""Missing and unused RBAC rules of an operator: pure functions on recorded API requests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kubewright.api import PolicyRule, Right, kind_of, lease_rules, rights_of
from kubewright.client.recording import RecordedAccess
from kubewright.controller import Controller, Operator, disruption_rules, rules_for
from kubewright.webhook import certificate_rules, registration_rules, webhook_rules

READING = frozenset({"get", "list", "watch"})
"""Compared as one verb, `read`: which of them is used depends on the server and on what is cached."""

OWN_GROUPS = frozenset({"events.k8s.io"})
"""Groups that kubewright itself needs, to publish Events: not every test makes it do so."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing an operator's rules with its recorded requests."""

    denied: Sequence[RecordedAccess]
    unused: Sequence[tuple[Right, str]]
    """Each with a hint how to remove it, or how to use it in a test."""
    used: int
    """How many of the operator's permissions are not in `unused`."""

    @property
    def proved(self) -> bool:
        """Return True if no rule is missing or unused."""
        return not self.denied and not self.unused


def compare_rules(operator: Operator, accesses: Iterable[RecordedAccess]) -> Verification:
    """Compare the rules generated from an operator's declarations with its recorded requests."""
    recorded = list(accesses)
    used = {_right(access) for access in recorded if not access.denied}
    used |= set(_implied(operator, used))
    rules = (*rules_for(operator), *webhook_rules(operator.name, operator.webhooks))
    granted = dict(_granted(operator, rules))
    granted = {right: why for right, why in granted.items() if right.group not in OWN_GROUPS}
    unused = [(right, why) for right, why in sorted(granted.items()) if right not in used]
    # A test may revoke a permission on purpose: requests that the rules allow are not reported as denied.
    within = {right for right, _ in _granted(operator, all_rules(operator))}
    # A run works without the watch of a CRD that does not exist yet (`cache/definitions.py`), so no rule is missing.
    within.add(Right("apiextensions.k8s.io", "customresourcedefinitions", "read"))
    denied = sorted({_plain(access) for access in recorded if access.denied and _right(access) not in within})
    left_out = {right for right, _ in unused}
    return Verification(denied, unused, sum(_merged(right) not in left_out for right in rights_of(rules)))


def _plain(access: RecordedAccess) -> RecordedAccess:
    # Names and namespaces of tests do not matter for the missing rule.
    return RecordedAccess(access.verb, access.group, access.resource, denied=True)


def _right(access: RecordedAccess) -> Right:
    return _merged(Right(access.group, access.resource, access.verb))


def _merged(right: Right) -> Right:
    return right._replace(verb="read") if right.verb in READING else right


def all_rules(operator: Operator) -> list[PolicyRule]:
    """Return every rule that an operator may have, including those for kubewright's own requests."""
    return [
        *rules_for(operator),
        *webhook_rules(operator.name, operator.webhooks),
        *certificate_rules(operator.name, operator.webhooks),
        *registration_rules(operator.name, operator.webhooks),
        *lease_rules(operator.name, sharded=operator.shards is not None),
        *disruption_rules(operator),
    ]


def _granted(operator: Operator, rules: Iterable[PolicyRule]) -> Iterator[tuple[Right, str]]:
    for right in {_merged(right) for right in rights_of(rules)}:
        yield right, _origin(operator, right)


def _origin(operator: Operator, right: Right) -> str:
    for controller in operator.controllers:
        own = kind_of(controller.kind)
        for need in controller.needs:
            resource = f"{need.kind.plural}/{need.subresource}" if need.subresource else need.kind.plural
            verbs = {"read" if verb in READING else verb for verb in need.verbs}
            if (need.kind.group, resource) == (right.group, right.resource) and right.verb in verbs:
                return f"remove it from needs=[...] of controller {controller.name!r}, or add a test that uses it"
        verbs_on_children = (
            ("read", *child.verbs) for child in controller.owns if _is(kind_of(child.kind), right)
        )
        if any(right.verb in verbs for verbs in verbs_on_children):
            return _origin_of_owned(controller, right)
        if (own.group, f"{own.plural}/status") == (right.group, right.resource):
            return f"no test makes controller {controller.name!r} write a status"
        if _is(own, right) and right.verb == "patch":
            return f"no test runs the finalizer of controller {controller.name!r}"
    return "no test uses it"


def _origin_of_owned(controller: Controller[Any], right: Right) -> str:
    child = next(kind for kind in _children(controller) if _is(kind, right)).kind
    if right.verb == "create":
        return f"no test makes controller {controller.name!r} create a {child}"
    if right.verb == "patch":
        return (
            f"no test makes controller {controller.name!r} apply or patch a {child}: add one, "
            f'or declare owns=[kw.owned({child}, verbs=["create"])] if it only creates them'
        )
    return f"no test makes controller {controller.name!r} read or watch a {child}"


def _is(kind: Any, right: Right) -> bool:
    return (kind.group, kind.plural) == (right.group, right.resource)


def _implied(operator: Operator, used: Iterable[Right]) -> Iterator[Right]:
    """Yield the permission to update finalizers, which setting blockOwnerDeletion needs without such a request."""
    written = {(right.group, right.resource) for right in used if right.verb in ("create", "patch")}
    for controller in operator.controllers:
        if any((kind.group, kind.plural) in written for kind in _children(controller)):
            own = kind_of(controller.kind)
            yield Right(own.group, f"{own.plural}/finalizers", "update")


def _children(controller: Controller[Any]) -> Iterator[Any]:
    return (kind_of(child.kind) for child in controller.owns)
