"""A controller as data: its kind, its reconciler, what triggers it, how it runs, and what it returns."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

import msgspec

from kubewright.api import DeclarationError, Kind, Object, check_types, kind_of, names
from kubewright.backoff import RETRY_BACKOFF, Backoff
from kubewright.controller.context import Context
from kubewright.controller.disruption import Budget, DisruptionWindow, check_limits
from kubewright.controller.predicates import Predicate
from kubewright.controller.references import BoundReference, FieldReference
from kubewright.controller.steps import steps_field
from kubewright.controller.watches import EVERYWHERE, Owned, Selector, Source, Watch, check_finalizer, owned
from kubewright.rates import GroupBy, Rate

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
_SPECIAL_VERBS = frozenset({"bind", "escalate", "impersonate", "use", "approve", "sign", "attest"})


class Result(msgspec.Struct, frozen=True):
    """When to reconcile the object again; a reconciler that returns None is called on the next change.

    Up to a tenth of the delay is added at random, so that objects created together are not reconciled together.
    """

    after: timedelta
    priority: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.after, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise TypeError(f"Result(after={self.after!r}): pass timedelta(seconds={self.after!r})")
        if self.after <= timedelta(0):
            raise ValueError(
                f"Result(after={self.after!r}): the delay must be positive; return None when done"
            )


ReconcileFunction = Callable[[T, Context], Awaitable[Result | None]]
FinalizeFunction = Callable[[T, Context], Awaitable[None]]


class Reconciler(Protocol[T_contra]):
    """An object that reconciles; one that also has `finalize` cleans up what the cluster cannot."""

    def reconcile(self, subject: T_contra, ctx: Context, /) -> Awaitable[Result | None]:
        """Bring the cluster to the desired state of the object."""
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a controller runs; the defaults suit nearly all controllers.

    `timeout` limits each reconcile. `needs_leader_election=False` runs the controller on every replica. `threads`
    limits `ctx.run_sync`. `reconcile_terminating=True` passes objects that are being deleted to the reconciler like
    any other, for kinds that another controller's finalizer holds. `reporter` is the reporting controller of its
    Events, by default the operator. `field_manager` defaults to the controller's name; after a rename, list the old
    name in `former_field_managers`, so that fields it applied can still be removed. Fields that another manager changed
    and `ctx.apply` corrects are counted (`drift="metric"`), or also reported on the object (`drift="event"`).
    `fair_by="namespace"` lets namespaces take turns in the queue, so that a busy one does not delay the others; a
    function of the object's key returns any other group. `rate` limits how often reconciles start (`kubewright.rates`).
    `budget` and `windows` limit the writes of `with ctx.disruption()`
    (`kubewright.disruption`): a `Budget` that all objects share, and `Window`s of which one must be open.
    """

    timeout: timedelta | None = None
    backoff: Backoff = RETRY_BACKOFF
    needs_leader_election: bool = True
    threads: int = 4
    reconcile_terminating: bool = False
    reporter: str = ""
    field_manager: str = ""
    former_field_managers: tuple[str, ...] = ()
    drift: Literal["metric", "event"] = "metric"
    fair_by: GroupBy = None
    rate: Rate | None = None
    budget: Budget | None = None
    windows: Sequence[DisruptionWindow] = ()


class Needs(msgspec.Struct, frozen=True):
    """Verbs on a kind; created by `needs`."""

    kind: Kind
    verbs: frozenset[str]
    subresource: str = ""


def needs(kind: type[Any] | Kind, *verbs: str, subresource: str = "") -> Needs:
    """Declare verbs on a kind: `needs(core_v1.ConfigMap, "get")`."""
    known = kind_of(kind)
    wrong = sorted(set(verbs) - VERBS - _SPECIAL_VERBS)
    if wrong or not verbs:
        problem = f"unknown verb {wrong[0]!r}" if wrong else "no verbs given"
        raise DeclarationError(f"needs({known.kind}): {problem}; use {', '.join(sorted(VERBS))}")
    return Needs(known, frozenset(verbs), subresource)


DEFAULT_OPTIONS = Options()
DEFAULT_RESYNC = timedelta(hours=10)


