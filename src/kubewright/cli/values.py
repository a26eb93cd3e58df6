"""Values of options that commands share, read without click: a deployed operator does not load it."""

from kubewright.api import Quantity, SelectorError, names, parse_labels
from kubewright.api.scoping import NamespaceSelector

MIN_SIZE = 1024 * 1024


def size_in_bytes(text: str) -> int:
    """Return a size such as 200Mi in bytes; raise ValueError if it is not a size, or too small."""
    try:
        size = int(Quantity(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a quantity such as 200Mi or 1Gi") from None
    if size < MIN_SIZE:
        raise ValueError(f"{text} is too small: at least 1Mi")
    return size


def size_or_off(text: str) -> int:
    """Return a size such as 200Mi in bytes; 0 is off."""
    return 0 if text == "0" else size_in_bytes(text)


def split_namespaces(text: str) -> list[str]:
    """Return the namespaces of a list with commas, which may be empty; raise ValueError for an invalid name."""
    found = [name for name in text.split(",") if name]
    for name in found:
        if problems := names.dns1123_label(name):
            raise ValueError(f"{name!r}: {problems[0]}")
    return found


def checked_selector(text: str) -> str:
    """Return a label selector, which may be empty; raise ValueError if it is invalid."""
    try:
        parse_labels(text)
    except SelectorError as error:
        raise ValueError(f"{text!r} is not a label selector such as team=a: {error}") from None
    return text.strip()


def namespace_selector(text: str) -> NamespaceSelector | None:
    """Return the selector of namespaces with these labels, None for an empty text; raise ValueError."""
    labels = checked_selector(text)
    return NamespaceSelector(labels) if labels else None
