"""FlowSchemas and PriorityLevelConfigurations, which are stored and printed but do not queue requests."""

import math
from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, cell, printed
from kubewright.devserver.builtin.rules import (
    FieldRule,
    absent,
    at_least,
    at_most,
    between,
    defaults,
    named,
    one_of,
    required,
    rules,
    unique,
)
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy

GROUP = "flowcontrol.apiserver.k8s.io"
_EXEMPT = "exempt"
_MAX_QUEUES = 10_000_000
_MAX_ENTROPY_BITS = 60
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


def _first_precedence(path: str, schema: JsonObject) -> Iterator[FieldError]:
    if section(schema, "spec").get("matchingPrecedence") == 1 and schema["metadata"].get("name") != _EXEMPT:
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield problems.invalid("spec.matchingPrecedence", 1, text)


def _distinguisher(path: str, method: JsonObject) -> Iterator[FieldError]:
    if method.get("type") not in ("ByNamespace", "ByUser"):
        shown, text = {"Type": method.get("type", "")}, 'supported values: "ByNamespace", "ByUser"'
        yield check.unsupported_struct(f"{path}.type", shown, text)


def _subject(path: str, subject: JsonObject) -> Iterator[FieldError]:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield problems.not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    field = _SUBJECTS[kind]
    if subject.get(field) is None:
        yield problems.required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'")
    else:
        yield from (_SERVICE_ACCOUNT if kind == "ServiceAccount" else _NAMED)(
            f"{path}.{field}", subject[field]
        )
    for other, name in _SUBJECTS.items():
        if other != kind and subject.get(name) is not None:
            text = f"{name} is forbidden when subject kind is not '{other}'"
            yield problems.forbidden(f"{path}.{name}", text)


def _some_rule(path: str, rule: JsonObject) -> Iterator[FieldError]:
    if not items(rule, "resourceRules") and not items(rule, "nonResourceRules"):
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield problems.required(path, text)


def _verbs(path: str, verbs: Sequence[str] | None) -> Iterator[FieldError]:
    if "*" in (verbs or ()):
        yield from _only_wildcard("verbs")(path, verbs)
    elif not set(verbs or ()) <= set(_VERBS):
        yield problems.not_supported(path, verbs, _VERBS)


def _only_wildcard(title: str, otherwise: FieldRule | None = None) -> FieldRule:
    """Make the rule that "*" stands alone in a list; items of a list without it have a rule of their own."""

    def run(path: str, values: Sequence[str] | None) -> Iterator[FieldError]:
        if "*" in (values or ()):
            if len(values or ()) > 1:
                text = f"if '*' is present, must not specify other {title}"
                yield problems.invalid(path, values, text)
        elif otherwise is not None:
            for index, value in enumerate(values or ()):
                yield from otherwise(f"{path}[{index}]", value)

    return run


def _some_namespace(path: str, rule: JsonObject) -> Iterator[FieldError]:
    if not items(rule, "namespaces") and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        yield problems.required(f"{path}.namespaces", text)


def _namespace(path: str, name: str) -> Iterator[FieldError]:
    for text in names.dns1123_label(name):
        reason = f"each member of this list must be '*' or a DNS-1123 label; {text}"
        yield problems.invalid(path, name, reason)


def _url_path(path: str, text: str) -> Iterator[FieldError]:
    reason = ""
    if not text:
        reason = "must not be empty"
    elif not text.startswith("/"):
        reason = "must start with slash"
    elif " " in text:
        reason = "must not contain white-space"
    elif "//" in text:
        reason = "must not contain double slash"
    elif "*" in text and (text.count("*") > 1 or not text.endswith("/*")):
        reason = "wildcard can only do suffix matching"
    if reason:
        yield problems.invalid(path, text, reason)


_NAMED = rules(("name", required()))
_SERVICE_ACCOUNT = rules(
    ("name", required()),
    ("{name!=*}.name", named(names.dns1123_subdomain)),
    ("namespace", named(names.dns1123_label, required="must specify namespace for service account")),
)
_RESOURCE_RULE = rules(
    ("verbs", required("verbs must contain at least one value"), _verbs),
    (
        "apiGroups",
        required("resource rules must supply at least one api group"),
        _only_wildcard("api groups"),
    ),
    ("resources", required("resource rules must supply at least one resource"), _only_wildcard("resources")),
    ("", _some_namespace),
    ("namespaces", _only_wildcard("namespaces", _namespace)),
)
_NON_RESOURCE_RULE = rules(
    ("verbs", required("verbs must contain at least one value"), _verbs),
    (
        "nonResourceURLs",
        required("nonResourceURLs must contain at least one value"),
        _only_wildcard("non-resource URLs", _url_path),
    ),
)
_CONDITIONS = rules(("status.conditions", unique("type", after=rules(("type", required())))))
_SCHEMA = rules(
    (
        "spec.matchingPrecedence",
        at_least(1, "must be a positive value"),
        at_most(10000, "must not be greater than 10000"),
    ),
    ("", _first_precedence),
    ("spec.distinguisherMethod?", _distinguisher),
    (
        "spec.priorityLevelConfiguration.name",
        named(names.dns1123_subdomain, required="must reference a priority level"),
    ),
    ("spec.rules[].subjects", required("subjects must contain at least one value")),
    ("spec.rules[].subjects[]", _subject),
    ("spec.rules[]", _some_rule),
    ("spec.rules[].resourceRules[]", _RESOURCE_RULE),
    ("spec.rules[].nonResourceRules[]", _NON_RESOURCE_RULE),
    ("", _CONDITIONS),
)


