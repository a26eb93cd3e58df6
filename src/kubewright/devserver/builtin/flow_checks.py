"""What is refused in flow schemas and priority levels."""

import math
from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.go_structs import unsupported_struct
from kubewright.devserver.objects import JsonObject, items, section

EXEMPT = "exempt"
_LAST = 10000
_MOST_QUEUES = 10_000_000
_MOST_BITS = 60
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


def check_schema(obj: JsonObject) -> list[FieldError]:
    """Check which requests a flow schema is about, and where it sends them."""
    spec: JsonObject = section(obj, "spec")
    errors = [*_precedence(spec.get("matchingPrecedence", 0), obj["metadata"].get("name", ""))]
    method: JsonObject | None = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        shown, text = {"Type": method.get("type", "")}, 'supported values: "ByNamespace", "ByUser"'
        errors.append(unsupported_struct("spec.distinguisherMethod.type", shown, text))
    level, path = (
        section(spec, "priorityLevelConfiguration").get("name", ""),
        "spec.priorityLevelConfiguration.name",
    )
    if level:
        errors += check.named(path, level, names.dns1123_subdomain(level))
    else:
        errors.append(problems.required(path, "must reference a priority level"))
    for index, rule in enumerate(items(spec, "rules")):
        errors += _rule(rule, f"spec.rules[{index}]")
    return [*errors, *check_conditions(obj)]


def check_conditions(obj: JsonObject) -> Iterator[FieldError]:
    """Check that each condition says what it is about, once."""
    conditions: Sequence[JsonObject] = items(section(obj, "status"), "conditions")
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            yield problems.duplicate(path, kind)
        seen.add(kind)
        if not kind:
            yield problems.required(path)


def _precedence(number: int, name: str) -> Iterator[FieldError]:
    path = "spec.matchingPrecedence"
    if number <= 0:
        yield problems.invalid(path, number, "must be a positive value")
    if number > _LAST:
        yield problems.invalid(path, number, f"must not be greater than {_LAST}")
    if number == 1 and name != EXEMPT:
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield problems.invalid(path, number, text)


def _rule(rule: JsonObject, path: str) -> Iterator[FieldError]:
    subjects: Sequence[JsonObject] = items(rule, "subjects")
    if not subjects:
        yield problems.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        yield from _subject(subject, f"{path}.subjects[{index}]")
    resources, others = items(rule, "resourceRules"), items(rule, "nonResourceRules")
    if not resources and not others:
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield problems.required(path, text)
    for index, item in enumerate(resources):
        yield from _resource_rule(item, f"{path}.resourceRules[{index}]")
    for index, item in enumerate(others):
        yield from _path_rule(item, f"{path}.nonResourceRules[{index}]")


def _subject(subject: JsonObject, path: str) -> Iterator[FieldError]:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield problems.not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    field = _SUBJECTS[kind]
    given: JsonObject | None = subject.get(field)
    if given is None:
        yield problems.required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'")
    else:
        yield from _identity(given, f"{path}.{field}", account=kind == "ServiceAccount")
    for other, name in _SUBJECTS.items():
        if other != kind and subject.get(name) is not None:
            text = f"{name} is forbidden when subject kind is not '{other}'"
            yield problems.forbidden(f"{path}.{name}", text)


def _identity(subject: JsonObject, path: str, *, account: bool) -> Iterator[FieldError]:
    name, namespace = subject.get("name", ""), subject.get("namespace", "")
    if not name:
        yield problems.required(f"{path}.name")
    if not account:
        return
    if name and name != "*":
        yield from check.named(f"{path}.name", name, names.dns1123_subdomain(name))
    if namespace:
        yield from check.named(f"{path}.namespace", namespace, names.dns1123_label(namespace))
    else:
        yield problems.required(f"{path}.namespace", "must specify namespace for service account")


def _verbs(rule: JsonObject, path: str) -> Iterator[FieldError]:
    verbs: Sequence[str] = items(rule, "verbs")
    if not verbs:
        yield problems.required(f"{path}.verbs", "verbs must contain at least one value")
    elif "*" in verbs:
        yield from _alone(verbs, f"{path}.verbs", "verbs")
    elif not set(verbs) <= set(_VERBS):
        yield problems.not_supported(f"{path}.verbs", verbs, _VERBS)


def _alone(values: Sequence[str], path: str, title: str) -> Iterator[FieldError]:
    if len(values) > 1 and "*" in values:
        yield problems.invalid(path, values, f"if '*' is present, must not specify other {title}")


