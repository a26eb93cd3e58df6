"""RBAC privilege escalation: users cannot grant permissions that they do not hold.

kube-apiserver checks this in the storage of roles and bindings: after mutating admission, before validation and
validating admission, and for dry runs too.
"""

from collections.abc import Sequence

from kubewright.api.identity import GroupVersionResource
from kubewright.devserver.auth.rbac import GROUP, RoleAuthorizer
from kubewright.devserver.auth.rules import RoleRule, compact, describe, uncovered
from kubewright.devserver.objects import JsonObject, encode_sorted, items, meta, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import MASTERS, AuthorizationAttributes
from kubewright.devserver.strategy.access import Access

_ROLES = ("roles", "clusterroles")
_BINDINGS = ("rolebindings", "clusterrolebindings")
_ROLE_RESOURCES = {"Role": "roles", "ClusterRole": "clusterroles"}
_FULL_AUTHORITY: Sequence[RoleRule] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
# The garbage collector changes these without holding the permissions of the role.
_COLLECTED_FIELDS = ("ownerReferences", "finalizers", "selfLink", "managedFields")


def check_escalation(
    authorizer: RoleAuthorizer,
    api: Access,
    context: RequestContext,
    resource: GroupVersionResource,
    new: JsonObject,
    old: JsonObject | None,
) -> None:
    """Raise Forbidden if a role or binding grants permissions that the user of the request does not hold."""
    if resource.group != GROUP or MASTERS in context.user.groups:
        return
    if old is not None and only_collected_fields_differ(new, old):
        return
    check = _EscalationCheck(authorizer, api, context, resource, meta(new).get("name", ""))
    if resource.resource in _ROLES:
        check.role(new, old)
    elif resource.resource in _BINDINGS:
        check.binding(new)


class _EscalationCheck:
    def __init__(
        self,
        authorizer: RoleAuthorizer,
        api: Access,
        context: RequestContext,
        resource: GroupVersionResource,
        name: str,
    ) -> None:
        self._authorizer = authorizer
        self._api = api
        self._context = context
        self._resource = resource
        self._name = name

    def role(self, new: JsonObject, old: JsonObject | None) -> None:
        info = self._context.info
        if self._may("escalate", GROUP, self._resource.resource, info.name):
            return
        self._check_held(items(new, "rules"))
        if (_aggregates(new) or _aggregates(old or {})) and self._missing(_FULL_AUTHORITY):
            raise self._forbidden("must have cluster-admin privileges to use the aggregationRule")

    def binding(self, new: JsonObject) -> None:
        reference = section(new, "roleRef")
        kind, name = reference.get("kind", ""), reference.get("name", "")
        plural = _ROLE_RESOURCES.get(kind)
        if plural is None:
            raise StatusError.unknown(f'unsupported role reference kind: "{kind}"')
        if self._may("bind", reference.get("apiGroup", ""), plural, name):
            return
        namespace = self._context.info.namespace if kind == "Role" else ""
        role = self._api.find(GROUP, plural, namespace, name)
        if role is None:
            raise StatusError.not_found(GROUP, self._resource.resource, name)
        self._check_held(items(role, "rules"))

    def _may(self, verb: str, group: str, resource: str, name: str) -> bool:
        namespace = self._context.info.namespace
        attributes = AuthorizationAttributes(verb, group, "*", resource, "", namespace, name)
        return self._authorizer.may(self._context.user, attributes)

    def _missing(self, rules: Sequence[RoleRule]) -> list[RoleRule]:
        held = self._authorizer.rules(self._context.user, self._context.info.namespace)
        return compact(uncovered(held, rules))

    def _check_held(self, rules: Sequence[RoleRule]) -> None:
        if missing := self._missing(rules):
            user = self._context.user
            groups = " ".join(f'"{group}"' for group in user.groups)
            listed = "\n".join(describe(rule) for rule in missing)
            raise self._forbidden(
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}'
            )

    def _forbidden(self, why: str) -> StatusError:
        return StatusError.forbidden(GROUP, self._resource.resource, self._name, why)


def _aggregates(role: JsonObject) -> bool:
    return bool(items(section(role, "aggregationRule"), "clusterRoleSelectors"))


def only_collected_fields_differ(new: JsonObject, old: JsonObject) -> bool:
    """Return True if an update changes nothing but what the garbage collector changes."""
    before, after = (
        {
            **obj,
            "metadata": {name: value for name, value in meta(obj).items() if name not in _COLLECTED_FIELDS},
        }
        for obj in (old, new)
    )
    return encode_sorted(before) == encode_sorted(after)
