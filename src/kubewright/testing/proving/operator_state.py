"""A hash of the in-memory state of a simulated operator, to recognize two runs that are in the same state.

The state of an operator is all that its tasks and timers can reach: caches, queues, the frames of suspended coroutines
with their local variables and position, closures, instances. All of it is hashed, as a graph of objects, so no part of
the runtime can be overlooked. An object that the walk cannot handle raises `UnknownState`; then states are not compared.

Excluded are objects that do not influence what the operator does: metrics, the journal, log fields and spans, and the
simulated cluster, whose state is hashed by its writes. Equal hashes mean equal graphs: objects are numbered in the order
in which they are visited, so identity counts as well as value.

Module globals are not part of the walk: `GlobalState` checks that those of the operator's modules have not changed since
the start.
"""

import asyncio
import functools
import gc
import hashlib
import inspect
import itertools
import logging
import random
import re
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context, ContextVar, Token
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

import msgspec

from kubewright.controller import Operator
from kubewright.journal import Collected, Journal
from kubewright.testing.simulation.loop import SimulatedProcess, SimulationLoop
from kubewright.tracebacks import package_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
_HASHED_BY_REPR = (
    Decimal,
    UUID,
    PurePath,
    datetime,
    date,
    time,
    timedelta,
    tzinfo,
    re.Pattern,
    range,
    slice,
    itertools.count,
)
_HASHED_BY_NAME = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.WrapperDescriptorType,
    types.MemberDescriptorType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.GenericAlias,
)
_OPAQUE = (
    Context,
    ContextVar,
    Token,
    logging.Logger,
    logging.LoggerAdapter,
    Journal,
    SimulationLoop,
    SimulatedProcess,
)
_EXCLUDED_MODULES = (
    "kubewright.metrics",
    "kubewright.devserver",
    "kubewright.devcluster.cluster",
    "kubewright.testing",
    "kubewright.controller.running.telemetry",
    "typing",
)
_SUSPENDED = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
_FRAMES = ("cr_frame", "gi_frame", "ag_frame")
_STATELESS_PACKAGES = frozenset({"kubewright", "msgspec", "pydantic", "the standard library"})


class UnknownState(Exception):
    """A part of the operator's state cannot be hashed."""


def state_of(loop: SimulationLoop, process: SimulatedProcess) -> bytes:
    """Return the hash of a process's state; raise UnknownState if a part of it cannot be hashed."""
    walk = _Walk(process)
    for task in loop.tasks_of(process):
        walk.add(task)
    for when, callback in loop.timers_of(process):
        walk.add(when)
        walk.add(callback)
    return walk.digest()


