"""The context of a reconcile: its interface only. `kubewright.controller.running.context` implements it."""

import builtins
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, overload

from kubewright.api import Index, JsonObject, Kind, Model, Object
from kubewright.api.meta import Propagation
from kubewright.controller.disruption import Disruption
from kubewright.controller.predicates import Cause
from kubewright.controller.references import FieldReference
from kubewright.controller.steps import StepRun
from kubewright.rates import Rate

if TYPE_CHECKING:
    # At run time this would load the HTTP library, which declaring an operator must not do.
    from kubewright.client import Client

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Object)
W = TypeVar("W", bound=Object | dict[str, Any])
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)

ContextPatchType = Literal["json", "merge", "strategic"]


class WithStatus(Protocol[T_co, S]):
    """An object of class `T_co` whose `status` is exactly of type `S`.

    The attribute can be assigned, which makes `S` invariant: a type checker takes it from the object and rejects the
    status of another kind, where a read-only one would let it choose a common base class.
    """

    status: S

    def __copy__(self) -> T_co:
        """Return a copy, of the class of the object."""
        ...


class Reader(ABC):
    """Read objects of the kinds that the controller declares."""

    @overload
    async def get(self, kind: type[T], name: str, namespace: str | None = None) -> T: ...
    @overload
    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> JsonObject: ...
    @overload
    async def get(self, kind: FieldReference[S], /) -> S: ...
    @abstractmethod
    async def get(self, kind: Any, name: str | None = None, namespace: str | None = None) -> Any:
        """Return one object, by default from the reconciled object's namespace; raise NotFound if it does not exist.

        With a `reference` it is the object that the reconciled object names; NotFound also means that it names none.
        """

    @overload
    async def find(self, kind: type[T], name: str, namespace: str | None = None) -> T | None: ...
    @overload
    async def find(self, kind: Kind, name: str, namespace: str | None = None) -> JsonObject | None: ...
    @overload
    async def find(self, kind: FieldReference[S], /) -> S | None: ...
    @abstractmethod
    async def find(self, kind: Any, name: str | None = None, namespace: str | None = None) -> Any:
        """Return one object like `get`, or None if it does not exist.

        A kind that is not served raises NotFound, unless it is watched with `optional=True`.
        """

    @overload
    async def list(
        self,
        kind: Index[S],
        value: str,
        /,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str = "",
    ) -> builtins.list[S]: ...
    @overload
    async def list(self, kind: FieldReference[S], /) -> builtins.list[S]: ...
    @overload
    async def list(
        self,
        kind: type[T],
        /,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str = "",
    ) -> builtins.list[T]: ...
    @overload
    async def list(
        self, kind: Kind, /, *, namespace: str | None = None, all_namespaces: bool = False, labels: str = ""
    ) -> builtins.list[JsonObject]: ...
    @abstractmethod
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
        """Return the objects of a kind, those that an index holds under a value, or those that a `reference` names.

        Of what a reference names, objects that do not exist are left out; the others come in the order of the names.

        A namespaced kind is listed in the reconciled object's namespace, as `get` reads it, or in `namespace`;
        `all_namespaces=True` lists every namespace that the operator watches. The reconciler of a cluster-scoped
        object has no namespace of its own and must choose one of the two.
        """


