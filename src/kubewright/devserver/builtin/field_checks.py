"""Checks of single fields that many kinds share, with the server's words."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, QuantityError, SelectorError, names, problems
from kubewright.api import label_selector as structured_selector
from kubewright.devserver.objects import JsonObject, items, section

IMMUTABLE = "field is immutable"
PORT_RANGE = "must be between 1 and 65535, inclusive"
PROTOCOLS = ("SCTP", "TCP", "UDP")
NOT_POSITIVE = "must be greater than zero"
_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_URL_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_SEARCH = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_SEARCH_SIZE = 253
_SEARCH_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    f"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SEARCH}')"
)
_NEEDS_VALUES = ("In", "NotIn")
_NEEDS_NO_VALUES = ("Exists", "DoesNotExist")
# The values of these are whole numbers: they count things.
_STANDARD_INTEGERS = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)


def named(path: str, value: str, troubles: Sequence[str]) -> list[FieldError]:
    """Report each trouble that a name has."""
    return [problems.invalid(path, value, text) for text in troubles]


def not_negative(path: str, value: Any) -> list[FieldError]:
    """Check a number that counts something."""
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return [problems.invalid(path, value, _NEGATIVE)]
    return []


def none_negative(values: JsonObject, path: str, *fields: str) -> list[FieldError]:
    """Check several counting fields."""
    return [error for name in fields for error in not_negative(f"{path}.{name}", values.get(name))]


def choice(path: str, value: Any, choices: Sequence[str]) -> list[FieldError]:
    """Check a value that must be given and be one of a few."""
    if not value:
        return [problems.required(path)]
    return one_of(path, value, choices)


def one_of(path: str, value: Any, choices: Sequence[str]) -> list[FieldError]:
    """Check a value that must be one of a few."""
    return [] if value in choices else [problems.not_supported(path, value, choices)]


def port(path: str, value: int) -> list[FieldError]:
    """Check a port number."""
    return [] if 0 < value < 65536 else [problems.invalid(path, value, PORT_RANGE)]


def port_or_name(path: str, value: Any) -> list[FieldError]:
    """Check a port that is given by number or by name."""
    if isinstance(value, str):
        return named(path, value, names.port_name(value))
    return port(path, value or 0)


def count_or_percent(path: str, value: Any) -> list[FieldError]:
    """Check a number of things, or a share of them."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [problems.invalid(path, value, _PERCENT_TEXT)]
    return not_negative(path, value)


def at_most_all(path: str, value: Any) -> list[FieldError]:
    """Check that a share is no more than everything."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        return [problems.invalid(path, value, "must not be greater than 100%")]
    return []


def labels(path: str, found: Mapping[str, str] | None) -> list[FieldError]:
    """Check label keys and values."""
    errors: list[FieldError] = []
    for key, value in (found or {}).items():
        errors += named(path, key, names.qualified_name(key))
        errors += named(path, value, names.label_value(value))
    return errors


def label_selector(path: str, selector: JsonObject | None) -> list[FieldError]:
    """Check a structured label selector."""
    if selector is None:
        return []
    errors = labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, item in enumerate(items(selector, "matchExpressions")):
        where = f"{path}.matchExpressions[{index}]"
        operator, values = item.get("operator", ""), items(item, "values")
        if operator in _NEEDS_VALUES:
            if not values:
                text = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(problems.required(f"{where}.values", text))
        elif operator in _NEEDS_NO_VALUES:
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(problems.forbidden(f"{where}.values", text))
        else:
            errors.append(problems.invalid(f"{where}.operator", operator, "not a valid selector operator"))
        key = item.get("key", "")
        errors += named(f"{where}.key", key, names.qualified_name(key))
        for position, value in enumerate(values):
            errors += named(f"{where}.values[{position}]", value, names.label_value(value))
    return errors


def selects(selector: JsonObject, found: Mapping[str, str]) -> bool | None:
    """Tell whether a selector matches labels; None for one that is none, as a client may send it."""
    try:
        return structured_selector(selector).matches(found)
    except SelectorError:
        return None


def unchanged(path: str, new: Any, old: Any) -> list[FieldError]:
    """Check that a field has kept its value."""
    return [] if new == old else [problems.invalid(path, new, IMMUTABLE)]


def quantity(value: Any) -> Quantity:
    """Read a quantity; one that decoding has let pass is never wrong."""
    try:
        return Quantity(str(value))
    except QuantityError:
        return Quantity("0")


def amount(path: str, name: str, value: Any) -> list[FieldError]:
    """Check the amount of a resource: not negative, and whole where it counts things."""
    errors: list[FieldError] = []
    found = quantity(value)
    if found < Quantity("0"):
        errors.append(problems.invalid(path, str(value), _NEGATIVE))
    if is_counted(name) and str(found).endswith(("m", "u", "n")):
        errors.append(problems.invalid(path, str(value), "must be an integer"))
    return errors


def is_counted(name: str) -> bool:
    """Tell whether amounts of a resource are whole numbers."""
    return name in _STANDARD_INTEGERS or name.startswith("count/") or is_extended(name)


def is_extended(name: str) -> bool:
    """Tell whether a resource is someone's own, such as example.com/gpu."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def domain_prefixed_path(path: str, value: str) -> list[FieldError]:
    """Check a name that says in which domain it is somebody's, such as example.com/controller."""
    host, slash, rest = value.partition("/")
    if not value:
        return [problems.required(path)]
    if not slash or not host or not rest:
        return [problems.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = named(path, host, names.dns1123_subdomain(host))
    if not re.fullmatch(_URL_PATH, rest, re.ASCII):
        errors.append(
            problems.invalid(path, rest, f"Invalid path (regex used for validation is '{_URL_PATH}')")
        )
    return errors


def reference(source: JsonObject, path: str) -> list[FieldError]:
    """Check a reference to an object of any kind."""
    group = source.get("apiGroup")
    errors = [] if group is None else named(f"{path}.apiGroup", group, names.dns1123_subdomain(group))
    for field in ("kind", "name"):
        value = source.get(field, "")
        if not value:
            errors.append(problems.required(f"{path}.{field}"))
        else:
            errors += named(f"{path}.{field}", value, names.path_segment(value))
    return errors


def search_path(path: str, value: str) -> list[FieldError]:
    """Check a domain in which names are looked up; unlike other names, it may have underscores."""
    if len(value.encode()) > _SEARCH_SIZE:
        return [problems.invalid(path, value, f"must be no more than {_SEARCH_SIZE} characters")]
    return [] if re.fullmatch(_SEARCH, value, re.ASCII) else [problems.invalid(path, value, _SEARCH_TEXT)]


def clean_relative_path(path: str, value: str) -> list[FieldError]:
    """Check a path that must stay below the folder it is relative to."""
    errors: list[FieldError] = []
    if value.startswith("/"):
        errors.append(problems.invalid(path, value, "must be a relative path"))
    if ".." in value.split("/"):
        errors.append(problems.invalid(path, value, "must not contain '..'"))
    return errors


def frozen(*names: str) -> Callable[[JsonObject, JsonObject], list[FieldError]]:
    """Make the check of an update that one part of an object stays as it was."""
    *parents, name = names

    def check(new: JsonObject, old: JsonObject) -> list[FieldError]:
        after, before = new, old
        for parent in parents:
            after, before = section(after, parent), section(before, parent)
        return unchanged(".".join(names), after.get(name), before.get(name))

    return check
