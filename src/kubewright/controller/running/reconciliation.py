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
from kubewright.controller.running.reading import AnyInformerSet
from kubewright.controller.running.telemetry import FieldLog, ReconcileLog
from kubewright.controller.watches import Owned
from kubewright.guards import text_of
from kubewright.journal import current

T = TypeVar("T")

ReportMalformed = Callable[[AnyInformerSet, RawObject, DecodeError], None]


class MalformedObject(TerminalError):
    """An object that does not fit its class; it has been reported."""


class Reconciliation(Generic[T]):
    """Reconcile keys of one controller."""

    def __init__(
        self,
        services: Services,
        own: AnyInformerSet,
        log: FieldLog,
        report_malformed: ReportMalformed,
    ) -> None:
        controller = services.controller
        self._controller = controller
        self._kind = kind_of(controller.kind)
        self._services = services
        self._own = own
        self._log = log
        self._report_malformed = report_malformed
        self._finalized_children = [
            _Children(child, informers, self._kind)
            for child in controller.owns
            if child.finalizer
            for informers in services.informer_sets
            if informers.kind == kind_of(child.kind)
        ]

    def log_of(self, key: ObjectKey) -> FieldLog:
        """Return a logger for one reconcile of the key, with a reconcileID of its own."""
        return ReconcileLog(self._log, self._kind, key)

    def concerns(self, key: ObjectKey) -> bool:
        """Return True if a reconcile of the key would find anything to do, as far as is known."""
        return self._own.get_raw(key) is not None or any(
            children.of(key) for children in self._finalized_children
        )

    async def reconcile(
        self, key: ObjectKey, log: FieldLog, causes: tuple[Cause, ...], deadline: float | None
    ) -> Result | None:
        """Bring the cluster to the state that the object of this key describes, or clean up if it is gone."""
        state = self._own.get_raw(key)
        if (entry := current()) is not None:
            entry.state = state
        if self._finalized_children:
            await self._free_children(key, state)
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
        subject = self._decoded(state)
        if finalizer and not terminating and finalizer not in state.meta.finalizers:
            state = await self._services.writer.add_finalizer(self._kind, state, finalizer)
            if state is None:
                return (
                    None  # without its finalizer no work may begin; the object's next change leads here again
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
            # The user who deleted the object waits for it and does not see our log.
            context.warn("FinalizerFailed", f"{finalizer}: {text_of(error)}")
            raise

    async def _free_children(self, key: ObjectKey, owner: RawObject | None) -> None:
        """Remove our finalizer from children that are being deleted, and from all of an owner that is gone.

        The key of orphans has no name: their finalizer is removed unless they have an owner again.
        """
        for children in self._finalized_children:
            for child in children.of(key):
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
        """Return the error with what to do if the object waits for our finalizer, which cannot run."""
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
    """The children of one kind that carry our finalizer, found by their owner."""

    def __init__(self, child: Owned[Any], informers: AnyInformerSet, owner: Kind) -> None:
        self.informers = informers
        self.declared = child
        self.finalizer = child.finalizer
        self._index: Index[Any] = Index(
            child.form,  # pyright: ignore[reportArgumentType]  (a Kind stands for a class here)
            lambda found: [str(key) for key in _owner_keys(found, child, owner)],
        )
        informers.add_index(self._index)

    def of(self, owner: ObjectKey) -> list[RawObject]:
        """Return the owner's children that carry the finalizer."""
        found = (self.informers.get_raw(key) for key in self.informers.keys_by_index(self._index, str(owner)))
        return [child for child in found if child is not None and self.finalizer in child.meta.finalizers]


def _owner_keys(found: Any, child: Owned[Any], owner: Kind) -> set[ObjectKey]:
    if isinstance(found, dict):
        meta = cast("JsonObject", found)["metadata"]
        namespace: str = meta.get("namespace", "")
        references = [from_wire(OwnerReference, one) for one in meta.get("ownerReferences") or ()]
        finalizers: list[str] = meta.get("finalizers") or []
    else:
        namespace, references = found.metadata.namespace, found.metadata.owner_references
        finalizers = found.metadata.finalizers
    seen = PartialMeta(namespace=namespace, owner_references=references, finalizers=finalizers)
    return child.owners(seen, owner)


def _checked(result: Any, controller: str) -> Result | None:
    """Raise TerminalError if the reconciler returned anything but None or a Result, such as a coroutine."""
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
