"""Exact quantities (`100m`, `1Gi`, `1.5`, `1e3`) with the canonical text that Kubernetes writes."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache, total_ordering
from typing import Any, ClassVar, Literal, Self

from kubewright.api.errors import QuantityError
from kubewright.api.scalars import Scalar

IntOrString = int | str
"""A number or a name or percentage, as in `maxUnavailable: 25%` and `targetPort: http`."""
QuantityFormat = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SCAN = r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_TEXT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_TEXT = ["", *_BINARY]
_NANO = -9
_MAX_INT64 = 2**63 - 1
_FAST_DIGITS = 18
# Go truncates exponents to 32 bits; numbers of that size only serve to exhaust memory.
_MAX_EXPONENT = 999


@total_ordering
class Quantity(Scalar):
    """A Kubernetes quantity such as `500m` or `1Gi`, with an exact value: `Quantity("1") == Quantity("1000m")`."""

    __slots__ = ("_exponent", "_format", "_mantissa", "_text")
    structural: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": True,
    }
    _mantissa: int
    _exponent: int
    _format: QuantityFormat
    _text: str

    def __init__(self, value: "str | int | Quantity" = 0) -> None:
        if isinstance(value, Quantity):
            self._set(value._mantissa, value._exponent, value._format, value._text)
        elif isinstance(value, int):
            self._set(value, 0, "DecimalSI")
        else:
            self._parse(value)

    @classmethod
    def of(cls, value: Decimal, format: QuantityFormat = "DecimalSI") -> Self:  # noqa: A002 - what Kubernetes calls it
        """Return the quantity of an exact number, formatted with the given family of suffixes."""
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise QuantityError(f"{value} is no amount")
        mantissa = int("".join(map(str, digits)))
        return cls.__new__(cls)._set(-mantissa if sign else mantissa, exponent, format)

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Read a JSON string or number."""
        if isinstance(value, float):
            return cls(str(int(value)) if value.is_integer() else repr(value))
        if isinstance(value, str):
            return cls(value.strip())
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(value)
        raise QuantityError("a quantity is text or a number")

    def to_wire(self) -> str:
        """Return the text as Kubernetes writes it."""
        return str(self)

    @property
    def format(self) -> QuantityFormat:
        """Return the family of suffixes of its format."""
        return self._format

    @property
    def value(self) -> Decimal:
        """Return the exact number."""
        digits = tuple(map(int, str(abs(self._mantissa))))
        return Decimal((1 if self._mantissa < 0 else 0, digits, self._exponent))

    def _set(self, mantissa: int, exponent: int, format: QuantityFormat, text: str = "") -> Self:  # noqa: A002 - as above
        self._mantissa, self._exponent = _without_zeros(mantissa, exponent)
        self._format, self._text = format, text
        return self

    def _parse(self, text: str) -> None:
        self._mantissa, self._exponent, self._format, self._text = _parsed(text)

    def _compare(self, other: "Quantity") -> int:
        low = min(self._exponent, other._exponent)
        mine = self._mantissa * 10 ** (self._exponent - low)
        theirs = other._mantissa * 10 ** (other._exponent - low)
        return (mine > theirs) - (mine < theirs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and (self._mantissa, self._exponent) == (
            other._mantissa,
            other._exponent,
        )

    def __lt__(self, other: "Quantity") -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash((self._mantissa, self._exponent))

    def __add__(self, other: "Quantity") -> "Quantity":
        low = min(self._exponent, other._exponent)
        total = self._mantissa * 10 ** (self._exponent - low) + other._mantissa * 10 ** (
            other._exponent - low
        )
        # As in Kubernetes, zero has no format of its own.
        return Quantity()._set(total, low, self._format if self._mantissa else other._format)

    def __neg__(self) -> "Quantity":
        return Quantity()._set(-self._mantissa, self._exponent, self._format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self + -other

    def __mul__(self, factor: int) -> "Quantity":
        return Quantity()._set(self._mantissa * factor, self._exponent, self._format)

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return self._mantissa != 0

    def __int__(self) -> int:
        """Return whole units, rounded away from zero so that a small amount never becomes 0."""
        number, scale = _rounded_up(self._mantissa, self._exponent, 0)
        return number * 10**scale

    def __float__(self) -> float:
        return float(self.value)

    def milli(self) -> int:
        """Return thousandths, rounded up: the usual unit of CPU."""
        number, scale = _rounded_up(self._mantissa, self._exponent, -3)
        return number * 10 ** (scale + 3)

    def __str__(self) -> str:
        if not self._text:
            self._text = self._canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _canonical(self) -> str:
        if not self._mantissa:
            return "0"
        if self._format == "BinarySI" and self._exponent >= 0:
            amount = self._mantissa * 10**self._exponent
            if abs(amount) >= 1024:
                power = 0
                while amount % 1024 == 0:
                    amount, power = amount // 1024, power + 1
                return f"{amount}{_BINARY_TEXT[power] if power < len(_BINARY_TEXT) else ''}"
        exponent = self._exponent - self._exponent % 3
        amount = self._mantissa * 10 ** (self._exponent - exponent)
        if self._format == "DecimalExponent":
            return f"{amount}e{exponent}" if exponent else str(amount)
        # Kubernetes has no suffix beyond E and writes none there.
        return f"{amount}{_DECIMAL_TEXT.get(exponent, '')}"


def _without_zeros(mantissa: int, exponent: int) -> tuple[int, int]:
    while mantissa and mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    return mantissa, exponent if mantissa else 0


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[int, int, QuantityFormat, str]:
    """Return mantissa, exponent, format and, if it is canonical, the text; cached, since the same few texts recur."""
    found = re.fullmatch(_SCAN, text, re.ASCII)
    if not text or found is None:
        raise QuantityError(f"quantities must match the regular expression '{_PATTERN}'")
    sign, whole, fraction, suffix = found[1], found[2] or "0", found[3] or "", found[4]
    base, exponent, format = _interpret(suffix)  # noqa: A001 - as above
    digits = whole + fraction
    number = int(digits) * (-1 if sign == "-" else 1)
    if (
        _is_small(format, exponent, whole, fraction)
        and abs(number) << (exponent if base == 2 else 0) <= _MAX_INT64
    ):
        kept = text if _is_canonical(format, exponent, digits, len(fraction)) else ""
        if base == 2:
            return *_without_zeros(number << exponent, 0), format, kept
        return *_without_zeros(number, exponent - len(fraction)), format, kept
    if not re.search("[0-9]", text.removesuffix(suffix)):
        raise QuantityError("unable to parse numeric part of quantity")
    scale = -len(fraction)
    if base == 2:
        number <<= exponent
    else:
        scale += exponent
    number, scale = _rounded_up(number, scale, _NANO)
    if format == "BinarySI":
        number, scale, format = _bounded(number, scale)  # noqa: A001 - as above
    return *_without_zeros(number, scale), format, ""


def _interpret(suffix: str) -> tuple[int, int, QuantityFormat]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    if re.fullmatch(r"[eE][-+]?[0-9]{1,9}", suffix) and abs(int(suffix[1:])) <= _MAX_EXPONENT:
        return 10, int(suffix[1:]), "DecimalExponent"
    raise QuantityError("unable to parse quantity's suffix")


def _is_small(format: QuantityFormat, exponent: int, whole: str, fraction: str) -> bool:  # noqa: A002 - as above
    """Return True if Kubernetes takes its exact path for small numbers, which also keeps some texts as they came."""
    if format == "BinarySI":
        return not fraction and 14 - len(whole) - exponent * 3 // 10 >= 0
    return len(whole) + len(fraction) <= _FAST_DIGITS and exponent - len(fraction) >= _NANO


def _is_canonical(format: QuantityFormat, exponent: int, digits: str, places: int) -> bool:  # noqa: A002 - as above
    if format == "BinarySI":
        return int(digits) % 8 != 0
    return (exponent - places) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _rounded_up(number: int, scale: int, least: int) -> tuple[int, int]:
    """Round away from zero to a multiple of 10**least."""
    if scale >= least:
        return number, scale
    unit = 10 ** (least - scale)
    rounded = -(-abs(number) // unit)
    return (-rounded if number < 0 else rounded), least


def _bounded(number: int, scale: int) -> tuple[int, int, QuantityFormat]:
    """Cap a binary amount at 64 bits; below one it is written in decimal."""
    unit = 10**-scale
    if abs(number) > _MAX_INT64 * unit:
        return (-_MAX_INT64 if number < 0 else _MAX_INT64), 0, "BinarySI"
    return number, scale, "DecimalSI" if 0 < abs(number) < unit else "BinarySI"