class Context(Reader):
    """The second argument of a reconciler: reads, writes, Events and a logger.

    Reads (`get`, `find`, `list`) use the cache if it is certain to have the object, otherwise the server; `live` always
    reads from the server. Writes: `apply` for children that your code describes completely, `create`, `update`, `patch`,
    `delete`, and `patch_status`. `event` and `warn` record Events, `run_sync` runs blocking functions in a thread,
    and `record` calls an external system so that the call can be replayed.

    Only what the controller declares is allowed (`owns=`, `watches=`, `needs=`); anything else raises UndeclaredAccess
    before a request is sent.
    """

    log: "logging.LoggerAdapter[logging.Logger]"
    """A logger whose records carry the controller, the object and the reconcileID."""
    causes: tuple[Cause, ...]
    """What triggered this reconcile. For logs only: reconcile the state, not the change."""
    deadline: float | None
    """The event loop's time at which this reconcile is cancelled; None without a timeout."""

    @property
    @abstractmethod
    def live(self) -> Reader:
        """Read from the server, not from the cache."""

    @property
    @abstractmethod
    def client(self) -> "Client":
        """Return the client, for requests that have no method here: logs, eviction, tokens, scale.

        It uses neither the cache nor the controller's declaration. It writes only while this replica leads.
        """

    @property
    @abstractmethod
    def leading(self) -> bool:
        """Return True if this replica may act now; always so without leader election.

        Writes to the cluster check it themselves. Check it before each operation on an external system, also in a
        thread: a process that was paused may continue after another replica has taken over.
        """

    @abstractmethod
    async def apply(
        self, child: W, *, owned: bool | None = None, adopt: bool = False, force: bool = True
    ) -> W:
        """Apply the child with server-side apply and return the live object; send nothing if nothing would change.

        If the child's kind is in `owns` (or with `owned=True`), the child gets an owner reference to the reconciled
        object. A child that exists and that the reconciled object does not control is refused with OwnedByAnother;
        `adopt=True` takes it over, unless another object controls it. A field that the previous desired child had and
        this one lacks is removed. With `force=False` fields of other managers are not taken over but raise Conflict.

        A child that is being deleted cannot be applied. It is returned as it is if the controller watches it, and the
        object is reconciled again once the child is gone; otherwise ObjectTerminating is raised.
        """

    @abstractmethod
    async def create(self, child: W, *, owned: bool | None = None) -> W:
        """Create the child, with an owner reference as `apply` sets it; raise AlreadyExists if it exists."""

    @abstractmethod
    async def update(self, target: W, change: Callable[[W], None]) -> W:
        """Call `change` with the live object and send the difference as a JSON patch.

        The patch carries the resourceVersion. If the object was changed meanwhile, it is read again and `change` is called
        again. Fields that the class does not know are kept.
        """

    @abstractmethod
    async def patch(
        self,
        target: W,
        patch: JsonObject | Sequence[JsonObject],
        *,
        type: ContextPatchType = "merge",  # noqa: A002 (the word of the whole API)
        subresource: str = "",
    ) -> W:
        """Send a patch without changes of our own: no comparison, no owner reference, no retry."""

    @overload
    async def patch_status(self, target: WithStatus[R, S], status: S | JsonObject | None = None) -> R: ...
    @overload
    async def patch_status(
        self, target: JsonObject, status: Model | JsonObject | None = None
    ) -> JsonObject: ...
    @abstractmethod
    async def patch_status(self, target: Any, status: Any = None) -> Any:
        """Apply the status, if it differs, and return the live object, or the given one if it no longer exists.

        Without `status` that of the target is sent. A type checker accepts only the status type of the target's kind.
        Only fields of this controller are changed. A condition keeps its lastTransitionTime while its status stays
        the same. One without an observedGeneration gets the generation of the reconciled object, or for another
        object the generation that the target was read with.
        """

    @abstractmethod
    async def delete(
        self,
        target: Object | JsonObject,
        *,
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete the object with this uid; do nothing if it is gone or another object has its name."""

    @abstractmethod
    def step(
        self,
        name: str,
        *,
        input: Model | Mapping[str, Any] | Sequence[Any] | str | float | None = None,  # noqa: A002 (the author's word)
    ) -> AbstractAsyncContextManager[StepRun]:
        """Open a step of long work that is remembered in the status, for `async with`.

            async with ctx.step("snapshot", input=disk.spec.size) as step:
                if not step.done:
                    step.outcome = await provider.snapshot(disk.spec.size, token=step.key)

        When the block ends, the outcome is recorded for this input; an error records nothing. Later reconciles, also
        after a crash, find `step.done` and the outcome; another input starts the step again. Raise NotLeading if this
        replica may not act. The kind's status needs a field `steps: list[kw.Step] = []`.
        """

    @abstractmethod
    def disruption(self) -> AbstractContextManager[Disruption]:
        """Mark the writes of a block as disruptive, so that they keep to the budget and the windows of the controller.

            with ctx.disruption():
                await ctx.apply(stateful_set)

        Before a write in the block changes or deletes an object that exists, one of the windows must be open, and a
        slot of the budget is taken. If that is not possible now, the write raises DisruptionDeferred, and the object
        is reconciled again when it is. Writes that create or change nothing, and `patch_status`, are not held back.
        """

    @abstractmethod
    async def wait_for(self, rate: Rate, group: Hashable = None) -> None:
        """Wait until a rate allows the next call of an external system.

            accounts = kubewright.rates.Rate(at_most=10, every="1s")  # one for the whole program

            await ctx.wait_for(accounts)

        Each `group` is limited by itself. The reconcile waits, and with it a worker of the controller.
        """

    @abstractmethod
    def event(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Record an Event of type Normal about the reconciled object; never waits, never fails."""

    @abstractmethod
    def warn(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Record an Event of type Warning about the reconciled object; never waits, never fails."""

    @abstractmethod
    async def run_sync(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking function in one of the controller's threads and return its result.

        Raise TypeError if the function is asynchronous: await it instead.
        """

    @overload
    async def record(
        self, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def record(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @abstractmethod
    async def record(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of an external system and return its result, with the call and its answer in the journal.

            address = await ctx.record(provider.create, bucket.metadata.name, bucket.spec.region)

        `kubewright replay` returns the recorded answer instead of calling the function. A function that is not
        asynchronous runs in a thread, as with `run_sync`. Arguments and answer are recorded as JSON and read again by
        the function's annotations; values that are annotated with `Field(sensitive=True)` are not recorded.
        """
