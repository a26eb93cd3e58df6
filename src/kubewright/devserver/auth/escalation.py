"""Nobody grants more than they have: the check on writing roles and bindings."""

from collections.abc import Sequence
from typing import Any

from kubewright.devserver.auth.rbac import GROUP, Policies, RoleAuthorizer, role_rules
from kubewright.devserver.auth.rules import Rule, compact, describe, uncovered
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.request.identity import MASTERS, Attributes, User

_ROLES = {"roles", "clusterroles"}
_BINDINGS = {"rolebindings", "clusterrolebindings"}


def refuse_escalation(operation: Operation, authorizer: RoleAuthorizer, policies: Policies) -> None:
    """Raise a Forbidden if a role or binding would give away permissions its writer lacks."""
    resource = operation.resource
    if resource.group != GROUP or operation.operation not in ("CREATE", "UPDATE") or operation.object is None:
        return
    user = operation.user
    if MASTERS in user.groups:
        return
    if resource.resource in _ROLES:
        rules: list[Rule] = operation.object.get("rules") or []
        if operation.old_object is not None and (operation.old_object.get("rules") or []) == rules:
            return
        if _may(authorizer, user, "escalate", operation, operation.name):
            return
        _refuse_unless_held(operation, authorizer, rules)
    elif resource.resource in _BINDINGS:
        reference: JsonObject = operation.object.get("roleRef") or {}
        if operation.old_object is not None and not _binding_changed(operation.object, operation.old_object):
            return
        if _may(authorizer, user, "bind", operation, reference.get("name", ""), reference):
            return
        _refuse_unless_held(operation, authorizer, role_rules(policies, reference, operation.namespace) or [])


def _binding_changed(new: JsonObject, old: JsonObject) -> bool:
    return any(new.get(part) != old.get(part) for part in ("roleRef", "subjects"))


def _may(
    authorizer: RoleAuthorizer,
    user: User,
    verb: str,
    operation: Operation,
    name: str,
    reference: dict[str, Any] | None = None,
) -> bool:
    resource = operation.resource.resource
    if reference is not None:
        resource = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
    namespace = "" if resource == "clusterroles" and not operation.namespace else operation.namespace
    return authorizer.authorize(user, Attributes(verb, GROUP, "v1", resource, "", namespace, name)).allowed


def _refuse_unless_held(operation: Operation, authorizer: RoleAuthorizer, wanted: Sequence[Rule]) -> None:
    user = operation.user
    missing = compact(uncovered(authorizer.rules(user, operation.namespace), wanted))
    if not missing:
        return
    groups = " ".join(f'"{group}"' for group in user.groups)
    told = "\n".join(describe(rule) for rule in missing)
    why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{told}'
    raise StatusError.forbidden(GROUP, operation.resource.resource, operation.name, why)
