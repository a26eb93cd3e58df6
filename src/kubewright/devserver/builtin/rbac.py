"""Roles and their bindings."""

from collections.abc import Callable, Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, Cell, cell, printed
from kubewright.devserver.builtin.rules import (
    FieldRule,
    Rules,
    changes,
    defaults,
    named,
    one_of,
    required,
    rules,
    unset,
    validated,
)
from kubewright.devserver.objects import JsonObject, items
from kubewright.devserver.strategy import Strategy, TableColumn

GROUP = "rbac.authorization.k8s.io"


def _no_resources(path: str, rule: JsonObject) -> Iterator[FieldError]:
    if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
        text = "rules cannot apply to both regular resources and non-resource URLs"
        yield problems.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], text)


def _aggregated(path: str, selector: JsonObject) -> Iterator[FieldError]:
    if wrong := check.label_selector(path, selector):
        yield from (*wrong, problems.invalid(path, None, "invalid label selector."))


def _rule(*urls: FieldRule) -> Rules:
    """Make the rules of a policy rule; those for its non-resource URLs differ between the kinds of roles."""
    return rules(
        ("{nonResourceURLs}.nonResourceURLs", *urls),
        ("{nonResourceURLs}", _no_resources),
        ("{!nonResourceURLs}.apiGroups", required("resource rules must supply at least one api group")),
        ("{!nonResourceURLs}.resources", required("resource rules must supply at least one resource")),
    )


_VERBS = rules(("rules[].verbs", required()))
_ROLE = rules(
    ("rules[]", _rule(unset("namespaced rules cannot apply to non-resource URLs"))),
    # Declared.
    ("", _VERBS),
)
_CLUSTER_ROLE = rules(
    ("rules[]", _rule()),
    (
        "aggregationRule?.clusterRoleSelectors",
        required("at least one clusterRoleSelector required if aggregationRule is non-nil"),
    ),
    ("aggregationRule?.clusterRoleSelectors[]", _aggregated),
    # Declared.
    ("", _VERBS),
)


def _binding(*roles: str, namespace: Sequence[FieldRule] = (), named_role: bool = False) -> Rules:
    """Make the rules of a binding to roles of these kinds; `namespace` are those for the namespace of a ServiceAccount.

    `named_role` adds the rule that the role has a name: for a new binding it is declared, so it follows the others.
    """
    subject = rules(
        ("{kind=ServiceAccount}.name", named(names.dns1123_subdomain)),
        ("{kind=ServiceAccount}.apiGroup", one_of("")),
        ("{kind=ServiceAccount}.namespace", *namespace),
        ("{kind=User|Group}.apiGroup", one_of(GROUP)),
        ("kind", one_of("ServiceAccount", "User", "Group")),
    )
    return rules(
        ("roleRef.apiGroup", one_of(GROUP)),
        ("roleRef.kind", one_of(*roles)),
        ("roleRef.name", named(names.path_segment, required=named_role)),
        ("subjects[]", subject),
    )


def _same_role(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    after = new["roleRef"]
    if after != old["roleRef"]:
        shown = check.struct(after, "apiGroup kind name", None)
        yield check.invalid_struct("roleRef", shown, check.IMMUTABLE)


def _role(binding: JsonObject) -> str:
    return f"{binding['roleRef'].get('kind')}/{binding['roleRef'].get('name')}"


def _subjects(kind: str) -> Callable[[JsonObject], str]:
    def read(binding: JsonObject) -> str:
        return ", ".join(
            f"{subject['namespace']}/{subject.get('name', '')}"
            if subject.get("namespace")
            else subject.get("name", "")
            for subject in items(binding, "subjects")
            if subject.get("kind", "") == kind
        )

    return read


def _role_strategy(checks: Rules) -> Strategy:
    created = Cell(
        TableColumn("Created At", "date"), lambda role, now: role["metadata"].get("creationTimestamp")
    )
    return Strategy(
        **validated(checks),
        name_check=names.path_segment,
        allow_create_on_update=True,
        **printed(NAME, created),
    )


# Declared.
_SUBJECTS = rules(("subjects[].name", required()))
_ROLE_NAME = rules(("roleRef.name", required()))


def _binding_strategy(*roles: str, namespace: Sequence[FieldRule] = ()) -> Strategy:
    created = rules(("", _binding(*roles, namespace=namespace)), ("", _SUBJECTS), ("", _ROLE_NAME))
    changed = _binding(*roles, namespace=namespace, named_role=True)
    return Strategy(
        default=defaults(("roleRef.apiGroup!", GROUP), ("subjects[kind=User|Group].apiGroup!", GROUP)),
        validate=created.validate,
        validate_update=changes(changed.validate_update, _same_role, _SUBJECTS.validate_update),
        name_check=names.path_segment,
        allow_create_on_update=True,
        **printed(
            NAME,
            cell("Role", _role),
            AGE,
            cell("Users", _subjects("User"), wide=True),
            cell("Groups", _subjects("Group"), wide=True),
            cell("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
        ),
    )


STRATEGIES = {
    (GROUP, "Role"): _role_strategy(_ROLE),
    (GROUP, "ClusterRole"): _role_strategy(_CLUSTER_ROLE),
    (GROUP, "RoleBinding"): _binding_strategy("Role", "ClusterRole"),
    (GROUP, "ClusterRoleBinding"): _binding_strategy("ClusterRole", namespace=[required()]),
}
