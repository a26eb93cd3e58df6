"""Where Pods may run: affinity, tolerations and topology spread."""

from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, items

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_INVALID_OPERATOR = "not a valid selector operator"
_POLICIES = ("Honor", "Ignore")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def check_affinity(affinity: JsonObject | None, path: str) -> Iterator[FieldError]:
    """Check node affinity, Pod affinity and Pod anti-affinity."""
    if not affinity:
        return
    if (nodes := affinity.get("nodeAffinity")) is not None:
        yield from _node_affinity(nodes, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if (pods := affinity.get(name)) is not None:
            yield from _pod_affinity(pods, f"{path}.{name}")


def _node_affinity(nodes: JsonObject, path: str) -> Iterator[FieldError]:
    if (required := nodes.get(_REQUIRED)) is not None:
        yield from check_node_selector(required, f"{path}.{_REQUIRED}")
    for index, term in enumerate(items(nodes, _PREFERRED)):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(term, where)
        yield from _node_term(term.get("preference") or {}, f"{where}.preference", values=False)


def check_node_selector(selector: JsonObject, path: str) -> Iterator[FieldError]:
    """Check a node selector."""
    terms: Sequence[JsonObject] = items(selector, "nodeSelectorTerms")
    if not terms:
        yield problems.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{path}.nodeSelectorTerms[{index}]", values=True)


def _node_term(term: JsonObject, path: str, *, values: bool) -> Iterator[FieldError]:
    for index, item in enumerate(items(term, "matchExpressions")):
        yield from _node_expression(item, f"{path}.matchExpressions[{index}]", values=values)
    for index, item in enumerate(items(term, "matchFields")):
        yield from _node_field(item, f"{path}.matchFields[{index}]")


def _node_expression(item: JsonObject, path: str, *, values: bool) -> Iterator[FieldError]:
    operator, given = item.get("operator", ""), items(item, "values")
    if operator in ("In", "NotIn"):
        if not given:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            yield problems.required(f"{path}.values", text)
    elif operator in ("Exists", "DoesNotExist"):
        if given:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield problems.forbidden(f"{path}.values", text)
    elif operator in ("Gt", "Lt"):
        if len(given) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield problems.required(f"{path}.values", text)
    else:
        yield problems.invalid(f"{path}.operator", operator, _INVALID_OPERATOR)
    key = item.get("key", "")
    yield from check.named(f"{path}.key", key, names.qualified_name(key))
    if values:
        for index, value in enumerate(given):
            yield from check.named(f"{path}.values[{index}]", value, names.label_value(value))


def _node_field(item: JsonObject, path: str) -> Iterator[FieldError]:
    operator, given, key = item.get("operator", ""), items(item, "values"), item.get("key", "")
    if operator not in ("In", "NotIn"):
        yield problems.invalid(f"{path}.operator", operator, _INVALID_OPERATOR)
    elif len(given) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield problems.required(f"{path}.values", text)
    if key != "metadata.name":
        yield problems.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(given):
        yield from check.named(f"{path}.values[{index}]", value, names.dns1123_subdomain(value))


def _weight(term: JsonObject, path: str) -> Iterator[FieldError]:
    weight = term.get("weight", 0)
    if not 0 < weight <= 100:
        yield problems.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _pod_affinity(pods: JsonObject, path: str) -> Iterator[FieldError]:
    for index, term in enumerate(items(pods, _REQUIRED)):
        yield from _pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, item in enumerate(items(pods, _PREFERRED)):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(item, where)
        yield from _pod_term(item.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _pod_term(term: JsonObject, path: str) -> Iterator[FieldError]:
    selector: JsonObject | None = term.get("labelSelector")
    yield from check.label_selector(f"{path}.labelSelector", selector)
    yield from check.label_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for name in items(term, "namespaces"):
        yield from check.named(f"{path}.namespace", name, names.dns1123_label(name))
    matched, mismatched = items(term, "matchLabelKeys"), items(term, "mismatchLabelKeys")
    yield from _label_keys(matched, mismatched, selector, path)
    key = term.get("topologyKey", "")
    if not key:
        yield problems.required(f"{path}.topologyKey", "can not be empty")
    yield from check.named(f"{path}.topologyKey", key, names.qualified_name(key))


def _label_keys(
    matched: Sequence[str], mismatched: Sequence[str], selector: JsonObject | None, path: str
) -> Iterator[FieldError]:
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            text = "must not be specified when labelSelector is not set"
            yield problems.forbidden(f"{path}.{field}", text)
        for index, key in enumerate(keys if selector is not None else ()):
            yield from check.named(f"{path}.{field}[{index}]", key, names.qualified_name(key))
    # The server adds an expression for each key, so only a second one comes from the client.
    seen = set((selector or {}).get("matchLabels") or ())
    for item in items(selector or {}, "matchExpressions"):
        key = item.get("key", "")
        if key in matched and key in seen:
            text = "exists in both matchLabelKeys and labelSelector"
            yield problems.invalid(f"{path}[{len(matched) - 1 - matched[::-1].index(key)}]", key, text)
        seen.add(key)
    for index, key in enumerate(matched):
        if key in mismatched:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield problems.invalid(f"{path}.matchLabelKeys[{index}]", key, text)


def check_spread(constraints: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check topology spread constraints."""
    for index, item in enumerate(constraints):
        where, selector = f"{path}[{index}]", item.get("labelSelector")
        if item.get("maxSkew", 0) <= 0:
            yield problems.invalid(f"{where}.maxSkew", item.get("maxSkew", 0), check.NOT_POSITIVE)
        key, action = item.get("topologyKey", ""), item.get("whenUnsatisfiable", "")
        if not key:
            yield problems.required(f"{where}.topologyKey", "can not be empty")
        yield from check.one_of(f"{where}.whenUnsatisfiable", action, _ACTIONS)
        for other in constraints[index + 1 :]:
            if (key, action) == (other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")):
                pair = "{topologyKey, whenUnsatisfiable}"
                yield problems.duplicate(f"{where}.{pair}", f"{{{key}, {action}}}")
                break
        yield from _min_domains(item.get("minDomains"), action, f"{where}.minDomains")
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if (policy := item.get(field)) is not None:
                yield from check.one_of(f"{where}.{field}", policy, _POLICIES)
        yield from _label_keys(items(item, "matchLabelKeys"), (), selector, where)
        yield from check.label_selector(f"{where}.labelSelector", selector)


def _min_domains(count: int | None, action: str, path: str) -> Iterator[FieldError]:
    if count is None:
        return
    if count <= 0:
        yield problems.invalid(path, count, check.NOT_POSITIVE)
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield problems.invalid(path, count, text)


def check_topologies(terms: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check the allowed topologies of a storage class."""
    # The real server starts with an empty term for each given one, to which it compares, too.
    seen: list[dict[str, frozenset[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        where, found = f"{path}[{index}].matchLabelExpressions", dict[str, frozenset[str]]()
        for number, item in enumerate(items(term, "matchLabelExpressions")):
            key, values = item.get("key", ""), items(item, "values")
            if not values:
                yield problems.required(f"{where}[{number}].values")
            for position, value in enumerate(values):
                if value in values[:position]:
                    yield problems.duplicate(f"{where}[{number}].values[{position}]", value)
            yield from check.named(f"{where}[{number}].key", key, names.qualified_name(key))
            if key in found:
                yield problems.duplicate(f"{where}[{number}].key", key)
            found[key] = frozenset(values)
        for other in seen:
            if found == other:
                yield problems.duplicate(where, "")
        seen.append(found)


def check_tolerations(tolerations: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check tolerations."""
    for index, item in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = item.get("key", ""), item.get("operator", "")
        if key:
            yield from check.named(f"{where}.key", key, names.qualified_name(key))
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield problems.invalid(f"{where}.operator", operator, text)
        if item.get("tolerationSeconds") is not None and item.get("effect") != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield problems.invalid(f"{where}.effect", item.get("effect", ""), text)
        yield from _tolerated_value(operator, item.get("value", ""), f"{where}.operator")
        if effect := item.get("effect"):
            yield from check.one_of(f"{where}.effect", effect, TAINT_EFFECTS)


def _tolerated_value(operator: str, value: str, path: str) -> Iterator[FieldError]:
    if operator in ("", "Equal"):
        if reasons := names.label_value(value):
            yield problems.invalid(path, value, ";".join(reasons))
    elif operator in ("Lt", "Gt"):
        yield problems.not_supported(path, operator, ("Equal", "Exists", "Lt", "Gt"))
    elif operator != "Exists":
        yield problems.not_supported(path, operator, ("Equal", "Exists"))
    elif value:
        yield problems.invalid(path, value, "value must be empty when `operator` is 'Exists'")
