"""What a controller may do: verbs by resource from its declaration, enforced by the context and rendered as RBAC rules."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubewright.api import Kind, PolicyRule, kind_of
from kubewright.controller.declaration import Controller
from kubewright.controller.errors import UndeclaredAccess
from kubewright.controller.operator import Operator
from kubewright.guards import calling_line

READ = frozenset({"get", "list", "watch"})


class GroupResource(NamedTuple):
    """A resource as RBAC names it; a subresource follows a slash."""

    group: str
    resource: str


class Permissions:
    """What one controller declares, as verbs by resource."""

    def __init__(self, controller: Controller[Any]) -> None:
        self._controller = controller.name
        self.grants: Mapping[GroupResource, frozenset[str]] = _grants_of(controller)
        self._granted: set[tuple[str, tuple[str, ...], str]] = set()

    def require(self, kind: Kind, *verbs: str, subresource: str = "") -> None:
        """Raise UndeclaredAccess, with the line to add, if the declaration does not cover the verbs."""
        if (kind.resource, verbs, subresource) in self._granted:
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
        self._granted.add((kind.resource, verbs, subresource))


def _advice(kind: Kind, missing: Sequence[str], subresource: str) -> str:
    """Return what to add to the declaration; a kind that is created is most often owned."""
    group = kind.group.partition(".")[0] or "core"
    name = f"{group}_{kind.version}.{kind.kind}" if kind.builtin else kind.kind
    arguments = ", ".join([name, *(f'"{verb}"' for verb in missing)])
    if subresource:
        arguments += f', subresource="{subresource}"'
    needed = f"needs=[kw.needs({arguments})]"
    if subresource or not {"create", "get"} & set(missing):
        return f"add {needed} to its declaration"
    if "create" not in missing:
        return f"add {needed} to its declaration, or owns=[{name}] if this controller creates it"
    return (
        f"add owns=[{name}] to its declaration, so that each gets an owner reference and its changes trigger a "
        f"reconcile; or {needed} if it is shared between owners or must outlive them"
    )


def rules_for(operator: Operator) -> list[PolicyRule]:
    """Return the rules that the operator's controllers need on their kinds, for events, and to follow namespaces."""
    grants: defaultdict[GroupResource, frozenset[str]] = defaultdict(frozenset)
    if operator.namespaces is not None:
        grants[GroupResource("", "namespaces")] |= READ
    for controller in operator.controllers:
        for resource, verbs in _grants_of(controller).items():
            grants[resource] |= verbs
    grants[GroupResource("events.k8s.io", "events")] |= {"create", "patch"}
    return _rules(grants)


def disruption_object(operator: str, controller: str) -> str:
    """Return the name of the ConfigMap with the slots of a controller's budget."""
    return f"{operator}-{controller}-disruption"


def disruption_rules(operator: Operator) -> list[PolicyRule]:
    """Return the rules for the budgets of the operator's controllers, for a Role in the operator's namespace."""
    names = tuple(
        disruption_object(operator.name, controller.name)
        for controller in operator.controllers
        if controller.options.budget is not None
    )
    if not names:
        return []
    # A create cannot be limited by name: the server does not know the name when it authorizes it.
    return [
        PolicyRule(("",), ("configmaps",), ("create",)),
        PolicyRule(("",), ("configmaps",), ("get", "update"), names),
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
        grants[_resource(kind_of(child.kind))] |= READ | set(child.verbs)
        # OwnerReferencesPermissionEnforcement requires this of a client that sets blockOwnerDeletion.
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
