"""Roles and their bindings."""

from collections.abc import Callable, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, Cell, cell, printed
from kubewright.devserver.objects import JsonObject, items
from kubewright.devserver.strategy import Strategy, TableColumn

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def _check_rules(rules: Sequence[JsonObject], path: str, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(rules):
        where = f"{path}[{index}]"
        if not rule.get("verbs"):
            errors.append(problems.required(f"{where}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                errors.append(problems.invalid(f"{where}.nonResourceURLs", urls, text))
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(problems.invalid(f"{where}.nonResourceURLs", urls, text))
            continue
        if not rule.get("apiGroups"):
            text = "resource rules must supply at least one api group"
            errors.append(problems.required(f"{where}.apiGroups", text))
        if not rule.get("resources"):
            text = "resource rules must supply at least one resource"
            errors.append(problems.required(f"{where}.resources", text))
    return errors


def _validate_role(role: JsonObject) -> list[FieldError]:
    return _check_rules(items(role, "rules"), "rules", namespaced=True)


def _validate_cluster_role(role: JsonObject) -> list[FieldError]:
    errors = _check_rules(items(role, "rules"), "rules", namespaced=False)
    aggregation: JsonObject | None = role.get("aggregationRule")
    if aggregation is None:
        return errors
    selectors: Sequence[JsonObject] = items(aggregation, "clusterRoleSelectors")
    path = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(problems.required(path, text))
    for index, selector in enumerate(selectors):
        if wrong := check.label_selector(f"{path}[{index}]", selector):
            errors += [*wrong, problems.invalid(f"{path}[{index}]", None, "invalid label selector.")]
    return errors


def _default_binding(binding: JsonObject) -> None:
    reference: JsonObject = binding.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or GROUP
    for subject in items(binding, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def _check_binding(binding: JsonObject, kinds: Sequence[str], *, namespaced: bool) -> list[FieldError]:
    reference: JsonObject = binding["roleRef"]
    errors = check.one_of("roleRef.apiGroup", reference.get("apiGroup"), (GROUP,))
    errors += check.one_of("roleRef.kind", reference.get("kind", ""), kinds)
    name = reference.get("name", "")
    if not name:
        errors.append(problems.required("roleRef.name"))
    else:
        errors += check.named("roleRef.name", name, names.path_segment(name))
    for index, subject in enumerate(items(binding, "subjects")):
        errors += _check_subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return errors


def _check_subject(subject: JsonObject, path: str, *, namespaced: bool) -> list[FieldError]:
    kind, name, group = (subject.get(part, "") for part in ("kind", "name", "apiGroup"))
    errors: list[FieldError] = [] if name else [problems.required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += check.named(f"{path}.name", name, names.dns1123_subdomain(name))
        errors += check.one_of(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            errors.append(problems.required(f"{path}.namespace"))
    elif kind in _SUBJECTS:
        errors += check.one_of(f"{path}.apiGroup", group, (GROUP,))
    else:
        errors.append(problems.not_supported(f"{path}.kind", kind, _SUBJECTS))
    return errors


def _validate_role_binding(binding: JsonObject) -> list[FieldError]:
    return _check_binding(binding, ("Role", "ClusterRole"), namespaced=True)


def _validate_cluster_role_binding(binding: JsonObject) -> list[FieldError]:
    return _check_binding(binding, ("ClusterRole",), namespaced=False)


def _same_role(
    validate: Callable[[JsonObject], list[FieldError]],
) -> Callable[[JsonObject, JsonObject], list[FieldError]]:
    def run(new: JsonObject, old: JsonObject) -> list[FieldError]:
        errors = validate(new)
        after = new["roleRef"]
        if after != old["roleRef"]:
            shown = {"APIGroup": after.get("apiGroup"), "Kind": after.get("kind"), "Name": after.get("name")}
            errors.append(check.invalid_struct("roleRef", shown, "cannot change roleRef"))
        return errors

    return run


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


def _role_strategy(validate: Callable[[JsonObject], list[FieldError]]) -> Strategy:
    created = Cell(
        TableColumn("Created At", "date"), lambda role, now: role["metadata"].get("creationTimestamp")
    )
    return Strategy(
        validate=validate,
        validate_update=lambda new, old: validate(new),
        name_check=names.path_segment,
        allow_create_on_update=True,
        **printed(NAME, created),
    )


def _binding_strategy(validate: Callable[[JsonObject], list[FieldError]]) -> Strategy:
    return Strategy(
        default=_default_binding,
        validate=validate,
        validate_update=_same_role(validate),
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
    (GROUP, "Role"): _role_strategy(_validate_role),
    (GROUP, "ClusterRole"): _role_strategy(_validate_cluster_role),
    (GROUP, "RoleBinding"): _binding_strategy(_validate_role_binding),
    (GROUP, "ClusterRoleBinding"): _binding_strategy(_validate_cluster_role_binding),
}
