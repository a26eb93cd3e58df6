"""The implementation of `Context`, and its threads."""

import asyncio
import builtins
import contextvars
import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, ParamSpec, TypeVar

import msgspec

from kubewright.api import JsonObject, Object, PartialMeta, RawObject, kind_of
from kubewright.api.meta import Propagation
from kubewright.client import Client
from kubewright.controller.context import Context, ContextPatchType, Reader
from kubewright.controller.declaration import Controller
from kubewright.controller.disruption import Disruption
from kubewright.controller.predicates import Cause
from kubewright.controller.running.dependencies import RuntimeDependencies, reference_to
from kubewright.controller.running.disruption import DisruptionControl
from kubewright.controller.running.external_calls import RecordableCall, function_name, short_name
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
from kubewright.journal import ExternalCall, current
from kubewright.rates import Rate

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
    """The objects that all reconciles of one controller share; `dependencies` are shared with the other controllers."""

    controller: Controller[Any]
    dependencies: RuntimeDependencies
    informer_sets: Sequence[AnyInformerSet]
    reader: CacheReader
    writer: Writer
    threads: WorkerThreads
    disruption: DisruptionControl


class RunningContext(Context):
    """The `Context` of one reconcile of one object."""

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
        self._log = log
        self.causes = causes
        self.deadline = deadline
        self._services = services
        self._state = state
        self._meta = state.meta
        self._steps: Steps | None = None

    @functools.cached_property
    def _reader(self) -> ContextReader:
        return ContextReader(self._services.reader, self._services.controller, self._state, live=False)

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
        """Return the objects of a kind: all, those with a value in an index, or those that a reference refers to."""
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
        """Open a durable step, whose result is stored in the status."""
        if self._steps is None:
            services = self._services
            self._steps = Steps(services.controller, services.dependencies, services.reader, self._state)
        return self._steps.open(name, input)

    def disruption(self) -> AbstractContextManager[Disruption]:
        """Mark the writes of a block as disruptive."""
        return self._services.disruption.block(self._meta, self._log)

    async def wait_for(self, rate: Rate, group: Hashable = None) -> None:
        """Wait until a rate allows the next call to an external system."""
        loop = asyncio.get_running_loop()
        delay = rate.reserve(group, loop) - loop.time()
        while delay > 0 or (delay := rate.start(group, loop)) > 0:
            await asyncio.sleep(delay)
            delay = 0.0

    def event(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Record an Event of type Normal about the reconciled object."""
        self._publish("Normal", reason, note, action, related)

    def warn(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Record an Event of type Warning about the reconciled object."""
        self._publish("Warning", reason, note, action, related)

    async def run_sync(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking function in one of the controller's threads; raise TypeError if it is asynchronous."""
        name = _short_name(function)
        if _is_asynchronous(function):
            raise TypeError(f"run_sync got the coroutine function {name!r}: write `await {name}(...)`")
        if (entry := current()) is not None:
            missing = "ctx.run_sync runs it again"
            entry.add(ExternalCall(time.time(), function_name(function), missing=missing))
        result = await self._in_thread(function, *args, **kwargs)
        if inspect.isawaitable(result):
            raise TypeError(
                f"run_sync got {name!r}, which returned a {_never_awaited(result)}: "
                f"run_sync takes functions that block; write `await {name}(...)`"
            )
        return result

    async def record(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of an external system, and record the call and its result in the journal."""
        answers, entry = self._services.dependencies.recorded_answers, current()
        if answers is None and entry is None:
            return await self._called(function, args, kwargs)
        call = RecordableCall(function, args, kwargs)
        try:
            recorded = None if answers is None else answers.take(call)
            if recorded is None:
                result = await self._called(function, args, kwargs)
            else:
                result = call.repeated(recorded)
        except Exception as error:
            if entry is not None:
                entry.add(call.failed(error))
            raise
        if entry is not None:
            entry.add(call.answered(result))
        return result

    async def _called(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if _is_asynchronous(function):
            return await function(*args, **kwargs)
        result = await self._in_thread(function, *args, **kwargs)
        if inspect.isawaitable(result):
            raise TypeError(
                f"record got {_short_name(function)!r}, which returned a {_never_awaited(result)}: "
                "pass the coroutine function and its arguments, `ctx.record(client.get, key)`"
            )
        return result

    async def _in_thread(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if (observe := self._services.dependencies.run_sync_observer) is not None:
            observe(self._services.controller.name, _short_name(function))
        call: Callable[[], R] = functools.partial(function, *args, **kwargs)
        context = contextvars.copy_context()
        leadership = self._services.dependencies.leadership

        def run() -> R:
            # Checked here as well, because the function may have waited for a free thread, and because it continues when
            # the reconcile is cancelled.
            with leadership.activity():
                return context.run(call)

        return await self._services.threads.run(run)

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


def _is_asynchronous(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _short_name(function: object) -> str:
    return short_name(function_name(function))


def _never_awaited(result: Any) -> str:
    """Return the name of an awaitable's type; close a coroutine, or Python would warn that it was never awaited."""
    if inspect.iscoroutine(result):
        result.close()
    return type(result).__name__
