"""Reading objects of which any part may be missing or null."""

from typing import Any

from kubewright.devserver.objects import Wire


def section(obj: Wire, name: str) -> Wire:
    """Give a struct or map of an object; an empty one when it has none."""
    found: Wire | None = obj.get(name)
    return {} if found is None else found


def items(obj: Wire, name: str) -> list[Any]:
    """Give a list of an object; an empty one when it has none."""
    found: list[Any] | None = obj.get(name)
    return [] if found is None else found