class _Walk:
    """Hash a graph of objects; equal graphs give equal digests."""

    def __init__(self, process: SimulatedProcess | None) -> None:
        self._process = process
        self._hash = hashlib.blake2b(digest_size=16)
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._rest: list[Any] = []

    def digest(self) -> bytes:
        """Return the hash of the objects that were added."""
        return self._hash.digest()

    def add(self, value: Any) -> None:
        """Add an object and all that it refers to."""
        # A stack instead of recursion, because graphs are deep.
        rest = [value]
        while rest:
            found = rest.pop()
            parts = self._visit(found)
            if parts:
                rest.extend(reversed(parts))

    def _write(self, text: str) -> None:
        self._hash.update(text.encode("utf-8", "surrogatepass"))
        self._hash.update(b"\n")

    def _visit(self, value: Any) -> list[Any] | None:
        """Hash one object without the objects that it refers to, and return those."""
        kind = cast("type[Any]", type(value))
        if kind in _PLAIN:
            if kind is bytes:
                self._hash.update(b"bytes %d " % len(value))
                self._hash.update(value)
            else:
                self._write(f"{kind.__name__} {value!r}")
            return None
        if kind is tuple:
            self._write(f"tuple {len(value)}")
            return list(value)
        if isinstance(value, _HASHED_BY_NAME):
            self._write(f"name {getattr(value, '__module__', '')} {getattr(value, '__qualname__', value)}")
            return None
        number = self._numbers.get(id(value))
        if number is not None:
            self._write(f"again {number}")
            return None
        self._numbers[id(value)] = len(self._numbers)
        # Keep temporary objects alive, or their ids would be used again.
        self._alive.append(value)
        self._write(f"{kind.__module__}.{kind.__qualname__}")
        if isinstance(value, _OPAQUE) or kind.__module__.startswith(_EXCLUDED_MODULES):
            return None
        if isinstance(value, _HASHED_BY_REPR):
            self._write(repr(cast("object", value)))
            return None
        if isinstance(value, Enum):
            self._write(value.name)
            return None
        return self._parts(value)

    def _parts(self, value: Any) -> list[Any]:
        """Return the objects that an object refers to, in an order that does not depend on the run."""
        kind = cast("type[Any]", type(value))
        if isinstance(value, dict):
            entries = cast("dict[Any, Any]", value)
            self._write(f"{len(entries)} entries")
            return [*itertools.chain.from_iterable(entries.items()), *_attributes(value)]
        if isinstance(value, list | deque):
            self._write(f"{len(cast('list[Any]', value))} items")
            return [*cast("list[Any]", value), *_attributes(value)]
        if isinstance(value, set | frozenset):
            return _sorted(cast("set[Any]", value))
        if isinstance(value, Collected):
            # The checks of properties use its steps, but neither its start time nor its causes.
            return [value.controller, value.key, value.state, list(value.steps)]
        if isinstance(value, asyncio.Future):
            return self._future(cast("asyncio.Future[Any]", value))
        if isinstance(value, asyncio.TimerHandle):
            return [value.when(), value.cancelled()]
        if isinstance(value, _SUSPENDED):
            # get_referents also returns the values on the frame's stack, such as iterators.
            suspended = cast(Any, value)
            frame = next(
                (found for name in _FRAMES if (found := getattr(suspended, name, None)) is not None), None
            )
            self._write(f"{suspended.__qualname__} at {frame.f_lasti if frame is not None else 'end'}")
            return [each for each in gc.get_referents(suspended) if not isinstance(each, types.FrameType)]
        if isinstance(value, types.FunctionType):
            self._write(f"{value.__module__}.{value.__qualname__}")
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
            return [*cells, value.__defaults__, value.__kwdefaults__]
        if isinstance(value, types.MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, functools.partial):
            made = cast("functools.partial[Any]", value)
            return [made.func, made.args, made.keywords]
        if isinstance(value, types.CellType):
            return [value.cell_contents] if _is_filled(value) else []
        if isinstance(value, weakref.ReferenceType):
            return [cast("weakref.ReferenceType[Any]", value)()]
        if isinstance(value, types.MappingProxyType):
            return [dict(cast("types.MappingProxyType[Any, Any]", value))]
        if isinstance(value, bytearray | memoryview):
            return [bytes(cast("bytearray", value))]
        if isinstance(value, random.Random):
            return [value.getstate()]
        if isinstance(value, msgspec.Struct):
            return [getattr(value, name) for name in value.__struct_fields__]
        if isinstance(value, BaseException):
            return [str(value), value.__cause__, *_attributes(value)]
        if kind.__module__ == "builtins" and kind.__name__.endswith("iterator"):
            return [value.__reduce__()]
        if kind.__module__ in ("_asyncio", "builtins", "asyncio.taskgroups") and not _attributes(value):
            return self._builtin(value)
        parts = _attributes(value)
        if not parts and not _is_python(kind) and kind is not object:
            raise UnknownState(f"objects of type {kind.__module__}.{kind.__qualname__} cannot be compared")
        return parts

    def _builtin(self, value: Any) -> list[Any]:
        name = type(value).__qualname__
        if name in ("FutureIter", "coroutine_wrapper", "object", "async_generator_asend", "anext_awaitable"):
            return gc.get_referents(value)
        raise UnknownState(f"objects of type {name} cannot be compared")

    def _future(self, future: "asyncio.Future[Any]") -> list[Any]:
        if isinstance(future, asyncio.Task):
            task = cast(Any, future)
            if getattr(task, "process", self._process) is not self._process:
                return []
            if not future.done():
                return [task.get_coro(), getattr(task, "_fut_waiter", None), task.cancelling()]
        if not future.done():
            return ["pending"]
        if future.cancelled():
            return ["cancelled"]
        error = cast(Any, future)._exception if hasattr(future, "_exception") else future.exception()
        return [error, None if error is not None else future.result()]


def _attributes(value: Any) -> list[Any]:
    """Return the names and values of an object's attributes."""
    found: list[Any] = []
    for name, each in sorted(getattr(value, "__dict__", {}).items()):
        found += (name, each)
    for kind in type(value).__mro__:
        slots: Any = kind.__dict__.get("__slots__", ())
        for name in sorted([slots] if isinstance(slots, str) else slots):
            if name in ("__dict__", "__weakref__"):
                continue
            mangled = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name
            if hasattr(value, mangled):
                found += (name, getattr(value, mangled))
    return found


def _sorted(values: Iterable[Any]) -> list[Any]:
    """Return the members of a set in an order that does not depend on the run."""
    found = list(values)
    if all(isinstance(each, asyncio.Future) for each in found):
        return sorted(found, key=hash)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=repr)


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _is_python(kind: type[Any]) -> bool:
    """Return True if a class is defined in Python, so that its attributes are its whole state."""
    return bool(kind.__flags__ & 1 << 9)


