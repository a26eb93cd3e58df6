"""The string formats that the API server checks in custom resources, as it checks them."""

import ipaddress
import re
from collections.abc import Callable
from datetime import date

from kubewright.schema.go_urls import is_request_uri
from kubewright.schema.patterns import compile_pattern

FormatCheck = Callable[[str], bool]


def string_format(name: str) -> FormatCheck | None:
    """Return the check of a format, or None if the API server ignores it; dashes in names are ignored."""
    return _FORMATS.get(name.replace("-", ""))


def is_known_format(name: str, schema_type: str) -> bool:
    """Return True if the API server checks this format for values of this type."""
    if schema_type in ("", "string"):
        return string_format(name) is not None
    return name in {"integer": ("int32", "int64"), "number": ("float", "double")}.get(schema_type, ())


def _matching(pattern: str) -> FormatCheck:
    return lambda text: compile_pattern(pattern).search(text)


_HOSTNAME = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)"
    r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
# Strings, which `re` compiles on first use: few schemas have a format, and compiling all would slow down every start.
_DATE = r"(?a)\d{4}-\d{2}-\d{2}"
_TIME = r"(?a)(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})"
_GO_DURATION = r"(?a)[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)"
_LOOSE_DURATION = r"(?a)(\d+)\s*([A-Za-zµ]+)"
_UNITS = (
    *("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"),
    *("nano*", "micro*", "milli*", "sec*", "min*", "hour*", "day*", "week*"),
)
_WORD = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x80-\U0010ffff-]+"
_ADDRESS = rf'(?:{_WORD}(?:\.{_WORD})*|"(?:[^"\\\r\n]|\\.)+")@(?:{_WORD}(?:\.{_WORD})*|\[[^\[\]\\]+\])'
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _is_hostname(text: str) -> bool:
    octets = text.encode(errors="surrogatepass")
    return (
        len(octets) <= 255
        and all(len(label) <= 63 for label in octets.split(b"."))
        and compile_pattern(_HOSTNAME).search(text)
    )


def _is_date(text: str) -> bool:
    if not re.fullmatch(_DATE, text):
        return False
    try:
        # Go has a year 0 and Python does not; it is a leap year like 2000.
        date.fromisoformat("2000" + text[4:] if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, *times = text.lower().split("t")
    if not times or not _is_date(day):
        return False
    match = re.fullmatch(_TIME, times[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if re.fullmatch(_GO_DURATION, text):
        return True
    return any(_is_unit(unit.lower()) for _, unit in re.findall(_LOOSE_DURATION, text))


def _is_unit(text: str) -> bool:
    return any(text.startswith(unit[:-1]) if unit.endswith("*") else text == unit for unit in _UNITS)


def _is_email(text: str) -> bool:
    """Return True for an address with or without a display name, as Go's mail.ParseAddress accepts it."""
    address = text.strip(" \t")
    if address.endswith(">") and "<" in address:
        display, _, address = address[:-1].rpartition("<")
        if any(char in "()<>[]:;@\\," for char in re.sub(r'"(?:[^"\\]|\\.)*"', "", display)):
            return False
    return re.fullmatch(_ADDRESS, address) is not None


def _is_ip(text: str) -> bool:
    # The API server tolerates leading zeros in IPv4, as Go did before 1.17.
    dotted = ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in text.split("."))
    try:
        ipaddress.ip_address(dotted if ":" not in text else text)
    except ValueError:
        return False
    return "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not (bits.isascii() and bits.isdigit()) or len(bits) > 3 or not _is_ip(address):
        return False
    return int(bits) <= (128 if ":" in address else 32)


def _is_mac(text: str) -> bool:
    for separator, width in ((":", 2), ("-", 2), (".", 4)):
        parts = text.split(separator)
        if len(parts) * width // 2 in (6, 8, 20) and all(
            re.fullmatch(f"[0-9a-fA-F]{{{width}}}", part) for part in parts
        ):
            return True
    return False


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    total = sum((at + 1) * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits))
    return total % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (1, 3)[at % 2] for at, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _matching(_CREDIT_CARD)(digits):
        return False
    doubled = (int(digit) * (1, 2)[at % 2] for at, digit in enumerate(reversed(digits)))
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


_CREDIT_CARD = (
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
)
_CHANNEL = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"

_FORMATS: dict[str, FormatCheck] = {
    "bsonobjectid": _matching(r"^[0-9a-fA-F]{24}$"),
    "uri": is_request_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and _is_ip(text),
    "ipv6": lambda text: ":" in text and _is_ip(text),
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matching(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    "uuid3": _matching(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    "uuid4": _matching(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    "uuid5": _matching(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": lambda text: len(text) == 11 and _matching(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$")(text),
    "hexcolor": _matching(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matching(rf"^rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)$"),
    "byte": _matching(
        r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$"
    ),
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _matching(f"^{_SHORT_NAME}$")(text),
    "k8slongname": lambda text: len(text) <= 253 and _matching(rf"^{_SHORT_NAME}(\.{_SHORT_NAME})*$")(text),
}
