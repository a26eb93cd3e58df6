"""What a reconciler is given beside its object: the one door to the cluster. Only the face; `running` holds the body."""

import builtins
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from kubewright.api import Index, JsonObject, Kind, Model, Object
from kubewright.controller.predicates import Cause

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Object)
W = TypeVar("W", bound=Object | dict[str, Any])
S = TypeVar("S")

PatchType = Literal["json", "merge", "strategic"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]


class Reader(ABC):
    """Read objects of the kinds that the controller declares."""

    @overload
    async def get(self, kind: type[T], name: str, namespace: str | None = None) -> T: ...
    @overload
    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> JsonObject: ...
    @abstractmethod
    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object, by default from the reconciled object's namespace; raise NotFound if it does not exist."""

    @overload
    async def find(self, kind: type[T], name: str, namespace: str | None = None) -> T | None: ...
    @overload
    async def find(self, kind: Kind, name: str, namespace: str | None = None) -> JsonObject | None: ...
    @abstractmethod
    async def find(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object like `get`, or None if it does not exist; a kind that is not served raises NotFound."""

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
        """Return the objects of a kind, or those that an index holds under a value.

        A namespaced kind is listed in the reconciled object's namespace, as `get` reads it, or in `namespace`;
        `all_namespaces=True` lists every namespace that the operator watches. The reconciler of a cluster-scoped
        object has no namespace of its own and must choose one of the two.
        """


class Context(Reader):
    """Serve one reconcile: reads, writes, events, a logger. Nothing beyond the controller's declaration."""

    log: "logging.LoggerAdapter[logging.Logger]"
    """Logs with the controller, the object and the reconcileID on each line."""
    causes: tuple[Cause, ...]
    """What led to this run, for logs only: the state is what counts."""
    deadline: float | None
    """When this reconcile is cancelled, in the event loop's time; None without a timeout."""

    @property
    @abstractmethod
    def live(self) -> Reader:
        """Read from the server, past the cache."""

    @property
    @abstractmethod
    def client(self) -> Any:
        """Return the `kubewright.client.Client`, for verbs that have no door here: logs, eviction, tokens, scale.

        It knows neither the cache nor what the controller declares. It writes only while this replica leads.
        """

    @property
    @abstractmethod
    def leading(self) -> bool:
        """Return True if this replica may act now; always so without leader election.

        Writes to the cluster check it themselves. Check it before each operation on an external system, also in a
        thread: a process that was paused may go on when another replica has long taken over.
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
        """Create the child; raises AlreadyExists where there is one."""

    @abstractmethod
    async def update(self, target: W, change: Callable[[W], None]) -> W:
        """Change an object and send the difference as a JSON patch; read again and retried when raced."""

    @abstractmethod
    async def patch(
        self,
        target: W,
        patch: JsonObject | Sequence[JsonObject],
        *,
        type: PatchType = "merge",  # noqa: A002 (the word of the whole API)
        subresource: str = "",
    ) -> W:
        """Send a patch as it is."""

    @abstractmethod
    async def patch_status(self, target: W, status: Model | JsonObject | None = None) -> W:
        """Apply the status fields of this controller where they differ; an object that is gone is no error.

        Without `status` the target's own is sent. Conditions keep their lastTransitionTime while their
        status stays. Those without an observedGeneration get that of the object given to the reconciler, or,
        for another object, the one the target was read with.
        """

    @abstractmethod
    async def delete(
        self,
        target: Object | JsonObject,
        *,
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete this very object (by uid); one that is gone, or replaced by a namesake, is no error."""

    @abstractmethod
    def event(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Tell about the reconciled object in an Event; never waits, never fails."""

    @abstractmethod
    def warn(self, reason: str, note: str, *, action: str = "", related: Object | None = None) -> None:
        """Tell about the reconciled object in an Event of type Warning; never waits, never fails."""

    @abstractmethod
    async def run_sync(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a blocking function in one of the controller's threads."""
