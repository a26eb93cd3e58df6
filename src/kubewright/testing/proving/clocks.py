"""Find calls in the operator's code that read the real clock, which a simulation cannot replace.

`time.time()` and `time.monotonic()` are virtual in a simulation. `datetime.now()` and the like are implemented in C and
cannot be replaced: results that depend on them differ in each run, so the report lists the calls.
"""

import ast
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubewright.testing.proving.fresh_modules import FreshModules
from kubewright.tracebacks import package_of

_ALWAYS = frozenset(
    {
        ("datetime", "now"),
        ("datetime", "utcnow"),
        ("datetime", "today"),
        ("date", "today"),
        ("time", "perf_counter"),
        ("time", "perf_counter_ns"),
        ("time", "monotonic_ns"),
    }
)
_WITHOUT_ARGUMENTS = frozenset({("time", "localtime"), ("time", "gmtime"), ("time", "ctime")})


def author_files(make: Callable[[], Any]) -> list[str]:
    """Return the source files of the operator that `make` creates, as far as they are known."""
    if isinstance(make, FreshModules):
        return make.files()
    module = sys.modules.get(getattr(inspect.unwrap(make), "__module__", "") or "")
    file = getattr(module, "__file__", None) or ""
    return [file] if file.endswith(".py") and not package_of(file) else []


def real_clocks(files: Iterable[str]) -> list[str]:
    """Return a message for each call that reads the real clock."""
    return [
        f"{os.path.basename(file)}:{line}: {call}() reads the real clock, so runs cannot be repeated exactly: use time.time()"
        for file in files
        for line, call in _calls(file)
    ]


def _calls(file: str) -> Iterator[tuple[int, str]]:
    try:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        # Importing the file reports the error.
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        owner = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
        called = owner, node.func.attr
        if called in _ALWAYS or (called in _WITHOUT_ARGUMENTS and not node.args):
            yield node.lineno, ".".join(called)