class StateSeen(Exception):
    """A run has reached a state that another run has been in."""


class SeenStates:
    """The states that runs of one operator were in. A run that reaches one of them can end there.

    Two runs with an equal hash have the same writes so far in the same order, so the cluster is the same; the same
    operator state; the same messages in transit and held back; the same timers and time; and they are in the same step.
    Everything that a run does follows from these, so both would continue in the same way.
    """

    def __init__(self, *, off: str = "") -> None:
        self.off: str = off
        """Why states are not compared; an empty string if they are."""
        self._seen: set[bytes] = set()
        self._globals: GlobalState | None = None

    def start(self, operator: Operator) -> None:
        """Record the globals of a new operator."""
        if not self.off and self._globals is None:
            try:
                self._globals = GlobalState(operator)
            except UnknownState as error:
                self.off = str(error)

    def check(self, state: Callable[[], bytes], operator: Operator | None) -> bytes:
        """Return the hash of the current state, empty if states are not compared; raise StateSeen if it was added before."""
        if self.off:
            return b""
        try:
            if operator is not None and self._globals is not None:
                name = self._globals.changed(operator)
                self.off = f"the operator keeps state in the global {name}" if name else ""
            found = b"" if self.off else state()
        except UnknownState as error:
            self.off = str(error)
            return b""
        if found in self._seen:
            raise StateSeen
        return found

    def add(self, states: Iterable[bytes]) -> None:
        """Add the states of a run in which all properties hold."""
        self._seen.update(state for state in states if state)


class GlobalState:
    """The globals of the operator's modules. If one of them changes, states are no longer compared."""

    def __init__(self, operator: Operator) -> None:
        self._before = self._values(operator)

    def changed(self, operator: Operator) -> str:
        """Return the name of a global that has changed since the start; an empty string if none has."""
        now = self._values(operator)
        return next((name for name, value in now.items() if self._before.get(name) != value), "")

    def _values(self, operator: Operator) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for module in _author_modules(operator):
            for name, value in vars(module).items():
                if not name.startswith("__"):
                    found[f"{module.__name__}.{name}"] = _global_value(f"{module.__name__}.{name}", value)
        return found


def _global_value(name: str, value: Any) -> bytes:
    """Return the hash of a global; raise UnknownState if it may hold state that cannot be hashed."""
    for part in _class_values(value) if isinstance(value, type) else (value,):
        if isinstance(part, functools._lru_cache_wrapper | ContextVar):  # pyright: ignore[reportPrivateUsage]
            raise UnknownState(f"the global {name} may keep state between reconciles")
        package = _package(part)
        if package and package not in _STATELESS_PACKAGES:
            raise UnknownState(f"the global {name} is of the package {package}, which may keep state")
    walk = _Walk(None)
    try:
        for part in _class_values(value) if isinstance(value, type) else (value,):
            if not type(part).__module__.startswith(("kubewright.", "typing")):
                walk.add(part)
    except UnknownState as error:
        raise UnknownState(f"{name}: {error}") from None
    return walk.digest()


def _class_values(kind: type[Any]) -> Iterator[Any]:
    """Yield the class attributes of a class of the operator, which all its instances share."""
    if _package(kind):
        yield kind
        return
    for name, value in sorted(vars(kind).items()):
        if not name.startswith("__") and not isinstance(value, types.FunctionType):
            yield value


def _package(value: Any) -> str:
    """Return the package of a module, class or function; an empty string for the operator's own, and for other values."""
    if isinstance(value, types.ModuleType):
        file = getattr(value, "__file__", None)
        return package_of(file) if file else "the standard library"
    if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return ""
    module = sys.modules.get(value.__module__ or "")
    return _package(module) if module is not None else ""


def _author_modules(operator: Operator) -> list[types.ModuleType]:
    """Return the operator's modules that its functions can reach."""
    functions: list[Any] = [
        function
        for controller in operator.controllers
        for function in (
            *controller.functions,
            *(each for item in (*controller.owns, *controller.watches) for each in _attributes(item)),
        )
        if callable(function)
    ]
    waiting: list[types.ModuleType] = []
    for function in functions:
        module = sys.modules.get(getattr(inspect.unwrap(function), "__module__", None) or "")
        if module is None:
            raise UnknownState(f"the module of {function!r} is not known")
        waiting.append(module)
    found: dict[str, types.ModuleType] = {}
    while waiting:
        module = waiting.pop()
        if module.__name__ in found or _package(module):
            continue
        found[module.__name__] = module
        for value in vars(module).values():
            name = (
                value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            )
            if isinstance(name, str) and name in sys.modules:
                waiting.append(sys.modules[name])
    return [found[name] for name in sorted(found)]
