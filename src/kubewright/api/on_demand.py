"""Names of a package that are imported from its modules when they are first used (PEP 562).

For packages that have more than most programs use: creating all classes of `core_v1` would take a twentieth of an
operator's start. Type checkers read ordinary imports instead, in a block under `TYPE_CHECKING`.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def names_on_demand(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose modules define these names."""
    places = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = vars(import_module(f"{package}.{places[name]}"))
        # Later uses find the names in the package itself.
        vars(sys.modules[package]).update({each: found[each] for each in modules[places[name]]})
        return found[name]

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return get, listed
