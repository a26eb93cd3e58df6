"""Import the operator's modules again at each simulated start, as a new process would.

A real restart loses the state in module globals. A simulated restart runs in the same interpreter, so the modules of the
operator are removed from `sys.modules` and imported again. Modules of kubewright, of installed packages and of Python stay.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType

from kubewright.controller import Operator
from kubewright.testing.operator_program import load_reference
from kubewright.tracebacks import package_of


class FreshModules:
    """Create operators with `load`, each time with the operator's modules imported again.

    These modules are the ones that `load` imports the first time and that do not belong to an installed package, and the
    modules of `packages`.
    """

    def __init__(self, load: Callable[[], Operator], *packages: str) -> None:
        self._load = load
        self._packages = packages
        self._names: set[str] = set()

    def __call__(self) -> Operator:
        """Import the modules and create the operator."""
        for name in [name for name in sys.modules if self._is_own(name)]:
            del sys.modules[name]
        before = set(sys.modules)
        operator = self._load()
        self._names |= {name for name in sys.modules.keys() - before if _is_authors(sys.modules[name])}
        return operator

    def files(self) -> list[str]:
        """Return the files of the operator's modules that are imported."""
        return sorted(
            str(module.__file__)
            for name, module in sys.modules.items()
            if self._is_own(name) and _is_authors(module)
        )

    def _is_own(self, name: str) -> bool:
        return name in self._names or any(
            name == package or name.startswith(f"{package}.") for package in self._packages
        )


def fresh_operator(reference: str) -> FreshModules:
    """Return a factory for a reference `module:object` to an Operator, or to a function that returns one."""
    package = reference.partition(":")[0].partition(".")[0]
    return FreshModules(partial(load_reference, reference), package)


def _is_authors(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return False
    return not package_of(file)
