"""The implementation of `Context`, and its threads."""

import asyncio
import builtins
import contextvars
import functools
import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any, ParamSpec, TypeVar

import msgspec

from kubewright.api import JsonObject, Object, PartialMeta, RawObject, kind_of
from kubewright.api.meta import Propagation
from kubewright.client import Client
from kubewright.controller.context import Context, ContextPatchType, Reader
from kubewright.controller.declaration import Controller
from kubewright.controller.predicates import Cause
from kubewright.controller.running.dependencies import RuntimeDependencies, reference_to
from kubewright.controller.running.reading import (
    AnyInformerSet,
    CacheReader,
    ContextReader,
)
from kubewright.controller.running.steps import Steps
from kubewright.controller.running.telemetry import FieldLog
from kubewright.controller.running.writer import Writer
from kubewright.controller.steps import StepRun
from kubewright.events import EventType, Reference

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W", bound=Object | dict[str, Any])


class WorkerThreads:
    """Run functions in a limited number of threads, and count those that still run.

    Cancelling a reconcile cannot end its thread, so the lease is released only when `running` is 0.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._executor = ThreadPoolExecutor(limit, thread_name_prefix=f"kubewright-{name}")
        self._lock = threading.Lock()
        self._running = 0

    @property
    def running(self) -> int:
        """Return how many functions have not returned."""
        return self._running

    async def run(self, call: Callable[[], R]) -> R:
        """Run the function in a thread and wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._counted, call)

    def close(self) -> None:
        """Accept no more functions; those that run are not interrupted."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _counted(self, call: Callable[[], R]) -> R:
        with self._lock:
            self._running += 1
        try:
            return call()
        finally:
            with self._lock:
                self._running -= 1


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What all reconciles of one controller share; `dependencies` is what it shares with the other controllers."""

    controller: Controller[Any]
    dependencies: RuntimeDependencies
    informer_sets: Sequence[AnyInformerSet]
    reader: CacheReader
    writer: Writer
    threads: WorkerThreads


class RunningContext(Context):
    """Serve one reconcile of one object."""

    def __init__(
        self,
        services: Services,
        state: RawObject,
        *,
        log: FieldLog,
        causes: tuple[Cause, ...],
        deadline: float | None,
    ) -> None:
        self.log: logging.LoggerAdapter[logging.Logger] = log
        self.causes = causes
        self.deadline = deadline
        self._services = services
        self._state = state
        self._meta = state.meta
        self._steps: Steps | None = None
        self._reader = ContextReader(services.reader, services.controller, state, live=False)

    @property
    def live(self) -> Reader:
        """Read from the server, not from the cache."""
        return ContextReader(self._services.reader, self._services.controller, self._state, live=True)

    @property
    def client(self) -> Client:
        """Return the client, for requests that have no method here."""
        return self._services.dependencies.client

    @property
    def leading(self) -> bool:
        """Return True if this replica may act now."""
        return self._services.dependencies.leadership.valid

    async def get(self, kind: Any, name: str | None = None, namespace: str | None = None) -> Any:
        """Return one object; raise NotFound if it does not exist."""
        return await self._reader.get(kind, name, namespace)

    async def find(self, kind: Any, name: str | None = None, namespace: str | None = None) -> Any:
        """Return one object, or None if it does not exist."""
        return await self._reader.find(kind, name, namespace)

    async def list(
        self,
        kind: Any,
        value: str | None = None,
        /,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str = "",
    ) -> builtins.list[Any]:
        """Return the objects of a kind, those that an index holds under a value, or those that a reference names."""
        return await self._reader.list(
            kind, value, namespace=namespace, all_namespaces=all_namespaces, labels=labels
        )

    async def apply(
        self, child: W, *, owned: bool | None = None, adopt: bool = False, force: bool = True
    ) -> W:
        """Apply the child with server-side apply and return the live object."""
        writer = self._services.writer
        return await writer.apply(self._meta, writer.resolve(child), owned=owned, adopt=adopt, force=force)

    async def create(self, child: W, *, owned: bool | None = None) -> W:
        """Create the child; raise AlreadyExists if it exists."""
        writer = self._services.writer
        return await writer.create(self._meta, writer.resolve(child), owned=owned)

    async def update(self, target: W, change: Callable[[W], None]) -> W:
        """Change an object and send the difference as a JSON patch."""
        writer = self._services.writer
        return await writer.update(writer.resolve(target), change)

    async def patch(
        self,
        target: W,
        patch: JsonObject | Sequence[JsonObject],
        *,
        type: ContextPatchType = "merge",  # noqa: A002 (the word of the whole API)
        subresource: str = "",
    ) -> W:
        """Send a patch as it is."""
        writer = self._services.writer
        return await writer.patch(writer.resolve(target), patch, type=type, subresource=subresource)

    async def patch_status(self, target: Any, status: Any = None) -> Any:
        """Apply the status fields of this controller where they differ."""
        writer = self._services.writer
        return await writer.patch_status(self._meta, writer.resolve(target), status)

    async def delete(
        self,
        target: Object | JsonObject,
        *,
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete the object with this uid."""
        writer = self._services.writer
        await writer.delete(
            writer.resolve(target),
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
        )

    def step(self, name: str, *, input: Any = None) -> AbstractAsyncContextManager[StepRun]:  # noqa: A002 (the author's word)
        """Open a step that is remembered in the status."""
        if self._steps is None:
            services = self._services
            self._steps = Steps(services.controller, services.dependencies, services.reader, self._state)
        return self._steps.open(name, input)

    def event(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Record an Event of type Normal about the reconciled object."""
        self._publish("Normal", reason, note, action, related)

    def warn(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Record an Event of type Warning about the reconciled object."""
        self._publish("Warning", reason, note, action, related)

    async def run_sync(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking function in one of the controller's threads; raise TypeError if it is asynchronous."""
        name = _name_of(function)
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            raise TypeError(f"run_sync got the coroutine function {name!r}: write `await {name}(...)`")
        if (observe := self._services.dependencies.run_sync_observer) is not None:
            observe(self._services.controller.name, name)
        call: Callable[[], R] = functools.partial(function, *args, **kwargs)
        context = contextvars.copy_context()
        leadership = self._services.dependencies.leadership

        def run() -> R:
            # It may have waited for a free thread, and it continues when the reconcile is cancelled.
            with leadership.activity():
                return context.run(call)

        result = await self._services.threads.run(run)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()  # otherwise Python warns that it was never awaited
            raise TypeError(
                f"run_sync got {name!r}, which returned a {type(result).__name__}: "
                f"run_sync takes functions that block; write `await {name}(...)`"
            )
        return result

    def _publish(
        self,
        type: EventType,  # noqa: A002 (the field's name)
        reason: str,
        note: str,
        action: str,
        related: Object | None,
    ) -> None:
        self._services.dependencies.record_event(
            reference_to(kind_of(self._services.controller.kind), self._meta),
            type,
            reason,
            note,
            action=action,
            reporter=self._services.controller.options.reporter,
            related=None if related is None else self._reference(related),
        )

    def _reference(self, related: Object) -> Reference:
        meta = related.metadata
        kind = self._services.writer.resolve(related).kind
        return reference_to(kind, PartialMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid))


def _name_of(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)
