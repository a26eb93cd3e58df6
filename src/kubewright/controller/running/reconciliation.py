"""The reconcile of one key: finalizers and deletion first, then the author's reconciler."""

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from kubewright.api import (
    Conflict,
    DeclarationError,
    DecodeError,
    JsonObject,
    Kind,
    ObjectKey,
    OwnerReference,
    PartialMeta,
    RawObject,
    decode_as,
    from_wire,
    kind_of,
)
from kubewright.cache import Index
from kubewright.controller.declaration import Result
from kubewright.controller.errors import RetryLater, TerminalError, UndeclaredAccess
from kubewright.controller.predicates import Cause
from kubewright.controller.running.context import RunningContext, Services
from kubewright.controller.running.pausing import PAUSED_RESULT, PauseControl, Paused
from kubewright.controller.running.reading import AnyInformerSet
from kubewright.controller.running.telemetry import FieldLog, ReconcileLog
from kubewright.controller.watches import HoldsUid, Owned
from kubewright.guards import text_of
from kubewright.journal import current

T = TypeVar("T")

ReportMalformed = Callable[[AnyInformerSet, RawObject, DecodeError], None]


class MalformedObject(TerminalError):
    """An object does not fit its class; it was reported already."""


class Reconciliation(Generic[T]):
    """Reconcile keys of one controller."""

    def __init__(
        self,
        services: Services,
        own: AnyInformerSet,
        log: FieldLog,
        report_malformed: ReportMalformed,
        pausing: PauseControl,
    ) -> None:
        controller = services.controller
        self._controller = controller
        self._kind = kind_of(controller.kind)
        self._services = services
        self._own = own
        self._log = log
        self._report_malformed = report_malformed
        self._pausing = pausing
        self._finalized_children = [
            _Children(child, informers, self._kind, services.dependencies.holds_uid)
            for child in controller.owns
            if child.finalizer
            for informers in services.informer_sets
            if informers.kind == kind_of(child.kind)
        ]

    def log_of(self, key: ObjectKey) -> FieldLog:
        """Return a logger for one reconcile of the key, with its own reconcileID."""
        return ReconcileLog(self._log, self._kind, key)

    def concerns(self, key: ObjectKey) -> bool:
        """Return True if the cache has the object of the key, or children of it that have our finalizer."""
        return self._own.get_raw(key) is not None or any(
            children.of(key) for children in self._finalized_children
        )

    async def reconcile(
        self, key: ObjectKey, log: FieldLog, causes: tuple[Cause, ...], deadline: float | None
    ) -> Result | Paused | None:
        """Call the reconciler for the object of this key, or its finalizer if it is being deleted.

        Return PAUSED_RESULT if the object is paused: only finalizers of the object and its children run.
        """
        state = self._own.get_raw(key)
        if (entry := current()) is not None:
            entry.state = state
        if self._finalized_children:
            await self._free_children(key, state, left_to=await self._owner_elsewhere(key, state))
        if state is None:
            return None
        finalizer = self._controller.finalizer_name
        terminating = state.meta.deletion_timestamp is not None
        if terminating and finalizer and finalizer in state.meta.finalizers:
            await self._finalize(key, state, log, causes, deadline)
            return None
        if terminating and not self._controller.options.reconcile_terminating:
            await self._free_children(key, None)
            return None
        if self._pausing.concerns(key) and not terminating:
            handled = await self._pausing.handle(state, log)
            if handled is None or isinstance(handled, Paused):
                return handled
            state = handled
        subject = self._decoded(state)
        if finalizer and not terminating and finalizer not in state.meta.finalizers:
            state = await self._services.writer.add_finalizer(self._kind, state, finalizer)
            if state is None:
                return (
                    None  # without its finalizer no work may begin; the object's next change leads here again
                )
            if self._pausing.is_paused(state):
                return (
                    PAUSED_RESULT  # the response shows it before the watch does; that change leads here again
                )
            subject = self._decoded(state)
        context = RunningContext(self._services, state, log=log, causes=causes, deadline=deadline)
        self._services.dependencies.leadership.check_work()
        return _checked(await self._controller.reconcile(subject, context), self._controller.name)

    async def _finalize(
        self,
        key: ObjectKey,
        state: RawObject,
        log: FieldLog,
        causes: tuple[Cause, ...],
        deadline: float | None,
    ) -> None:
        context = RunningContext(self._services, state, log=log, causes=causes, deadline=deadline)
        subject, finalizer = self._decoded(state), self._controller.finalizer_name
        self._services.dependencies.leadership.check_work()
        try:
            await self._controller.finalize(subject, context)
            await self._free_children(key, None)
            await self._services.writer.remove_finalizer(self._kind, state, finalizer)
        except Conflict:
            raise
        except RetryLater as error:
            context.event("FinalizerPending", f"{finalizer}: {text_of(error)}")
            raise
        except Exception as error:
            # The user who deleted the object does not see our log, so the failure is also an Event.
            context.warn("FinalizerFailed", f"{finalizer}: {text_of(error)}")
            raise

    async def _owner_elsewhere(self, key: ObjectKey, state: RawObject | None) -> str:
        """Return the uid of the owner if it exists but is not in the cache, else an empty string.

        Such an owner does not match the operator's label selector, or is in another shard or namespace, so another
        operator or replica is responsible for its children.
        """
        if state is not None or not key.name or self._own.covering(key) is not None:
            return ""
        if not any(children.of(key) for children in self._finalized_children):
            return ""
        live = await self._services.reader.read(self._kind, key)
        return "" if live is None else live.meta.uid

    async def _free_children(self, key: ObjectKey, owner: RawObject | None, *, left_to: str = "") -> None:
        """Remove our finalizer from children that are being deleted, and from all children of a deleted owner.

        A key without a name stands for orphans: their finalizer is removed unless they have an owner again. Children of
        the owner with the uid `left_to` are skipped: another operator or replica reconciles it.
        """
        for children in self._finalized_children:
            for child in children.of(key):
                if left_to and any(reference.uid == left_to for reference in child.meta.owner_references):
                    continue
                if owner is None or child.meta.deletion_timestamp is not None:
                    await self._services.writer.remove_finalizer(
                        children.informers.kind,
                        child,
                        children.finalizer,
                        when=None if key.name else children.declared.is_orphan,
                    )

    def _decoded(self, state: RawObject) -> T:
        try:
            return decode_as(self._controller.kind, state.raw)
        except DecodeError as error:
            malformed = self._with_remedy(state, error)
            self._report_malformed(self._own, state, malformed)
            raise MalformedObject(str(malformed)) from error

    def _with_remedy(self, state: RawObject, error: DecodeError) -> DecodeError:
        """Return the error, with advice if the object waits to be deleted and our finalizer cannot run."""
        finalizer = self._controller.finalizer_name
        if state.meta.deletion_timestamp is None or finalizer not in state.meta.finalizers:
            return error
        explained = DecodeError(
            f"{error}; it waits to be deleted: fix the object, or remove its finalizer {finalizer} by hand",
            path=error.path,
        )
        explained.__cause__ = error.__cause__
        return explained


