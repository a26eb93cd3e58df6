"""Calls to external systems: `ctx.record` records their results, and a replay returns the recorded results.

Arguments and results are recorded as JSON. The annotations of the function decide how a result is decoded in a replay,
and which values are sensitive: `Annotated[str, Field(sensitive=True)]`, or a class with such fields.
"""

import functools
import inspect
import sys
import time
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec

from kubewright.api import Field, KubewrightError
from kubewright.guards import text_of
from kubewright.journal import CallRecord, ExternalCall
from kubewright.journal.redaction import is_placeholder, sensitive_paths

MAX_RECORDED = 1024 * 1024
"""Maximum size in bytes of the arguments, and of the result, of a recorded call."""
_UNKNOWN: Any = Annotated[Any, Field(sensitive=True)]
"""Stands for an annotation that cannot be resolved."""


class NotRecorded(KubewrightError):
    """A replay needs the result of a call that is not in the record."""


class RecordedFailure(KubewrightError):
    """A recorded call failed with an exception whose class cannot be instantiated in the replay."""


class RecordedAnswers:
    """The recorded results, each returned once, in the order of the record."""

    def __init__(self, calls: Sequence[CallRecord], *, call_others: bool) -> None:
        self._calls = list(calls)
        self._call_others = call_others

    def take(self, call: "RecordableCall") -> CallRecord | None:
        """Return the recorded call of this function with these arguments; None if the function should be called instead.

        Raise NotRecorded if there is no recorded call and no replacement for the external system.
        """
        arguments = call.decoded_arguments
        for number, recorded in enumerate(self._calls):
            if short_name(recorded.function) == short_name(call.name) and _matches(
                recorded.arguments, arguments
            ):
                del self._calls[number]
                if recorded.missing and not self._call_others:
                    raise NotRecorded(f"{call.name}: the record has no answer: {recorded.missing}")
                return None if recorded.missing else recorded
        if self._call_others:
            return None
        others = "; ".join(str(each) for each in self._calls) or "no further calls"
        raise NotRecorded(
            f"the record has no answer of {call.name} with {msgspec.json.encode(arguments).decode()}: it has {others}"
        )


class RecordableCall:
    """A call of an author's function, with the types of its annotations."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self.name: str = function_name(function)
        self._function = function
        self._args = args
        self._kwargs = kwargs
        self._at = time.time()

    @functools.cached_property
    def decoded_arguments(self) -> dict[str, Any]:
        """Return the arguments by name, as JSON values."""
        return msgspec.json.decode(self._arguments)

    def answered(self, result: Any) -> ExternalCall:
        """Return the journal entry of a call that returned."""
        try:
            answer = msgspec.json.encode(result)
        except (TypeError, ValueError, RecursionError) as error:
            return self._entry(
                missing=f"a {type(result).__name__} cannot be written as JSON: {text_of(error)}"
            )
        if len(answer) > MAX_RECORDED:
            return self._entry(missing=f"it has {len(answer)} bytes, and at most {MAX_RECORDED} are recorded")
        form = self._hints.get("return")
        if form is _UNKNOWN:
            return self._entry(missing="its annotation cannot be resolved, so it may be sensitive")
        return self._entry(answer=answer, sensitive_answer=_sensitive(form))

    def failed(self, error: BaseException) -> ExternalCall:
        """Return the journal entry of a call that raised."""
        cls = type(error)
        return self._entry(error=text_of(error), error_type=f"{cls.__module__}:{cls.__qualname__}")

    def repeated(self, recorded: CallRecord) -> Any:
        """Return the recorded result, or raise the recorded error."""
        if recorded.error_type:
            raise _created_again(recorded)
        form = self._hints.get("return")
        if form is None:
            return recorded.answer
        try:
            return msgspec.convert(recorded.answer, form)
        except (msgspec.ValidationError, TypeError) as error:
            raise NotRecorded(
                f"the recorded answer of {self.name} does not fit its annotation: {error}"
            ) from None

    def _entry(self, **fields: Any) -> ExternalCall:
        arguments = self._arguments
        if len(arguments) > MAX_RECORDED:
            arguments = b"{}"
            fields["missing"] = f"its arguments have more than {MAX_RECORDED} bytes"
        hints = self._hints
        sensitive = tuple(
            (name, *path) for name, form in hints.items() if name != "return" for path in _sensitive(form)
        )
        return ExternalCall(self._at, self.name, arguments, sensitive_arguments=sensitive, **fields)

    @functools.cached_property
    def _arguments(self) -> bytes:
        try:
            bound: dict[str, Any] = dict(
                inspect.signature(self._function).bind(*self._args, **self._kwargs).arguments
            )
        except (TypeError, ValueError):  # a built-in function without a signature, or a wrong call
            bound = {**{str(number): each for number, each in enumerate(self._args)}, **self._kwargs}
        return msgspec.json.encode(bound, enc_hook=_shown_argument)

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        function = _plain(self._function)
        try:
            return typing.get_type_hints(function, include_extras=True)
        except NameError:
            return _resolved_one_by_one(function)
        except (AttributeError, TypeError):
            return {}


def function_name(function: object) -> str:
    """Return the display name of a function, such as `Provider.create`."""
    plain = _plain(function)
    name: str = getattr(plain, "__qualname__", type(plain).__qualname__)
    return name.rpartition("<locals>.")[2]


def short_name(function: str) -> str:
    """Return the name of a function without its class: a replacement of an external system has another class."""
    return function.rpartition(".")[2]


def _plain(function: object) -> Any:
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


def _shown_argument(value: Any) -> str:
    """Return a text for an argument that is not JSON; without the address of a default repr, which differs between runs."""
    return f"<{type(value).__qualname__}>"


def _resolved_one_by_one(function: Any) -> dict[str, Any]:
    """Return the annotations of a function; those that cannot be resolved, as with TYPE_CHECKING, are sensitive."""
    found: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= typing.get_type_hints(holder, function.__globals__, include_extras=True)
        except NameError:
            found[name] = _UNKNOWN
    return found


def _sensitive(form: Any) -> tuple[tuple[str, ...], ...]:
    try:
        return sensitive_paths(form) if form is not None else ()
    except (NameError, TypeError):
        return ((),)  # it is unknown which of its values are sensitive


def _matches(recorded: Any, given: Any) -> bool:
    """Return True if two JSON values are equal; a placeholder in the record matches anything."""
    if is_placeholder(recorded):
        return True
    if isinstance(recorded, dict) and isinstance(given, dict):
        old, new = cast("dict[str, Any]", recorded), cast("dict[str, Any]", given)
        return old.keys() == new.keys() and all(_matches(old[name], new[name]) for name in old)
    if isinstance(recorded, list) and isinstance(given, list):
        before, after = cast("list[Any]", recorded), cast("list[Any]", given)
        return len(before) == len(after) and all(map(_matches, before, after))
    return recorded == given


def _created_again(recorded: CallRecord) -> BaseException:
    """Return an exception like the recorded one, if its class is loaded in this process."""
    module, _, name = recorded.error_type.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, Exception):
        try:
            return found(recorded.error)
        except Exception:
            pass  # its constructor takes something else
    return RecordedFailure(f"{name}: {recorded.error}")
