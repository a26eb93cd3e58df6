"""Templates that come with the package: plain text with places like %{name}."""

import re
from functools import cache
from importlib.resources import files

_PLACE = re.compile(r"%\{([a-z_]+)\}")


def fill(template: str, **values: str) -> str:
    """Write a template with its places filled; a place without a value is an error."""
    return _PLACE.sub(lambda place: values[place[1]], _read(f"templates/{template}.txt"))


def lock() -> str:
    """Give the packages that this kubewright was tested with, by version and hash."""
    return _read("data/requirements.lock")


@cache
def _read(name: str) -> str:
    return (files("kubewright.scaffold") / name).read_text(encoding="utf-8")
