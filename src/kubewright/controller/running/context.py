"""The body of what a reconciler is given."""

import builtins
import contextvars
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import msgspec

from kubewright.api import JsonObject, Kind, Model, Object, PartialMeta, RawObject
from kubewright.controller.change import Cause
from kubewright.controller.context import Context, PatchType, Propagation, Reader
from kubewright.controller.running.reading import CachedReader, Holdings, LiveReader
from kubewright.controller.running.reporting import FieldLog
from kubewright.controller.running.shelves import AnyShelf
from kubewright.controller.running.surroundings import Surroundings, reference_to
from kubewright.controller.running.threads import WorkerThreads
from kubewright.controller.running.writer import Writer
from kubewright.events import EventType, Reference

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W", bound=Object | dict[str, Any])


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What all reconciles of one controller share."""

    kind: Kind
    surroundings: Surroundings
    holdings: Holdings
    shelves: Sequence[AnyShelf]
    writer: Writer
    threads: WorkerThreads
    reporter: str


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
        self._meta = state.meta

    @property
    def live(self) -> Reader:
        """Read from the server, past the cache."""
        return LiveReader(self._services.holdings, self._meta.namespace)

    @property
    def client(self) -> Any:
        """Return the client, for verbs that have no door here."""
        return self._services.surroundings.client

    @property
    def leading(self) -> bool:
        """Return True if this replica may act now."""
        return self._services.surroundings.leadership.valid

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object; raise NotFound if it does not exist."""
        return await self._cached.get(kind, name, namespace)

    async def find(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object, or None if it does not exist."""
        return await self._cached.find(kind, name, namespace)

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
        """Return the objects of a kind, or those that an index holds under a value."""
        cached: Any = self._cached  # its overloads tell a kind from an index, which are one argument here
        return await cached.list(
            kind, value, namespace=namespace, all_namespaces=all_namespaces, labels=labels
        )

    async def apply(self, child: W, *, owned: bool | None = None, force: bool = True) -> W:
        """Make the child so by server-side apply and return what is there."""
        writer = self._services.writer
        return await writer.apply(self._meta, writer.subject(child), owned=owned, force=force)

    async def create(self, child: W, *, owned: bool | None = None) -> W:
        """Create the child; raises AlreadyExists where there is one."""
        writer = self._services.writer
        return await writer.create(self._meta, writer.subject(child), owned=owned)

    async def update(self, target: W, change: Callable[[W], None]) -> W:
        """Change an object and send the difference as a JSON patch."""
        writer = self._services.writer
        return await writer.update(writer.subject(target), change)

    async def patch(
        self,
        target: W,
        patch: JsonObject | Sequence[JsonObject],
        *,
        type: PatchType = "merge",  # noqa: A002 (the word of the whole API)
        subresource: str = "",
    ) -> W:
        """Send a patch as it is."""
        writer = self._services.writer
        return await writer.patch(writer.subject(target), patch, type=type, subresource=subresource)

    async def patch_status(self, target: W, status: Model | JsonObject | None = None) -> W:
        """Apply the status fields of this controller where they differ."""
        writer = self._services.writer
        return await writer.patch_status(self._meta, writer.subject(target), status)

    async def delete(
        self,
        target: Object | JsonObject,
        *,
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete this very object (by uid)."""
        writer = self._services.writer
        await writer.delete(
            writer.subject(target),
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
        )

    def event(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Tell about the reconciled object in an Event."""
        self._tell("Normal", reason, note, action, related)

    def warn(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Tell about the reconciled object in an Event of type Warning."""
        self._tell("Warning", reason, note, action, related)

    async def run_sync(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking function in one of the controller's threads."""
        call: Callable[[], R] = functools.partial(function, *args, **kwargs)
        context = contextvars.copy_context()
        leadership = self._services.surroundings.leadership

        def run() -> R:
            # It may have waited for a free thread, and it goes on when the reconcile is cancelled.
            with leadership.activity():
                return context.run(call)

        return await self._services.threads.run(run)

    @property
    def _cached(self) -> CachedReader:
        return CachedReader(self._services.holdings, self._meta.namespace)

    def _tell(
        self,
        type: EventType,  # noqa: A002 (the field's name)
        reason: str,
        note: str,
        action: str,
        related: Object | None,
    ) -> None:
        self._services.surroundings.recorder.record(
            reference_to(self._services.kind, self._meta),
            type,
            reason,
            note,
            action=action,
            reporter=self._services.reporter,
            related=None if related is None else self._reference(related),
        )

    def _reference(self, related: Object) -> Reference:
        meta = related.metadata
        kind = self._services.writer.subject(related).kind
        return reference_to(kind, PartialMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid))