def _exempt_level(path: str, level: JsonObject) -> Iterator[FieldError]:
    kind = section(level, "spec").get("type", "")
    if kind in ("Exempt", "Limited") and (level["metadata"].get("name") == _EXEMPT) != (kind == "Exempt"):
        yield problems.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")


def _hand_size(path: str, queuing: JsonObject) -> Iterator[FieldError]:
    queues, hand = queuing["queues"], queuing["handSize"]
    reason = ""
    if hand <= 0:
        reason = "must be positive"
    elif hand > queues:
        reason = f"should not be greater than queues ({queues})"
    elif math.ceil(math.log2(queues) * hand) > _MAX_ENTROPY_BITS:
        reason = (
            f"required entropy bits of deckSize {queues} and handSize {hand} "
            f"should not be greater than {_MAX_ENTROPY_BITS}"
        )
    if reason:
        yield problems.invalid(f"{path}.handSize", hand, reason)


_NOT_NEGATIVE = at_least(0, "must be a non-negative integer")
_PERCENT = between(0, 100, "must be between 0 and 100, inclusive")
_SHARES = rules(("nominalConcurrencyShares?", _NOT_NEGATIVE), ("lendablePercent?", _PERCENT))
_QUEUING = rules(
    ("queueLengthLimit", at_least(1, "must be positive")),
    (
        "queues",
        at_least(1, "must be positive"),
        at_most(_MAX_QUEUES, f"must not be greater than {_MAX_QUEUES}"),
    ),
    ("", _hand_size),
)
_LIMITED = rules(
    ("nominalConcurrencyShares?", _NOT_NEGATIVE),
    (
        "limitResponse{type=Reject}.queuing",
        absent("must be nil if limited.limitResponse.type is not Limited"),
    ),
    ("limitResponse{type=Queue}.queuing?", _QUEUING),
    (
        "limitResponse{type=Queue}{!queuing}.queuing",
        required("must not be empty if limited.limitResponse.type is Limited"),
    ),
    ("limitResponse.type", one_of("Queue", "Reject", required=True)),
    ("lendablePercent?", _PERCENT),
    ("borrowingLimitPercent?", at_least(0, "if specified, must be a non-negative integer")),
)
_LEVEL = rules(
    ("", _exempt_level),
    ("spec{type=Exempt}.limited", absent("must be nil if the type is not Limited")),
    ("spec{type=Exempt}.exempt?", _SHARES),
    ("spec{type=Limited}.exempt", absent("must be nil if the type is Limited")),
    ("spec{type=Limited}{!limited}.limited", required("must not be empty when type is Limited")),
    ("spec{type=Limited}.limited?", _LIMITED),
    ("spec.type", one_of("Exempt", "Limited", required=True)),
    ("", _CONDITIONS),
)


def _missing_level(schema: JsonObject) -> str:
    for item in items(section(schema, "status"), "conditions"):
        if item.get("type") == "Dangling":
            return item.get("status", "")
    return "?"


_QUEUES = "spec.limited.limitResponse.queuing"

STRATEGIES = {
    (GROUP, "FlowSchema"): Strategy(
        default=defaults(("spec.matchingPrecedence!", 1000)),
        validate=_SCHEMA.validate,
        validate_update=_SCHEMA.validate_update,
        validate_status_update=_CONDITIONS.validate_update,
        has_generation=True,
        **printed(
            NAME,
            cell("PriorityLevel", "spec.priorityLevelConfiguration.name"),
            cell("MatchingPrecedence", "spec.matchingPrecedence", 0),
            cell("DistinguisherMethod", "spec.distinguisherMethod.type", NONE),
            AGE,
            cell("MissingPL", _missing_level),
        ),
    ),
    (GROUP, "PriorityLevelConfiguration"): Strategy(
        default=defaults(
            ("spec.exempt?.nominalConcurrencyShares", 0),
            ("spec.exempt?.lendablePercent", 0),
            ("spec.limited?.nominalConcurrencyShares", 30),
            ("spec.limited?.lendablePercent", 0),
            ("spec.limited?.limitResponse?.queuing?.queues!", 64),
            ("spec.limited?.limitResponse?.queuing?.handSize!", 8),
            ("spec.limited?.limitResponse?.queuing?.queueLengthLimit!", 50),
        ),
        validate=_LEVEL.validate,
        validate_update=_LEVEL.validate_update,
        validate_status_update=_CONDITIONS.validate_update,
        has_generation=True,
        **printed(
            NAME,
            cell("Type", "spec.type"),
            cell("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares", NONE),
            cell("Queues", f"{_QUEUES}.queues", NONE),
            cell("HandSize", f"{_QUEUES}.handSize", NONE),
            cell("QueueLengthLimit", f"{_QUEUES}.queueLengthLimit", NONE),
            AGE,
        ),
    ),
}
