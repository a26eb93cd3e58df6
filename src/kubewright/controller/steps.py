"""Durable steps: work that is remembered in the status, so that it is not repeated after a crash.

A reconciler opens a step with `async with ctx.step("snapshot", input=...) as step`, does the work if `step.done` is
False, and sets `step.outcome`. When the block ends, the step is recorded in the status field of type `list[Step]`, by a
field manager of its own. A later reconcile with the same input finds the outcome there.

Invariants:

- A step whose outcome was recorded is not done again for the same input: before a step is done, the object is read from
  the server, because the cache of a new leader may be behind.
- Only records of our own field manager count. A record of the same name by another one is an error, not an outcome.
- `ctx.patch_status` never writes steps: the object that it is given may be older than the last record.

What cannot be guaranteed: a process that ends after the effect and before the record does the step again. `StepRun.key` is
the same then, so the effect can be looked up or refused by the external system.
"""

from functools import cache
from typing import Any, cast, get_args, get_origin

import msgspec

from kubewright.api import (
    OUTCOME_LIMIT,
    DeclarationError,
    JsonObject,
    Kind,
    RawObject,
    Step,
    decode,
    field_info,
    field_types,
    plain_type,
)
from kubewright.controller import managed_fields
from kubewright.controller.errors import TerminalError


class StepRun:
    """A step that a reconciler has opened: do it if it is not `done`, then set its `outcome`."""

    def __init__(self, name: str, key: str, recorded: str | None) -> None:
        self.name = name
        self.key = key
        """The same text for the same object, step and input, also after a crash: an idempotency key, or part of a name."""
        self._done = recorded is not None
        self._outcome = recorded
        self._was_checked = False

    @property
    def done(self) -> bool:
        """Return True if the step was done for this input, so that it must not be done again."""
        self._was_checked = True
        return self._done

    @property
    def outcome(self) -> str:
        """Return the outcome; set it when the step is done, to an empty text if there is nothing to remember."""
        if self._outcome is None:
            raise TerminalError(f"step {self.name!r} has no outcome yet: set step.outcome first")
        return self._outcome

    @outcome.setter
    def outcome(self, value: str) -> None:
        if not self._was_checked:
            raise TerminalError(
                f"step {self.name!r} was done without a look at step.done, so it would be done in every reconcile: "
                "do its work inside `if not step.done:`"
            )
        if self._done:
            raise TerminalError(f"step {self.name!r} is done: its outcome cannot be set again")
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise TerminalError(
                f"step {self.name!r}: the outcome is text, not {type(value).__name__}: use str() or json.dumps()"
            )
        if len(value) > OUTCOME_LIMIT:
            raise TerminalError(f"step {self.name!r}: the outcome has more than {OUTCOME_LIMIT} characters")
        self._outcome = value

    def to_record(self) -> str | None:
        """Return the outcome to record at the end of the block; None if the step was done before.

        Raise TerminalError if no outcome was set.
        """
        if self._done:
            return None
        if self._outcome is None:
            raise TerminalError(
                f"step {self.name!r} ended without an outcome: set step.outcome, or raise an error, "
                "such as kw.RetryLater, if its work is not finished"
            )
        return self._outcome

    def mark_recorded(self) -> None:
        """Note that the outcome is in the status."""
        self._done = True


@cache
def steps_field(kind: Any) -> str:
    """Return the JSON name of the status field that is a list of steps; empty if there is none.

    Raise DeclarationError if there are several, or one that is not a list by name.
    """
    if isinstance(kind, Kind) or "status" not in kind.__struct_fields__:
        return ""
    status = plain_type(field_types(kind)["status"])
    if not isinstance(status, type) or not issubclass(status, msgspec.Struct):
        return ""
    wire = dict(zip(status.__struct_fields__, status.__struct_encode_fields__, strict=True))
    fields = {name: hint for name, hint in field_types(status).items() if _mentions_step(hint)}
    for name, hint in fields.items():
        plain = plain_type(hint)
        info = field_info(status)[name]
        if get_origin(plain) is not list or (info.list_type or "map") != "map":
            raise DeclarationError(
                f"{status.__name__}.{name}: steps are a list by name: write `{name}: list[kw.Step] = []`"
            )
    if len(fields) > 1:
        raise DeclarationError(f"{status.__name__}: {' and '.join(fields)} hold steps: keep one of them")
    return next((wire[name] for name in fields), "")


def _mentions_step(hint: Any) -> bool:
    return hint is Step or any(map(_mentions_step, get_args(hint)))


class _StatusOnly(msgspec.Struct):
    status: Any = None


class RecordedSteps:
    """The steps in one state of an object, with those that the given field managers recorded."""

    def __init__(self, state: RawObject, field: str, managers: tuple[str, ...]) -> None:
        status = decode(_StatusOnly, state.raw).status
        found = cast("JsonObject", status).get(field) if isinstance(status, dict) else None
        self.all: list[JsonObject] = cast("list[JsonObject]", found or [])
        entries = managed_fields.read_entries(state.meta.managed_fields)
        owned: list[str] = []
        for manager in managers:
            entry = managed_fields.applied_entry(entries, manager, managed_fields.STATUS)
            fields: Any = managed_fields.fields_of(entry) if entry is not None else {}
            owned += fields.get("f:status", {}).get(f"f:{field}", {})
        self.own: list[JsonObject] = [
            step for step in self.all if any(managed_fields.is_element(element, step) for element in owned)
        ]

    def find(self, name: str) -> JsonObject | None:
        """Return our record of a step."""
        return next((step for step in self.own if step["name"] == name), None)

    def is_foreign(self, name: str) -> bool:
        """Return True if another field manager recorded a step of this name."""
        return self.find(name) is None and any(step["name"] == name for step in self.all)

    def with_record(self, record: JsonObject) -> list[JsonObject]:
        """Return our records with this one, which replaces an earlier one of the same name."""
        name = record["name"]
        if self.find(name) is None:
            return [*self.own, record]
        return [record if step["name"] == name else step for step in self.own]