class Controller(Generic[T]):
    """Declare a controller: `Controller(Foo, reconcile, owns=[...], watches=[...])`.

    - `owns`: kinds of children; what the reconciler applies of them gets an owner reference, and a change of a child
      reconciles its owner. An item is a class or `owned(...)`.
    - `watches`: other kinds and external systems whose changes reconcile an object: `watch(...)` and `source(...)`.
    - `needs`: verbs that the reconciler uses beyond that: `needs(core_v1.Secret, "get")`.
    - `when`: a predicate for changes of the kind itself, such as `predicates.generation_changed`.
    - `selector`: which objects of the kind are watched.
    - `resync`: how often each object is reconciled without a change; `concurrency`: how many objects at a time.
    - `options`: time limit, backoff, threads, field manager.
    """

    def __init__(
        self,
        kind: type[T] | Kind,
        reconciler: ReconcileFunction[T] | Reconciler[T],
        *,
        name: str = "",
        owns: "Sequence[type[Any] | Kind | Owned[Any]]" = (),
        watches: "Sequence[Watch[Any] | FieldReference[Any] | Source[Any]]" = (),
        needs: Sequence[Needs] = (),
        finalizer: str = "",
        when: Predicate[T] | None = None,
        selector: Selector = EVERYWHERE,
        resync: timedelta = DEFAULT_RESYNC,
        concurrency: int = 1,
        options: Options = DEFAULT_OPTIONS,
    ) -> None:
        described = kind_of(kind)
        if isinstance(kind, type) and issubclass(kind, Object):
            check_types(kind)
        self.kind: type[T] | Kind = kind
        self.name: str = name or described.kind.lower()
        problems = names.dns1123_subdomain(self.name)
        if problems:
            raise DeclarationError(f"controller name {self.name!r}: {problems[0]}")
        if concurrency < 1:
            raise DeclarationError(f"controller {self.name!r}: concurrency={concurrency}: at least 1")
        if not isinstance(resync, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise DeclarationError(
                f"controller {self.name!r}: resync={resync!r}: pass timedelta(seconds={resync!r})"
            )
        if resync <= timedelta(0):
            raise DeclarationError(f"controller {self.name!r}: resync={resync!r}: must be positive")
        for keyword, given in (("owns", owns), ("watches", watches), ("needs", needs)):
            if not isinstance(given, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
                raise DeclarationError(
                    f"controller {self.name!r}: {keyword}= takes a list: write {keyword}=[{_shown(given)}]"
                )
        self.owns: tuple[Owned[Any], ...] = tuple(
            child if isinstance(child, Owned) else owned(child) for child in owns
        )
        self.references: Mapping[FieldReference[Any], BoundReference[Any]] = {
            field: self._bound(field) for field in watches if isinstance(field, FieldReference)
        }
        """What the kind names in its fields; their watches are among `watches`."""
        self.watches: tuple[Watch[Any], ...] = tuple(
            self.references[watched].watch if isinstance(watched, FieldReference) else watched
            for watched in watches
            if not isinstance(watched, Source)
        )
        self.sources: tuple[Source[Any], ...] = tuple(
            source for source in watches if isinstance(source, Source)
        )
        self.needs: tuple[Needs, ...] = tuple(needs)
        self.when = when
        self.selector = selector
        self.resync = resync
        self.concurrency = concurrency
        grouped = {"fair_by": options.fair_by, "rate.by": options.rate and options.rate.by}
        for option, by in grouped.items():
            if by == "namespace" and not described.namespaced:
                raise DeclarationError(
                    f'controller {self.name!r}: {option}="namespace": {described.kind} is cluster-scoped; '
                    "pass a function of the object's key"
                )
        check_limits(self.name, options.budget, options.windows)
        self.options = options
        self.field_manager: str = options.field_manager or self.name
        self.steps_field: str = steps_field(kind)
        """The JSON name of the status field in which steps are remembered; empty if the kind has none."""
        self.step_managers: tuple[str, ...] = tuple(
            f"{manager}-steps" for manager in (self.field_manager, *options.former_field_managers)
        )
        """The field manager that records steps, and those of former names."""
        self._reconcile, self._finalize = _functions(self.name, reconciler)
        self.finalizer_name: str = ""
        if finalizer:
            self._set_finalizer(finalizer)
        elif self._finalize is not None:
            raise DeclarationError(
                f"controller {self.name!r} has finalize() but no name for it: "
                'add finalizer="example.com/name"'
            )
        self._check_indexes()

    @property
    def functions(self) -> tuple[ReconcileFunction[T], FinalizeFunction[T] | None]:
        """Return the author's reconciler, and the finalizer if there is one."""
        return self._reconcile, self._finalize

    async def reconcile(self, subject: T, ctx: Context) -> Result | None:
        """Run the author's reconciler."""
        return await self._reconcile(subject, ctx)

    async def finalize(self, subject: T, ctx: Context) -> None:
        """Run the author's finalizer."""
        if self._finalize is not None:
            await self._finalize(subject, ctx)

    def finalizer(self, name: str) -> Callable[[FinalizeFunction[T]], FinalizeFunction[T]]:
        """Declare the function that cleans up before an object is deleted; if it raises, the object stays."""

        def declare(function: FinalizeFunction[T]) -> FinalizeFunction[T]:
            if self._finalize is not None:
                raise DeclarationError(
                    f"controller {self.name!r} has a finalizer already: {self.finalizer_name!r}"
                )
            _check_async(function, f"the finalizer of controller {self.name!r}")
            self._finalize = function
            self._set_finalizer(name)
            return function

        return declare

    async def __call__(self, subject: T, ctx: Context) -> Result | None:
        """Run the author's reconciler, as the decorated function would."""
        return await self._reconcile(subject, ctx)

    def __repr__(self) -> str:
        return f"Controller({kind_of(self.kind).kind}, name={self.name!r})"

    def _set_finalizer(self, name: str) -> None:
        check_finalizer(name, f"controller {self.name!r}")
        if self._finalize is None:
            raise DeclarationError(
                f"controller {self.name!r} has finalizer={name!r} but nothing to run: "
                "give its reconciler finalize(), or decorate a function with its .finalizer(name)"
            )
        self.finalizer_name = name

    def _bound(self, field: FieldReference[Any]) -> BoundReference[Any]:
        try:
            return field.bind(self.kind)
        except DeclarationError as error:
            raise DeclarationError(f"controller {self.name!r}: {error}") from None

    def _check_indexes(self) -> None:
        for watched in self.watches:
            if watched.via is not None and kind_of(watched.via.kind) != kind_of(self.kind):
                raise DeclarationError(
                    f"controller {self.name!r}: watch({kind_of(watched.kind).kind}, via=...) needs an index of "
                    f"{kind_of(self.kind).kind}, not of {kind_of(watched.via.kind).kind}"
                )


def controller(
    kind: type[T] | Kind,
    *,
    name: str = "",
    owns: "Sequence[type[Any] | Kind | Owned[Any]]" = (),
    watches: "Sequence[Watch[Any] | FieldReference[Any] | Source[Any]]" = (),
    needs: Sequence[Needs] = (),
    when: Predicate[T] | None = None,
    selector: Selector = EVERYWHERE,
    resync: timedelta = DEFAULT_RESYNC,
    concurrency: int = 1,
    options: Options = DEFAULT_OPTIONS,
) -> Callable[[ReconcileFunction[T]], Controller[T]]:
    """Make the decorated function the reconciler of a `Controller`, which takes its place.

    The function is `async def reconcile(obj, ctx)` and returns None, or a `Result` to be called again later. The
    parameters are those of `Controller`.
    """

    def declare(function: ReconcileFunction[T]) -> Controller[T]:
        return Controller(
            kind,
            function,
            name=name,
            owns=owns,
            watches=watches,
            needs=needs,
            when=when,
            selector=selector,
            resync=resync,
            concurrency=concurrency,
            options=options,
        )

    return declare


def _functions(
    name: str, reconciler: ReconcileFunction[T] | Reconciler[T]
) -> tuple[ReconcileFunction[T], FinalizeFunction[T] | None]:
    reconcile: Any = getattr(reconciler, "reconcile", None)
    finalize: Any = None
    if reconcile is None:
        if not callable(reconciler):
            raise DeclarationError(
                f"controller {name!r}: a reconciler is an async function, or an object with an async reconcile()"
            )
        reconcile = reconciler
    else:
        finalize = getattr(reconciler, "finalize", None)
        if finalize is not None:
            _check_async(finalize, f"finalize() of controller {name!r}")
    _check_async(reconcile, f"the reconciler of controller {name!r}")
    return cast("ReconcileFunction[T]", reconcile), cast("FinalizeFunction[T] | None", finalize)


def _check_async(function: Any, what: str) -> None:
    """Raise DeclarationError unless the function is `async def` and takes an object and a context."""
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 (its signature, not whether it is callable)
    name = getattr(function, "__name__", type(function).__name__)
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)):
        raise DeclarationError(
            f"{what} must be `async def`: write `async def {name}(...)`; "
            "blocking work goes through `await ctx.run_sync(...)`"
        )
    signature = inspect.signature(call)
    try:
        signature.bind(None, None)
    except TypeError:
        raise DeclarationError(
            f"{what} takes the object and a context: write `async def {name}(obj, ctx: kw.Context)`, "
            f"not `{name}{signature}`"
        ) from None


def _shown(given: object) -> str:
    return given.__name__ if isinstance(given, type) else f"{type(given).__name__.lower()}(...)"
