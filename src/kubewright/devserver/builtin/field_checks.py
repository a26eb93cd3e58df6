"""Checks of single fields that many kinds share, with the error messages of the real server."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, QuantityError, SelectorError, names, problems
from kubewright.api import label_selector as structured_selector
from kubewright.devserver.objects import JsonObject, is_list, is_object, items, words

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
# Quantities of these resources are integers, because they count objects.
_STANDARD_INTEGERS = frozenset(
    words(
        "pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims "
        "services.nodeports services.loadbalancers"
    )
)
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
    f"or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_GO_NAMES = {
    "apiGroup": "APIGroup",
    "apiVersion": "APIVersion",
    "seLinuxOptions": "SELinuxOptions",
    "uid": "UID",
}
_MAX_REASON = 1024
_MAX_MESSAGE = 32768


def named(path: str, value: str, reasons: Sequence[str]) -> list[FieldError]:
    """Report each reason for which a name is invalid."""
    return [problems.invalid(path, value, text) for text in reasons]


def name(path: str, value: str | None, syntax: Callable[[str], list[str]]) -> list[FieldError]:
    """Check a name that must be set."""
    return named(path, value, syntax(value)) if value else [problems.required(path)]


def not_negative(path: str, value: Any) -> list[FieldError]:
    """Check that a number, if it is set, is not negative."""
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return [problems.invalid(path, value, _NEGATIVE)]
    return []


def none_negative(values: JsonObject, path: str, *fields: str) -> list[FieldError]:
    """Check that none of several numbers is negative."""
    return [error for name in fields for error in not_negative(f"{path}.{name}", values.get(name))]


def choice(path: str, value: Any, choices: Sequence[str]) -> list[FieldError]:
    """Check that a value is set and is one of a few."""
    if not value:
        return [problems.required(path)]
    return one_of(path, value, choices)


def one_of(path: str, value: Any, choices: Sequence[str]) -> list[FieldError]:
    """Check that a value is one of a few."""
    return [] if value in choices else [problems.not_supported(path, value, choices)]


def optional(path: str, value: Any, choices: Sequence[str]) -> list[FieldError]:
    """Check that a value, if it is set, is one of a few."""
    return [] if value is None else one_of(path, value, choices)


def port(path: str, value: int) -> list[FieldError]:
    """Check a port number."""
    return [] if 0 < value < 65536 else [problems.invalid(path, value, PORT_RANGE)]


def port_or_name(path: str, value: Any) -> list[FieldError]:
    """Check a port number or a port name."""
    if isinstance(value, str):
        return named(path, value, names.port_name(value))
    return port(path, value or 0)


def count_or_percent(path: str, value: Any) -> list[FieldError]:
    """Check a count or a percentage."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [problems.invalid(path, value, _PERCENT_TEXT)]
    return not_negative(path, value)


def at_most_all(path: str, value: Any) -> list[FieldError]:
    """Check that a percentage is not above 100%."""
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
        where, key = f"{path}.matchExpressions[{index}]", item.get("key", "")
        errors += selector_values(where, item)
        errors += named(f"{where}.key", key, names.qualified_name(key))
        for position, value in enumerate(items(item, "values")):
            errors += named(f"{where}.values[{position}]", value, names.label_value(value))
    return errors


def selector_values(path: str, item: JsonObject) -> list[FieldError]:
    """Check the operator of an expression, and that it has values if the operator needs some."""
    operator, values = item.get("operator", ""), items(item, "values")
    if operator in ("In", "NotIn"):
        text = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [problems.required(f"{path}.values", text)]
    if operator in ("Exists", "DoesNotExist"):
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [problems.forbidden(f"{path}.values", text)] if values else []
    return [problems.invalid(f"{path}.operator", operator, "not a valid selector operator")]


def selects(selector: JsonObject, found: Mapping[str, str]) -> bool | None:
    """Return True if a selector matches labels, None if the selector is invalid."""
    try:
        return structured_selector(selector).matches(found)
    except SelectorError:
        return None


def unchanged(path: str, new: Any, old: Any) -> list[FieldError]:
    """Check that a field keeps its value."""
    return [] if alike(new, old) else [problems.invalid(path, new, IMMUTABLE)]


def alike(new: Any, old: Any) -> bool:
    """Return True if two values are equal to Kubernetes, which does not distinguish an empty list from none."""
    if new == old:
        return True
    if is_object(new) and is_object(old):
        return all(alike(new.get(name), old.get(name)) for name in new | old)
    if is_list(new) and is_list(old):
        return len(new) == len(old) and all(map(alike, new, old))
    return new in (None, []) and old in (None, [])


