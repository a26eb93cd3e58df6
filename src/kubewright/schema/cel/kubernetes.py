"""Kubernetes' own values: quantities, semantic versions, named formats."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kubewright.api import Quantity, QuantityError, names, problems
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import BOOL, DOUBLE, INT, STRING, list_of, optional_of, struct
from kubewright.schema.cel.values import NONE, OpaqueValue, Optional
from kubewright.schema.formats import is_request_uri, string_format
from kubewright.schema.values import INT64_MAX, INT64_MIN

QUANTITY, SEMVER, FORMAT = (
    struct("kubernetes.Quantity"),
    struct("kubernetes.Semver"),
    struct("kubernetes.NamedFormat"),
)
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class QuantityValue(OpaqueValue):
    """An amount with a unit, as a value."""

    type_name: ClassVar[str] = QUANTITY.name

    quantity: Quantity


@dataclass(frozen=True)
class Semver(OpaqueValue):
    """A semantic version as a value; the build does not count in comparisons."""

    type_name: ClassVar[str] = SEMVER.name

    numbers: tuple[int, int, int]
    prerelease: tuple[str, ...]
    build: str

    def order(self) -> tuple[Any, ...]:
        """Return a key that sorts versions."""
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease)
        return (self.numbers, not self.prerelease, parts)


@dataclass(frozen=True)
class NamedFormat(OpaqueValue):
    """A check of texts as a value."""

    type_name: ClassVar[str] = FORMAT.name

    name: str
    check: Callable[[str], list[str]]
    regex_size: int


def kubernetes_library() -> Library:
    """Return the functions on quantities, versions and formats."""
    library = Library()
    _quantities(library)
    _versions(library)
    _formats(library)
    return library


def _quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue(Quantity(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity(text)
    except QuantityError:
        return False
    return True


def _quantities(library: Library) -> None:
    method = library.method
    library.add("quantity", "string_to_quantity", (STRING,), QUANTITY, _quantity)
    library.add("isQuantity", "is_quantity_string", (STRING,), BOOL, _is_quantity)
    # The server declares sign() as a function, not as a method.
    library.add("sign", "quantity_sign", (QUANTITY,), INT, lambda value: _sign(value.quantity.value))
    method(
        "isGreaterThan", "quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: _order(a, b) > 0
    )
    method("isLessThan", "quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: _order(a, b) < 0)
    method("compareTo", "quantity_compare_to", (QUANTITY, QUANTITY), INT, _order)
    method(
        "asApproximateFloat",
        "quantity_get_float",
        (QUANTITY,),
        DOUBLE,
        lambda value: float(value.quantity.value),
    )
    method("asInteger", "quantity_get_int", (QUANTITY,), INT, _integer)
    method("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, lambda value: _whole(value) is not None)
    for name, sign in (("add", 1), ("sub", -1)):
        method(name, f"quantity_{name}", (QUANTITY, QUANTITY), QUANTITY, _sum(sign))
        method(name, f"quantity_{name}_int", (QUANTITY, INT), QUANTITY, _sum(sign))


def _sign(value: Any) -> int:
    return (value > 0) - (value < 0)


def _order(left: QuantityValue, right: QuantityValue) -> int:
    return _sign(left.quantity.value - right.quantity.value)


def _whole(value: QuantityValue) -> int | None:
    number = value.quantity.value
    return int(number) if number == int(number) and INT64_MIN <= number <= INT64_MAX else None


def _integer(value: QuantityValue) -> int:
    whole = _whole(value)
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _sum(sign: int) -> Callable[[QuantityValue, QuantityValue | int], QuantityValue]:
    def add(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
        other = right.quantity if isinstance(right, QuantityValue) else Quantity(right)
        return QuantityValue(left.quantity + other if sign > 0 else left.quantity - other)

    return add


def _semver(text: str, normalize: bool = False) -> Semver:
    source = _normalized(text) if normalize else text
    match = _SEMVER.fullmatch(source)
    if match is None:
        raise EvaluationError(_semver_problem(source))
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    return Semver(numbers, tuple(match[4].split(".")) if match[4] else (), match[5] or "")


def _semver_problem(text: str) -> str:
    if not text:
        return "Version string empty"
    if text.count(".") < 2:
        return "No Major.Minor.Patch elements found"
    for part in text.split(".", 2)[:2]:
        if not part.isdigit():
            return f"Invalid character(s) found in {'major' if part == text.split('.', maxsplit=1)[0] else 'minor'} number {problems.quoted(part)}"
        if len(part) > 1 and part.startswith("0"):
            return f"Major number must not contain leading zeroes {problems.quoted(part)}"
    return f"Invalid character(s) found in patch number {problems.quoted(text.split('.', 2)[2])}"


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


def _versions(library: Library) -> None:
    method = library.method
    library.add("semver", "string_to_semver", (STRING,), SEMVER, _semver)
    library.add("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, _semver)
    library.add("isSemver", "is_semver_string", (STRING,), BOOL, _is_semver)
    library.add("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver)
    method(
        "isGreaterThan", "semver_is_greater_than", (SEMVER, SEMVER), BOOL, lambda a, b: a.order() > b.order()
    )
    method("isLessThan", "semver_is_less_than", (SEMVER, SEMVER), BOOL, lambda a, b: a.order() < b.order())
    method(
        "compareTo", "semver_compare_to", (SEMVER, SEMVER), INT,
        lambda a, b: (a.order() > b.order()) - (a.order() < b.order()),
    )  # fmt: skip
    for position, name in enumerate(("major", "minor", "patch")):
        method(name, f"semver_{name}", (SEMVER,), INT, _number(position))


def _number(position: int) -> Callable[[Semver], int]:
    return lambda version: version.numbers[position]


def _strict(name: str, problem: str) -> Callable[[str], list[str]]:
    accepts = string_format(name)
    assert accepts is not None
    return lambda text: [] if accepts(text) else [problem]


def _uri(text: str) -> list[str]:
    problem = "empty url" if not text else "invalid URI for request"
    return [] if is_request_uri(text) else [f"parse {problems.quoted(text)}: {problem}"]


_FORMATS: dict[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", names.dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat(
        "DNS1123LabelPrefix", lambda text: names.generated(names.dns1123_label, text), 30
    ),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", lambda text: names.generated(names.dns1123_subdomain, text), 60
    ),
    "dns1035LabelPrefix": NamedFormat(
        "DNS1035LabelPrefix", lambda text: names.generated(names.dns1035_label, text), 30
    ),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri, 1150),
    "uuid": NamedFormat("uuid", _strict("uuid", "does not match the UUID format"), 80),
    "byte": NamedFormat("byte", _strict("byte", "invalid base64"), 84),
    "date": NamedFormat("date", _strict("date", "invalid date"), 84),
    "datetime": NamedFormat("datetime", _strict("datetime", "invalid datetime"), 84),
}


def _formats(library: Library) -> None:
    for name, value in _FORMATS.items():
        library.add(f"format.{name}", f"format.{name}", (), FORMAT, _constant(value))
    library.add(
        "format.named", "format-named", (STRING,), optional_of(FORMAT),
        lambda name: Optional(_FORMATS[name]) if name in _FORMATS else NONE,
    )  # fmt: skip
    library.method("validate", "format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate)


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


def _validate(named: NamedFormat, text: str) -> Optional:
    troubles = named.check(text)
    return Optional(troubles) if troubles else NONE
