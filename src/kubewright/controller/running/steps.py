"""Durable steps of one reconcile: their results are read from, and recorded in, the object's status."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from kubewright.api import (
    Conflict,
    DeclarationError,
    InvalidRequest,
    JsonObject,
    NotFound,
    ObjectKey,
    RawObject,
    Step,
    kind_of,
    names,
    to_wire,
    utc_now,
)
from kubewright.client import requests
from kubewright.controller.declaration import Controller
from kubewright.controller.errors import StaleObject, TerminalError
from kubewright.controller.running.dependencies import RuntimeDependencies
from kubewright.controller.running.reading import CacheReader
from kubewright.controller.steps import RecordedSteps, StepRun
from kubewright.election import NotLeading
from kubewright.hashing import content_hash

_RACES = 5
"""How often recording a step is repeated on a newer version of the object after a conflict."""


class Steps:
    """Open and record the steps of one reconcile."""

    def __init__(
        self,
        controller: Controller[Any],
        dependencies: RuntimeDependencies,
        reader: CacheReader,
        state: RawObject,
    ) -> None:
        self._controller = controller
        self._dependencies = dependencies
        self._reader = reader
        self._kind = kind_of(controller.kind)
        self._key: ObjectKey = state.meta.key
        self._uid = state.meta.uid
        self._inputs: dict[str, str] = {}

    def open(self, name: str, given: Any) -> AbstractAsyncContextManager[StepRun]:
        """Return the context manager of a step; raise at once if the declaration or the call is invalid."""
        if not self._controller.steps_field:
            raise DeclarationError(
                f"controller {self._controller.name!r} uses ctx.step({name!r}), and the status of {self._kind.kind} "
                "has no field for steps: add `steps: list[kw.Step] = []` to the class of its status"
            )
        if problems := names.dns1123_label(name):
            raise DeclarationError(f"controller {self._controller.name!r}: step {name!r}: {problems[0]}")
        digest = content_hash(given)
        if self._inputs.setdefault(name, digest) != digest:
            raise TerminalError(
                f"step {name!r} was opened with two inputs in one reconcile, so each would undo the other: "
                "give the steps different names"
            )
        return self._opened(name, digest)

    @asynccontextmanager
    async def _opened(self, name: str, digest: str) -> AsyncGenerator[StepRun, None]:
        key = content_hash([self._uid, self._controller.field_manager, name, digest])
        run = StepRun(name, key, await self._find_outcome(name, digest))
        if not self._dependencies.leadership.valid:
            raise NotLeading(f"this replica's lease expired: step {name!r} was not started")
        yield run
        outcome = run.to_record()
        if outcome is not None:
            step = Step(name=name, input_hash=digest, outcome=outcome, completion_time=utc_now())
            await self._record(to_wire(step))
            run.mark_recorded()

    async def _find_outcome(self, name: str, digest: str) -> str | None:
        """Return the recorded outcome for this input, from the cache or else from the server."""
        held = await self._reader.get_raw(self._kind, self._key)
        if held is not None and held.meta.uid == self._uid:
            found = self._recorded(held).find(name)
            if found is not None and found["inputHash"] == digest:
                return found["outcome"]
        live = await self._read()
        if live is None:
            raise StaleObject(
                f"{self._kind.kind} {self._key} (uid {self._uid}) was deleted: step {name!r} was not started"
            )
        recorded = self._recorded(live)
        if recorded.is_foreign(name):
            raise TerminalError(
                f"step {name!r} of {self._kind.kind} {self._key} was recorded by another field manager than "
                f"{self._controller.step_managers[0]!r}: choose another name for the step, or remove that element from "
                f"status.{self._controller.steps_field} to have the step done"
            )
        found = recorded.find(name)
        return found["outcome"] if found is not None and found["inputHash"] == digest else None

    async def _record(self, step: JsonObject) -> None:
        """Apply our steps, including this one, at the version that was read; do nothing if the object is deleted."""
        live = await self._reader.get_raw(self._kind, self._key)
        for attempt in range(1, _RACES + 1):
            if live is None or live.meta.uid != self._uid:
                live = await self._read()
            if live is None:
                return
            recorded = self._recorded(live)
            known = recorded.find(step["name"])
            if known is not None and _is_same(known, step):
                return  # the response to our own write was lost
            try:
                await self._apply(live, recorded.with_record(step))
            except Conflict:
                if attempt == _RACES:
                    raise
                live = None
            else:
                return

    async def _apply(self, live: RawObject, steps: list[JsonObject]) -> None:
        meta: JsonObject = {"name": self._key.name, "resourceVersion": live.meta.resource_version}
        if self._kind.namespaced:
            meta["namespace"] = self._key.namespace
        document: JsonObject = {"metadata": meta, "status": {self._controller.steps_field: steps}}
        manager = self._controller.step_managers[0]
        try:
            response = await self._dependencies.client.send(
                requests.apply(document, self._kind, field_manager=manager, subresource="status")
            )
        except NotFound:
            if await self._read() is None:
                return
            raise InvalidRequest(
                f"patch {self._kind.resource}/status {self._key}: the object exists but has no status subresource: "
                "does its CRD declare one?"
            ) from None
        self._dependencies.record_write(self._kind, response)
        if not self._recorded(response).own:
            raise TerminalError(
                f"{self._kind.kind} {self._key}: the server did not keep status.{self._controller.steps_field}: "
                "does the installed CRD declare it?"
            )

    async def _read(self) -> RawObject | None:
        """Read the object from the server; return None if it was deleted or replaced."""
        live = await self._reader.read(self._kind, self._key)
        return live if live is not None and live.meta.uid == self._uid else None

    def _recorded(self, state: RawObject) -> RecordedSteps:
        return RecordedSteps(state, self._controller.steps_field, self._controller.step_managers)


def _is_same(one: JsonObject, other: JsonObject) -> bool:
    return (one["inputHash"], one["outcome"]) == (other["inputHash"], other["outcome"])
