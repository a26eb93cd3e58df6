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
    first,
    fits,
    given,
    missing,
    named,
    one_of,
    required,
    rules,
    unique,
    validated,
)
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy

GROUP = "flowcontrol.apiserver.k8s.io"
_EXEMPT = "exempt"
_MAX_QUEUES = 10_000_000
_MAX_ENTROPY_BITS = 60
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


def _first_precedence(path: str, schema: JsonObject) -> Iterator[FieldError]:
    if section(schema, "spec").get("matchingPrecedence") == 1 and schema["metadata"].get("name") != _EXEMPT:
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield problems.invalid("spec.matchingPrecedence", 1, text)


def _distinguisher(path: str, method: JsonObject) -> Iterator[FieldError]:
    if method.get("type") not in ("ByNamespace", "ByUser"):
        shown, text = {"Type": method.get("type", "")}, 'supported values: "ByNamespace", "ByUser"'
        yield check.unsupported_struct(f"{path}.type", shown, text)


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


def _namespace(path: str, name: str) -> Iterator[FieldError]:
    for text in names.dns1123_label(name):
        reason = f"each member of this list must be '*' or a DNS-1123 label; {text}"
        yield problems.invalid(path, name, reason)


_URL_PATH = first(
    fits(bool, "must not be empty"),
    fits(lambda text: text.startswith("/"), "must start with slash"),
    fits(lambda text: " " not in text, "must not contain white-space"),
    fits(lambda text: "//" not in text, "must not contain double slash"),
    fits(lambda text: "*" not in text.removesuffix("/*"), "wildcard can only do suffix matching"),
)
_NAMED = rules(("name", required()))
_SERVICE_ACCOUNT = rules(
    ("name", required()),
    ("{name!=*}.name", named(names.dns1123_subdomain)),
    ("namespace", named(names.dns1123_label, required="must specify namespace for service account")),
)
_SUBJECT = rules(
    ("kind", one_of("Group", "ServiceAccount", "User")),
    ("{kind=Group}.group", given(_NAMED, "group is required when subject kind is 'Group'")),
    (
        "{kind=ServiceAccount}.serviceAccount",
        given(_SERVICE_ACCOUNT, "serviceAccount is required when subject kind is 'ServiceAccount'"),
    ),
    ("{kind=User}.user", given(_NAMED, "user is required when subject kind is 'User'")),
    ("{kind=ServiceAccount|User}.group", absent("group is forbidden when subject kind is not 'Group'")),
    (
        "{kind=Group|User}.serviceAccount",
        absent("serviceAccount is forbidden when subject kind is not 'ServiceAccount'"),
    ),
    ("{kind=Group|ServiceAccount}.user", absent("user is forbidden when subject kind is not 'User'")),
)
_RESOURCE_RULE = rules(
    ("verbs", required("verbs must contain at least one value"), _verbs),
    (
        "apiGroups",
        required("resource rules must supply at least one api group"),
        _only_wildcard("api groups"),
    ),
    ("resources", required("resource rules must supply at least one resource"), _only_wildcard("resources")),
    (
        "{!namespaces}{clusterScope!=true}.namespaces",
        missing("resource rules that are not cluster scoped must supply at least one namespace"),
    ),
    ("namespaces", _only_wildcard("namespaces", _namespace)),
)
_NON_RESOURCE_RULE = rules(
    ("verbs", required("verbs must contain at least one value"), _verbs),
    (
        "nonResourceURLs",
        required("nonResourceURLs must contain at least one value"),
        _only_wildcard("non-resource URLs", _URL_PATH),
    ),
)
_RULE = rules(
    ("subjects", required("subjects must contain at least one value")),
    ("subjects[]", _SUBJECT),
    (
        "{!resourceRules}{!nonResourceRules}",
        missing("at least one of resourceRules and nonResourceRules has to be non-empty"),
    ),
    ("resourceRules[]", _RESOURCE_RULE),
    ("nonResourceRules[]", _NON_RESOURCE_RULE),
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
    ("spec.rules[]", _RULE),
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
    ("limitResponse{type=Queue}.queuing?", _QUEUING),
    ("limitResponse{type}.type", one_of("Queue", "Reject")),
    ("lendablePercent?", _PERCENT),
    ("borrowingLimitPercent?", at_least(0, "if specified, must be a non-negative integer")),
)
_LEVEL = rules(
    ("", _exempt_level),
    ("spec{type=Exempt}.exempt?", _SHARES),
    ("spec{type=Limited}.limited?", _LIMITED),
    ("spec{type}.type", one_of("Exempt", "Limited")),
    ("", _CONDITIONS),
    # Declared.
    ("spec{type!=Exempt}.exempt", absent()),
    ("spec{type!=Limited}.limited", absent()),
    ("spec{type=Limited}{!limited}.limited", required()),
    ("spec.type", required()),
    ("spec.limited?.limitResponse{type!=Queue}.queuing", absent()),
    ("spec.limited?.limitResponse{type=Queue}{!queuing}.queuing", required()),
    ("spec.limited?.limitResponse.type", required()),
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
        **validated(_SCHEMA),
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
        **validated(_LEVEL),
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