def _resource_rule(rule: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _verbs(rule, path)
    for field, one, all_of in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        values: Sequence[str] = items(rule, field)
        if not values:
            yield problems.required(f"{path}.{field}", f"resource rules must supply at least one {one}")
        yield from _alone(values, f"{path}.{field}", all_of)
    namespaces: Sequence[str] = items(rule, "namespaces")
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        yield problems.required(f"{path}.namespaces", text)
    elif "*" in namespaces:
        yield from _alone(namespaces, f"{path}.namespaces", "namespaces")
    else:
        for index, name in enumerate(namespaces):
            for text in names.dns1123_label(name):
                why = f"each member of this list must be '*' or a DNS-1123 label; {text}"
                yield problems.invalid(f"{path}.namespaces[{index}]", name, why)


def _path_rule(rule: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _verbs(rule, path)
    paths, where = items(rule, "nonResourceURLs"), f"{path}.nonResourceURLs"
    if not paths:
        yield problems.required(where, "nonResourceURLs must contain at least one value")
    elif "*" in paths:
        yield from _alone(paths, where, "non-resource URLs")
    else:
        for index, text in enumerate(paths):
            if trouble := _path_trouble(text):
                yield problems.invalid(f"{where}[{index}]", text, trouble)


def _path_trouble(text: str) -> str:
    if not text:
        return "must not be empty"
    if not text.startswith("/"):
        return "must start with slash"
    if " " in text:
        return "must not contain white-space"
    if "//" in text:
        return "must not contain double slash"
    if "*" in text and (text.count("*") > 1 or not text.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def check_level(obj: JsonObject) -> list[FieldError]:
    """Check how a priority level shares the server."""
    spec, name = section(obj, "spec"), obj["metadata"].get("name", "")
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    errors: list[FieldError] = []
    if (name == EXEMPT) != (kind == "Exempt"):
        text = "must be 'Exempt' if and only if `name` is 'exempt'"
        errors.append(problems.invalid("spec.type", kind, text))
    if kind == "Exempt":
        if limited is not None:
            errors.append(problems.forbidden("spec.limited", "must be nil if the type is not Limited"))
        if exempt is not None:
            errors += _shares(exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            errors.append(problems.forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            errors.append(problems.required("spec.limited", "must not be empty when type is Limited"))
        else:
            errors += _limited(limited, "spec.limited")
    else:
        errors = check.choice("spec.type", kind, ("Exempt", "Limited"))
    return [*errors, *check_conditions(obj)]


def _shares(part: JsonObject, path: str) -> Iterator[FieldError]:
    shares, lent = part.get("nominalConcurrencyShares"), part.get("lendablePercent")
    if shares is not None and shares < 0:
        yield problems.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if lent is not None and not 0 <= lent <= 100:
        yield problems.invalid(f"{path}.lendablePercent", lent, "must be between 0 and 100, inclusive")


def _limited(part: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _shares(part, path)
    response, borrowed = section(part, "limitResponse"), part.get("borrowingLimitPercent")
    kind, where = response.get("type", ""), f"{path}.limitResponse"
    queuing: JsonObject | None = response.get("queuing")
    if kind == "Reject" and queuing is not None:
        text = "must be nil if limited.limitResponse.type is not Limited"
        yield problems.forbidden(f"{where}.queuing", text)
    elif kind == "Queue" and queuing is not None:
        yield from _queues(queuing, f"{where}.queuing")
    elif kind == "Queue":
        text = "must not be empty if limited.limitResponse.type is Limited"
        yield problems.required(f"{where}.queuing", text)
    elif kind != "Reject":
        yield from check.choice(f"{where}.type", kind, ("Queue", "Reject"))
    if borrowed is not None and borrowed < 0:
        text = "if specified, must be a non-negative integer"
        yield problems.invalid(f"{path}.borrowingLimitPercent", borrowed, text)


def _queues(queuing: JsonObject, path: str) -> Iterator[FieldError]:
    length, queues, hand = (queuing[name] for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield problems.invalid(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield problems.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield problems.invalid(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    text = ""
    if hand <= 0:
        text = "must be positive"
    elif hand > queues:
        text = f"should not be greater than queues ({queues})"
    elif _bits(queues, hand) > _MOST_BITS:
        text = (
            f"required entropy bits of deckSize {queues} and handSize {hand} "
            f"should not be greater than {_MOST_BITS}"
        )
    if text:
        yield problems.invalid(f"{path}.handSize", hand, text)


def _bits(deck: int, hand: int) -> int:
    """Tell how many random bits it takes to deal a hand."""
    return math.ceil(math.log2(deck) * hand)
