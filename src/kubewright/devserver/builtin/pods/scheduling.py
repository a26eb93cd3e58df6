"""Where Pods may run: affinity, tolerations and topology spread."""

from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.rules import between, named, required, rules
from kubewright.devserver.objects import JsonObject, items

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_INVALID_OPERATOR = "not a valid selector operator"
_POLICIES = ("Honor", "Ignore")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def check_affinity(affinity: JsonObject | None, path: str) -> list[FieldError]:
    """Check node affinity, Pod affinity and Pod anti-affinity."""
    return _AFFINITY(path, affinity) if affinity else []


def _node_operator(path: str, item: JsonObject) -> list[FieldError]:
    if item.get("operator") not in ("Gt", "Lt"):
        return check.selector_values(path, item)
    if len(items(item, "values")) == 1:
        return []
    text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
    return [problems.required(f"{path}.values", text)]


def _node_field(path: str, item: JsonObject) -> Iterator[FieldError]:
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


def _pod_term(path: str, given: JsonObject | None) -> Iterator[FieldError]:
    term = given or {}
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


_WEIGHT = between(1, 100, "must be in the range 1-100")
_EXPRESSIONS = (
    ("matchExpressions[]", _node_operator),
    ("matchExpressions[].key", named(names.qualified_name, empty=True)),
)
NODE_SELECTOR = rules(
    ("nodeSelectorTerms", required("must have at least one node selector term")),
    (
        "nodeSelectorTerms[]",
        rules(
            *_EXPRESSIONS,
            ("matchExpressions[].values[]", named(names.label_value)),
            ("matchFields[]", _node_field),
        ),
    ),
)
_POD_AFFINITY = rules(
    (f"{_REQUIRED}[]", _pod_term),
    (f"{_PREFERRED}[].weight", _WEIGHT),
    (f"{_PREFERRED}[].podAffinityTerm", _pod_term),
)
_AFFINITY = rules(
    (f"nodeAffinity?.{_REQUIRED}?", NODE_SELECTOR),
    (f"nodeAffinity?.{_PREFERRED}[].weight", _WEIGHT),
    (f"nodeAffinity?.{_PREFERRED}[].preference", rules(*_EXPRESSIONS, ("matchFields[]", _node_field))),
    ("podAffinity?", _POD_AFFINITY),
    ("podAntiAffinity?", _POD_AFFINITY),
)


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
            yield from check.optional(f"{where}.{field}", item.get(field), _POLICIES)
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
