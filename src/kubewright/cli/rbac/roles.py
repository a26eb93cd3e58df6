"""Missing and unused rules of hand-written roles: pure functions on recorded permissions of a user."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from kubewright.api import KubewrightError
from kubewright.devserver import AuthorizationAttributes, KubernetesRelease
from kubewright.devserver.auth.rules import RoleRule, allows
from kubewright.envtest.recording import UserAccess

GROUP = "rbac.authorization.k8s.io"
AUTHENTICATED = "system:authenticated"
READING = ("get", "list", "watch")
"""Granting all three is usual where a program needs one or two of them, so they are unused only together."""
_ESCALATING = frozenset({"roles", "clusterroles", "rolebindings", "clusterrolebindings"})
_WRITING = frozenset({"create", "update", "patch"})


class RoleError(KubewrightError):
    """A file that contains no role, or a recording that does not say which user is meant."""


@dataclass(frozen=True, slots=True)
class GrantedRole:
    """A Role or ClusterRole; a Role grants in its namespace only."""

    kind: str
    name: str
    namespace: str
    rules: Sequence[RoleRule]

    def grants(self, attributes: AuthorizationAttributes) -> bool:
        """Return True if the role, once bound, allows a request."""
        if self.kind == "Role" and (not attributes.resource or attributes.namespace != self.namespace):
            return False
        return any(allows(rule, attributes) for rule in self.rules)


class UnusedRight(NamedTuple):
    """A permission that a rule grants and no request used."""

    verb: str
    group: str
    resource: str
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class RoleVerification:
    """The result of comparing roles with recorded permissions."""

    missing: Sequence[UserAccess]
    unused: Sequence[UnusedRight]
    unchecked: Sequence[UserAccess]
    """Writes of roles and bindings by a member of system:masters: the server does not check escalation for these."""
    used: int

    @property
    def proved(self) -> bool:
        """Return True if no rule is missing or unused, and everything was checked."""
        return not (self.missing or self.unused or self.unchecked)


class _RoleMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _RoleDocument(msgspec.Struct, rename="camel"):
    kind: str
    metadata: _RoleMeta = msgspec.field(default_factory=_RoleMeta)
    rules: list[dict[str, list[str]]] | None = None
    aggregation_rule: dict[str, Any] | None = None


def read_roles(documents: Iterable[Any], namespace: str) -> list[GrantedRole]:
    """Return the roles among documents; a Role without a namespace is in the given one."""
    return [_read_role(document, namespace) for document in documents if _is_role(document)]


def _is_role(document: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(document, dict) and cast("dict[str, Any]", document).get("kind") in (
        "Role",
        "ClusterRole",
    )


def _read_role(document: dict[str, Any], namespace: str) -> GrantedRole:
    try:
        role = msgspec.convert(document, _RoleDocument)
    except msgspec.ValidationError as error:
        raise RoleError(f"{document['kind']}: {error}") from None
    if role.aggregation_rule:
        raise RoleError(
            f"ClusterRole {role.metadata.name} is aggregated from others: pass those with --role instead"
        )
    where = "" if role.kind == "ClusterRole" else role.metadata.namespace or namespace
    return GrantedRole(role.kind, role.metadata.name, where, role.rules or ())


def choose_user(accesses: Sequence[UserAccess], user: str | None) -> str:
    """Return the user to verify: the given one, or the only one that is not a member of system:masters."""
    users = {access.user for access in accesses}
    if user is not None:
        if user not in users:
            raise RoleError(f"no recorded request of user {user!r}: recorded are {', '.join(sorted(users))}")
        return user
    users.discard("system:anonymous")
    candidates = users - {access.user for access in accesses if access.unrestricted} or users
    if len(candidates) != 1:
        listed = ", ".join(sorted(candidates)) or "none"
        raise RoleError(f"choose the operator's user with --user: recorded are {listed}")
    return candidates.pop()


def compare_roles(roles: Sequence[GrantedRole], accesses: Iterable[UserAccess]) -> RoleVerification:
    """Compare roles with the recorded permissions of one user."""
    recorded = list(accesses)
    everyone = [GrantedRole("ClusterRole", "", "", rules) for rules in _rules_of_everyone()]
    missing = [
        access
        for access in recorded
        if not any(role.grants(access.attributes) for role in (*roles, *everyone))
    ]
    unused, used = list[UnusedRight](), 0
    for role in roles:
        for right, rule in _rights(role):
            single = GrantedRole(role.kind, role.name, role.namespace, [rule])
            if any(single.grants(access.attributes) for access in recorded):
                used += 1
            else:
                unused.append(right)
    unchecked = [
        access
        for access in recorded
        if access.unrestricted
        and (access.group, access.verb in _WRITING) == (GROUP, True)
        and access.resource in _ESCALATING
    ]
    return RoleVerification(_without_names(missing), sorted(set(unused)), _without_names(unchecked), used)


def role_report(user: str, result: RoleVerification, output: str) -> str:
    """Return the result as text or JSON."""
    if output == "json":
        document = {
            "user": user,
            "proved": result.proved,
            "used": result.used,
            "missing": [_shown_access(access) for access in result.missing],
            "unused": [right._asdict() for right in result.unused],
            "unchecked": [_shown_access(access) for access in result.unchecked],
        }
        return json.dumps(document, indent=2)
    lines = [f"missing    {_text(access)}: no role grants it" for access in result.missing]
    lines += [
        f"unused     {right.verb} {right.resource}{f' of {right.group}' if right.group else ''}"
        f"{f' {right.name!r}' if right.name else ''}: {right.role} grants it, but no recorded request used it"
        for right in result.unused
    ]
    lines += [
        f"unchecked  {_text(access)}: {user} is a member of system:masters, for which escalation is not checked: "
        "bind the roles to a user without that group"
        for access in result.unchecked
    ]
    if result.proved:
        lines.append(f"{user}: all {result.used} rights were used and none is missing")
    return "\n".join(lines)


def _text(access: UserAccess) -> str:
    if not access.resource:
        return f"{access.verb} {access.path}"
    resource = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    group = f" of {access.group}" if access.group else ""
    where = (
        f" in namespace {access.namespace}"
        if access.namespace
        else " in all namespaces or at the cluster scope"
    )
    return f"{access.verb} {resource}{group}{where}"


def _shown_access(access: UserAccess) -> dict[str, str]:
    names = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    return {name: getattr(access, name) for name in names}


def _rights(role: GrantedRole) -> Iterator[tuple[UnusedRight, RoleRule]]:
    """Yield each permission of a role with a rule that grants only it."""
    shown = f"{role.kind} {role.name}"
    for rule in role.rules:
        for verbs in _verbs(rule.get("verbs") or ()):
            for path in rule.get("nonResourceURLs") or ():
                yield UnusedRight(verbs[0], "", path, "", shown), {"verbs": verbs, "nonResourceURLs": [path]}
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        single: dict[str, Any] = {
                            "verbs": verbs,
                            "apiGroups": [group],
                            "resources": [resource],
                        }
                        if name:
                            single["resourceNames"] = [name]
                        shown_verb = "/".join(verbs)
                        yield UnusedRight(shown_verb, group, resource, name, shown), single


def _verbs(verbs: Sequence[str]) -> Iterator[list[str]]:
    """Yield the verbs of a rule one by one, those that read together."""
    if reading := [verb for verb in READING if verb in verbs]:
        yield reading
    yield from ([verb] for verb in verbs if verb not in READING)


def _rules_of_everyone() -> Iterator[Sequence[RoleRule]]:
    """Yield the rules that every cluster grants to all authenticated users, such as discovery."""
    objects = KubernetesRelease.find().bootstrap
    bound = {
        obj["roleRef"]["name"]
        for obj in objects
        if obj["kind"] == "ClusterRoleBinding"
        for subject in obj.get("subjects") or ()
        if (subject["kind"], subject["name"]) == ("Group", AUTHENTICATED)
    }
    for obj in objects:
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] in bound:
            yield obj.get("rules") or ()


def _without_names(accesses: Iterable[UserAccess]) -> list[UserAccess]:
    """Return one access for each missing rule: names of objects do not matter, but one is kept as an example."""
    first: dict[tuple[str, ...], UserAccess] = {}
    for access in accesses:
        key = (access.verb, access.group, access.resource, access.subresource, access.namespace, access.path)
        first.setdefault(key, access)
    return [first[key] for key in sorted(first)]
