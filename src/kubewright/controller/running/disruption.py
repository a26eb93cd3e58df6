"""Disruptive writes of one controller: delay them until a window is open and a slot of the budget is free.

`with ctx.disruption()` marks a block of a reconcile. `Writer` calls `pass_gate` before it sends a write that changes or
deletes an existing object; a write that creates an object, or is skipped because nothing would change, takes no slot.

The slots are in one ConfigMap in the operator's namespace. A slot is taken by replacing the ConfigMap at the version that
was read, so two replicas or shards never both take the last one. A process remembers when the slots that it has seen
expire, which they never do earlier, so it refuses without a request while all are held.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kubewright.api import (
    AlreadyExists,
    Conflict,
    DeclarationError,
    JsonObject,
    Kind,
    NotFound,
    ObjectKey,
    PartialMeta,
    kind_of,
    parse,
    utc_now,
)
from kubewright.client import requests
from kubewright.controller.declaration import Controller
from kubewright.controller.disruption import Budget, Disruption, SlotTable, check_windows
from kubewright.controller.errors import DisruptionDeferred
from kubewright.controller.running.dependencies import RuntimeDependencies
from kubewright.controller.running.telemetry import FieldLog, Instruments
from kubewright.journal import collecting

CONFIG_MAP = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps", builtin=True)
_RACES = 10
"""Maximum number of attempts to take a slot when other replicas or shards take one at the same time."""

_current: ContextVar["_Block | None"] = ContextVar("disruption", default=None)


async def pass_gate() -> None:
    """Take a slot if the current block of the reconcile is disruptive; raise DisruptionDeferred if the write must wait."""
    block = _current.get()
    if block is not None:
        await block.acquire()


def is_disruptive() -> bool:
    """Return True if the current block of the reconcile is disruptive."""
    return _current.get() is not None


class DisruptionControl:
    """The limits of one controller, for the reconciles of this process."""

    def __init__(
        self, controller: Controller[Any], dependencies: RuntimeDependencies, instruments: Instruments
    ) -> None:
        self._controller = controller
        self._kind = kind_of(controller.kind)
        self._budget: Budget | None = controller.options.budget
        self._windows = controller.options.windows
        self._dependencies = dependencies
        self._instruments = instruments
        self._slots = None if self._budget is None else SlotTable(self._budget)
        self._lock = asyncio.Lock()

    @contextmanager
    def block(self, meta: PartialMeta, log: FieldLog) -> Generator[Disruption]:
        """Mark the writes of a block as disruptive."""
        if self._budget is None and not self._windows:
            raise DeclarationError(
                f"controller {self._controller.name!r} uses ctx.disruption() and declares no limits: pass "
                'options=kw.Options(budget=Budget(at_most=2, every="10m")), or windows=[Window(...)]'
            )
        block = _Block(self, meta, log)
        token = _current.set(block)
        try:
            yield block
        finally:
            _current.reset(token)

    async def acquire(self, meta: PartialMeta, log: FieldLog | None) -> None:
        """Check the windows, and take a slot for the object or renew the one that it has; report that in the log, if given."""
        where = self._dependencies.disruption_object
        if where is None:
            return  # a plan or a replay: the limits are those of the cluster's operator
        self._check_windows()
        if self._slots is None:
            return
        try:
            async with self._lock:
                # The slot is not a write of the reconciler, so it is not in the journal, and a replay does not repeat it.
                with collecting(None):
                    await self._take(self._slots, where, meta)
        except DisruptionDeferred:
            self._instruments.disruptions_deferred("budget").inc()
            raise
        if log is not None:
            log.info("Took a slot for a disruption", extra={"budget": str(self._budget)})
        # Taking the slot may have taken long.
        self._check_windows()

    def _check_windows(self) -> None:
        try:
            check_windows(self._windows, utc_now())
        except DisruptionDeferred:
            self._instruments.disruptions_deferred("window").inc()
            raise

    async def _take(self, slots: SlotTable, where: ObjectKey, meta: PartialMeta) -> None:
        clock = asyncio.get_running_loop().time
        about = f"{self._kind.kind} {meta.key}"
        # Raises without a request while all known slots are held.
        slots.with_slot(meta.uid, about, utc_now(), clock())
        attempt = 1
        while True:
            live = await self._read(where)
            entries: dict[str, str] = {} if live is None else live.get("data") or {}
            slots.read(entries, utc_now(), clock())
            started = clock()
            wanted = slots.with_slot(meta.uid, about, utc_now(), started)
            try:
                await self._write(where, live, wanted)
            except (AlreadyExists, Conflict):
                if attempt == _RACES:
                    raise
                attempt += 1
                continue
            slots.read(wanted, utc_now(), started)
            return

    async def _read(self, where: ObjectKey) -> JsonObject | None:
        try:
            found = await self._dependencies.client.send(
                requests.get(CONFIG_MAP, where.name, where.namespace)
            )
        except NotFound:
            return None
        return parse(found.raw)

    async def _write(self, where: ObjectKey, live: JsonObject | None, entries: dict[str, str]) -> None:
        if live is None:
            document: JsonObject = {
                "metadata": {"name": where.name, "namespace": where.namespace},
                "data": entries,
            }
            request = requests.create(document, CONFIG_MAP, field_manager=self._controller.field_manager)
        else:
            # Send the whole object with its resourceVersion, so that labels of other clients are kept.
            document = live | {"data": entries}
            request = requests.replace(document, CONFIG_MAP, field_manager=self._controller.field_manager)
        await self._dependencies.client.send(request)


class _Block(Disruption):
    """One `with ctx.disruption()` block: takes a slot at its first disruptive write, and renews it at each further one."""

    def __init__(self, control: DisruptionControl, meta: PartialMeta, log: FieldLog) -> None:
        self._control = control
        self._meta = meta
        self._log: FieldLog | None = log

    async def acquire(self) -> None:
        """Take a slot now, or renew the one that the object has."""
        # At each write: a window may be closed by now, and a slot lasts from the last disruption of its object.
        await self._control.acquire(self._meta, self._log)
        self._log = None
