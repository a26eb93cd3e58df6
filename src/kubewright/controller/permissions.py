"""What a declaration may do, as RBAC rules: the least that suffices, enforced by the context, rendered into roles."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kubewright.api import Kind, kind_of
from kubewright.controller.declaration import Controller
from kubewright.controller.errors import UndeclaredAccess
from kubewright.controller.operator import Operator
from kubewright.guards import calling_line
from kubewright.webhook import WebhookNames

READ = frozenset({"get", "list", "watch"})
OWN = READ | {"create", "patch"}
_ADMISSION = ("admissionregistration.k8s.io",)


class GroupResource(NamedTuple):
    """A resource as RBAC names it; a subresource follows a slash."""

    group: str
    resource: str


class PolicyRule(msgspec.Struct, frozen=True):
    """One rule of a role."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the rule as a Role or ClusterRole holds it."""
        rule: dict[str, Any] = {"apiGroups": list(self.api_groups), "resources": list(self.resources)}
        if self.resource_names:
            rule["resourceNames"] = list(self.resource_names)
        return rule | {"verbs": list(self.verbs)}


class Permissions:
    """What one controller declares, as verbs by resource."""

    def __init__(self, controller: Controller[Any]) -> None:
        self._controller = controller.name
        self.grants: Mapping[GroupResource, frozenset[str]] = _grants_of(controller)
        self._granted: set[tuple[Kind, tuple[str, ...], str]] = set()

    def require(self, kind: Kind, *verbs: str, subresource: str = "") -> None:
        """Raise UndeclaredAccess, with the line to add, where the declaration does not cover the verbs."""
        if (kind, verbs, subresource) in self._granted:
            return
        granted = self.grants.get(_resource(kind, subresource), frozenset[str]())
        if not granted.issuperset(verbs):
            missing = [verb for verb in verbs if verb not in granted]
            line = calling_line()
            raise UndeclaredAccess(
                f"controller {self._controller!r} does not declare {'/'.join(missing)} of "
                f"{_resource(kind, subresource).resource}{f' (called at {line})' if line else ''}: "
                f"{_advice(kind, missing, subresource)}"
            )
        self._granted.add((kind, verbs, subresource))


def _advice(kind: Kind, missing: Sequence[str], subresource: str) -> str:
    """Return what to add to the declaration; a kind that is created is most often owned."""
    group = kind.group.partition(".")[0] or "core"
    name = f"{group}_{kind.version}.{kind.kind}" if kind.builtin else kind.kind
    arguments = ", ".join([name, *(f'"{verb}"' for verb in missing)])
    if subresource:
        arguments += f', subresource="{subresource}"'
    needed = f"needs=[kw.needs({arguments})]"
    if "create" not in missing or subresource:
        return f"add {needed} to its declaration"
    return (
        f"add owns=[{name}] to its declaration, so that each gets an owner reference and its changes trigger a "
        f"reconcile; or {needed} if it is shared between owners or must outlive them"
    )


def rules_for(operator: Operator) -> list[PolicyRule]:
    """Return the rules that the operator's controllers need on their kinds, and for events."""
    grants: defaultdict[GroupResource, frozenset[str]] = defaultdict(frozenset)
    for controller in operator.controllers:
        for resource, verbs in _grants_of(controller).items():
            grants[resource] |= verbs
    grants[GroupResource("events.k8s.io", "events")] |= {"create", "patch"}
    return _rules(grants)


def lease_rules(name: str) -> list[PolicyRule]:
    """Return the rules for leader election, for a Role in the lease's namespace."""
    # A create cannot be limited by name: the server does not know the name when it authorizes it.
    return [
        PolicyRule(("coordination.k8s.io",), ("leases",), ("create",)),
        PolicyRule(("coordination.k8s.io",), ("leases",), ("get", "update"), (name,)),
    ]


def webhook_rules(operator: Operator) -> list[PolicyRule]:
    """Return the rules to keep the webhooks reachable and trusted, for a ClusterRole: these kinds have no namespace."""
    names, webhooks, verbs = WebhookNames(operator.name), operator.webhooks, ("get", "patch")
    rules: list[PolicyRule] = []
    if webhooks.mutating:
        rules.append(PolicyRule(_ADMISSION, ("mutatingwebhookconfigurations",), verbs, (names.mutating,)))
    if webhooks.validating:
        rules.append(PolicyRule(_ADMISSION, ("validatingwebhookconfigurations",), verbs, (names.validating,)))
    if webhooks.conversions:
        resources = ("customresourcedefinitions",)
        rules.append(PolicyRule(("apiextensions.k8s.io",), resources, verbs, webhooks.converted))
    return rules


def certificate_rules(operator: Operator) -> list[PolicyRule]:
    """Return the rules for the webhooks' certificates, for a Role in the operator's namespace."""
    if not operator.webhooks:
        return []
    return [PolicyRule(("",), ("secrets",), ("get", "patch"), (WebhookNames(operator.name).secret,))]


def registration_rules(operator: Operator) -> list[PolicyRule]:
    """Return what a run beside the API server needs on top, to bring its webhooks and to take them away."""
    return [
        PolicyRule(rule.api_groups, rule.resources, ("create", "delete"), rule.resource_names)
        for rule in webhook_rules(operator)
        if rule.api_groups == _ADMISSION
    ]


def review_rules() -> list[PolicyRule]:
    """Return the rules to authenticate and authorize whoever asks for metrics."""
    return [
        PolicyRule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
        PolicyRule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
    ]


def _grants_of(controller: Controller[Any]) -> dict[GroupResource, frozenset[str]]:
    grants: defaultdict[GroupResource, frozenset[str]] = defaultdict(frozenset)
    own = kind_of(controller.kind)
    grants[_resource(own)] |= READ
    if controller.finalizer_name:
        grants[_resource(own)] |= {"patch"}
    if own.status:
        grants[_resource(own, "status")] |= {"patch"}
    for child in controller.owns:
        grants[_resource(kind_of(child.kind))] |= OWN
        # OwnerReferencesPermissionEnforcement asks this of whoever sets blockOwnerDeletion.
        grants[_resource(own, "finalizers")] |= {"update"}
    for watched in controller.watches:
        grants[_resource(kind_of(watched.kind))] |= READ
    for need in controller.needs:
        grants[_resource(need.kind, need.subresource)] |= need.verbs
    return dict(grants)


def _rules(grants: Mapping[GroupResource, frozenset[str]]) -> list[PolicyRule]:
    merged: defaultdict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource), verbs in sorted(grants.items()):
        merged[group, tuple(sorted(verbs))].append(resource)
    return [PolicyRule((group,), tuple(resources), verbs) for (group, verbs), resources in merged.items()]


def _resource(kind: Kind, subresource: str = "") -> GroupResource:
    return GroupResource(kind.group, f"{kind.plural}/{subresource}" if subresource else kind.plural)