def quantity(value: Any) -> Quantity:
    """Parse a quantity, which decoding has checked already."""
    try:
        return Quantity(str(value))
    except QuantityError:
        return Quantity("0")


def resource_quantity(path: str, name: str, value: Any) -> list[FieldError]:
    """Check the quantity of a resource: not negative, and an integer if it counts objects."""
    errors: list[FieldError] = []
    found = quantity(value)
    if found < Quantity("0"):
        errors.append(problems.invalid(path, str(value), _NEGATIVE))
    if is_counted(name) and str(found).endswith(("m", "u", "n")):
        errors.append(problems.invalid(path, str(value), "must be an integer"))
    return errors


def is_counted(name: str) -> bool:
    """Return True if quantities of a resource must be integers."""
    return name in _STANDARD_INTEGERS or name.startswith("count/") or is_extended(name)


def is_extended(name: str) -> bool:
    """Return True if a resource is an extended resource, such as example.com/gpu."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def domain_prefixed_path(path: str, value: str) -> list[FieldError]:
    """Check a name with a domain as its prefix, such as example.com/controller."""
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


def reference(path: str, source: JsonObject) -> list[FieldError]:
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
    """Check a DNS search domain, which unlike other names may contain underscores."""
    if len(value.encode()) > _SEARCH_SIZE:
        return [problems.invalid(path, value, f"must be no more than {_SEARCH_SIZE} characters")]
    return [] if re.fullmatch(_SEARCH, value, re.ASCII) else [problems.invalid(path, value, _SEARCH_TEXT)]


def clean_relative_path(path: str, value: str) -> list[FieldError]:
    """Check that a path is relative and does not leave its folder."""
    errors: list[FieldError] = []
    if value.startswith("/"):
        errors.append(problems.invalid(path, value, "must be a relative path"))
    if ".." in value.split("/"):
        errors.append(problems.invalid(path, value, "must not contain '..'"))
    return errors


def check_conditions(conditions: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Check conditions of the type metav1.Condition."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind, where = condition.get("type", ""), f"{path}[{index}]"
        if kind in seen:
            yield problems.duplicate(f"{where}.type", kind)
        seen.add(kind)
        if kind:
            yield from named(f"{where}.type", kind, names.qualified_name(kind))
        else:
            yield problems.required(f"{where}.type", "is required")
        yield from choice(f"{where}.status", condition.get("status"), ("False", "True", "Unknown"))
        if (generation := condition.get("observedGeneration", 0)) < 0:
            text = "must be greater than or equal to zero"
            yield problems.invalid(f"{where}.observedGeneration", generation, text)
        if not condition.get("lastTransitionTime"):
            yield problems.required(f"{where}.lastTransitionTime")
        yield from _condition_texts(condition, where)


def _condition_texts(condition: JsonObject, path: str) -> Iterator[FieldError]:
    reason = condition.get("reason", "")
    if not reason:
        yield problems.required(f"{path}.reason")
    elif not re.fullmatch(_REASON, reason, re.ASCII):
        yield problems.invalid(f"{path}.reason", reason, _REASON_TEXT)
    if len(reason.encode()) > _MAX_REASON:
        yield problems.too_long(f"{path}.reason", _MAX_REASON)
    if len(condition.get("message", "").encode()) > _MAX_MESSAGE:
        yield problems.too_long(f"{path}.message", _MAX_MESSAGE)


def struct(value: Mapping[str, Any], fields: str, missing: Any = "") -> dict[str, Any]:
    """Return fields of an object, which are listed with spaces between them, by their names in Go."""
    return {
        _GO_NAMES.get(name) or name[0].upper() + name[1:]: value.get(name, missing) for name in fields.split()
    }


class StructError(FieldError, frozen=True):
    """An error that shows a Go struct: its fields in the order of their declaration, also those not set."""

    @property
    def message(self) -> str:
        """Return the message without the field."""
        title = {"FieldValueInvalid": "Invalid value", "FieldValueDuplicate": "Duplicate value"}.get(
            self.type, "Unsupported value"
        )
        shown = json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))
        shown = shown.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        return f"{title}: {shown}: {self.detail}" if self.detail else f"{title}: {shown}"


def invalid_struct(
    field: str, value: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, detail: str
) -> FieldError:
    """Report an invalid struct, or a list of them."""
    return StructError("FieldValueInvalid", field, value, detail)


def unsupported_struct(field: str, value: Mapping[str, Any], detail: str) -> FieldError:
    """Report a struct with an unsupported value."""
    return StructError("FieldValueNotSupported", field, value, detail)


def duplicate_struct(field: str, value: Mapping[str, Any], detail: str = "") -> FieldError:
    """Report a struct that occurs twice."""
    return StructError("FieldValueDuplicate", field, value, detail)
