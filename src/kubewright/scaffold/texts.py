"""Templates in the package: plain text with placeholders such as %{name}."""

import re
from functools import cache
from importlib.resources import files

_PLACE = re.compile(r"%\{([a-z_]+)\}")


def fill(template: str, **values: str) -> str:
    """Render a template; a placeholder without a value raises KeyError."""
    return _PLACE.sub(lambda place: values[place[1]], _read(f"templates/{template}.txt"))


def lock() -> str:
    """Return the lock file: the packages that this kubewright was tested with, by version and hash."""
    return _read("data/requirements.lock")


@cache
def _read(name: str) -> str:
    return (files("kubewright.scaffold") / name).read_text(encoding="utf-8")