class _Children:
    """The children of one kind that have our finalizer, indexed by their owner."""

    def __init__(self, child: Owned[Any], informers: AnyInformerSet, owner: Kind, holds: HoldsUid) -> None:
        self.informers = informers
        self.declared = child
        self.finalizer = child.finalizer
        self._index: Index[Any] = Index(
            child.form,  # pyright: ignore[reportArgumentType]  (a Kind stands for a class here)
            lambda found: [str(key) for key in _owner_keys(found, child, owner, holds)],
        )
        informers.add_index(self._index)

    def of(self, owner: ObjectKey) -> list[RawObject]:
        """Return the owner's children that carry the finalizer."""
        found = (self.informers.get_raw(key) for key in self.informers.keys_by_index(self._index, str(owner)))
        return [child for child in found if child is not None and self.finalizer in child.meta.finalizers]


def _owner_keys(found: Any, child: Owned[Any], owner: Kind, holds: HoldsUid) -> set[ObjectKey]:
    if isinstance(found, dict):
        meta = cast("JsonObject", found)["metadata"]
        namespace: str = meta.get("namespace", "")
        references = [from_wire(OwnerReference, one) for one in meta.get("ownerReferences") or ()]
        finalizers: list[str] = meta.get("finalizers") or []
    else:
        namespace, references = found.metadata.namespace, found.metadata.owner_references
        finalizers = found.metadata.finalizers
    seen = PartialMeta(namespace=namespace, owner_references=references, finalizers=finalizers)
    return child.owners(seen, owner, holds)


def _checked(result: Any, controller: str) -> Result | None:
    """Return the reconciler's result; raise TerminalError if it is neither None nor a Result, such as a coroutine."""
    if result is None or isinstance(result, Result):
        return result
    if inspect.iscoroutine(result):
        result.close()
        raise TerminalError(f"the reconciler of {controller} returned a coroutine: an `await` is missing")
    raise TerminalError(
        f"the reconciler of {controller} returned {type(result).__name__}: return None or a Result"
    )


def is_terminal(error: BaseException) -> bool:
    """Return True if a retry cannot help: the error, its cause, or all errors of its group are terminal."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_terminal(one) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, TerminalError | UndeclaredAccess | DeclarationError):
            return True
        seen = seen.__cause__
    return False
