"""Small operators with one bug each, of the kinds that Sieve's and Acto's papers report; `prove` must find each.

Each function returns a new operator; its docstring says what is wrong. `PLANTED` lists them with the properties that
may fail, as any of them is a true finding.
"""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.testing import External

SAMPLE = {
    "apiVersion": "planted.example.com/v1",
    "kind": "Depot",
    "metadata": {"name": "north"},
    "spec": {"size": 2},
}
FINALIZER = "planted.example.com/depot"


class DepotSpec(kw.Model):
    size: int = 1


class DepotStatus(kw.Model):
    observed_generation: int = 0
    phase: str = ""
    count: int = 0
    record: str = ""
    conditions: list[kw.Condition] = []


class Depot(kw.Resource[DepotSpec, DepotStatus], group="planted.example.com", version="v1"):
    """Something with children."""


Planted = Callable[[], kw.Operator]
PLANTED: dict[str, tuple[Planted, frozenset[str]]] = {}
Reconcile = Callable[[Depot, kw.Context], Awaitable[Any]]


def planted(*properties: str) -> Callable[[Planted], Planted]:
    """List an operator with the properties that may fail."""

    def add(make: Planted) -> Planted:
        PLANTED[make.__name__] = make, frozenset(properties)
        return make

    return add


def operator_of(reconcile: Any, **options: Any) -> kw.Operator:
    proving = options.pop("proving", None)
    needs = [kw.needs(core_v1.ConfigMap, "create", "delete")]
    controller = kw.Controller(
        Depot, reconcile, name="depots", owns=[core_v1.ConfigMap], needs=needs, **options
    )
    return kw.Operator(controller, name="depots", lifespan=proving, proving=proving)


def label(depot: Depot, suffix: str = "", **data: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(
        kw.Meta(f"{depot.metadata.name}{suffix}"), data={"size": str(depot.spec.size), **data}
    )


def ready(depot: Depot) -> DepotStatus:
    condition = kw.Condition(type="Ready", status="True", reason="Done")
    return DepotStatus(observed_generation=depot.metadata.generation, conditions=[condition])


@planted("nothing-left")
def missing_owner_reference() -> kw.Operator:
    """Create a child that no owner reference and no finalizer removes."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot), owned=False)

    return operator_of(reconcile)


@planted("nothing-doubled", "healthy", "settles")
def create_before_checking() -> kw.Operator:
    """Create a child with a generated name at each reconcile, without a look at what exists."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.create(core_v1.ConfigMap(kw.Meta(generate_name="part-")))

    return operator_of(reconcile)


@planted("nothing-doubled", "settles", "same-final-state", "truthful-status")
def state_in_memory() -> kw.Operator:
    """Remember in memory what was created."""
    created: set[str] = set()

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        if depot.metadata.uid not in created:
            await ctx.create(core_v1.ConfigMap(kw.Meta(generate_name="part-")))
            created.add(depot.metadata.uid)

    return operator_of(reconcile)


@planted("truthful-status")
def status_before_work() -> kw.Operator:
    """Report Ready, and then do the work."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.patch_status(depot, ready(depot))
        await ctx.apply(label(depot))

    return operator_of(reconcile)


@planted("same-final-state")
def marked_as_done_before_the_work() -> kw.Operator:
    """Write a phase before the child is created, and skip everything if the phase is there."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        if depot.status.phase != "Created":
            await ctx.patch_status(depot, DepotStatus(phase="Created"))
            await ctx.apply(label(depot))

    return operator_of(reconcile, when=kw.predicates.generation_changed)


@planted("same-final-state")
def second_child_only_with_the_first() -> kw.Operator:
    """Create two children if the first does not exist: a crash between them loses the second."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        if await ctx.find(core_v1.ConfigMap, f"{depot.metadata.name}-a") is None:
            await ctx.apply(core_v1.ConfigMap(kw.Meta(f"{depot.metadata.name}-a")))
            await ctx.apply(core_v1.ConfigMap(kw.Meta(f"{depot.metadata.name}-b")))

    return operator_of(reconcile)


class DeletesItsLabel:
    """Create a child without an owner, which the finalizer must delete."""

    async def reconcile(self, depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot), owned=False)


@planted("nothing-left")
def finalizer_removed_too_early() -> kw.Operator:
    """Start the delete in the finalizer and do not wait for it: the finalizer is removed before the child."""
    tasks: set[asyncio.Task[None]] = set()

    class Reconciler(DeletesItsLabel):
        async def finalize(self, depot: Depot, ctx: kw.Context) -> None:
            tasks.add(asyncio.create_task(self._delete(depot, ctx)))

        async def _delete(self, depot: Depot, ctx: kw.Context) -> None:
            await asyncio.sleep(1)
            await ctx.client.delete(core_v1.ConfigMap, depot.metadata.name, depot.metadata.namespace)

    return operator_of(Reconciler(), finalizer=FINALIZER)


@planted("nothing-left", "settles")
def finalizer_that_cannot_be_repeated() -> kw.Operator:
    """Fail in the finalizer if the child is gone already, as after a crash."""

    class Reconciler(DeletesItsLabel):
        async def finalize(self, depot: Depot, ctx: kw.Context) -> None:
            await ctx.client.delete(core_v1.ConfigMap, depot.metadata.name, depot.metadata.namespace)

    return operator_of(Reconciler(), finalizer=FINALIZER)


@planted("same-final-state")
def error_swallowed() -> kw.Operator:
    """Ignore the error of a write, so that nothing is tried again."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        with suppress(kw.KubewrightError):
            await ctx.apply(label(depot))

    return operator_of(reconcile)


@planted("nothing-left")
def finalizer_without_work() -> kw.Operator:
    """Have a finalizer that deletes nothing."""

    class Reconciler(DeletesItsLabel):
        async def finalize(self, depot: Depot, ctx: kw.Context) -> None:
            ctx.log.info("Finalized")

    return operator_of(Reconciler(), finalizer=FINALIZER)


@planted("settles")
def immutable_field_changed() -> kw.Operator:
    """Change the data of an immutable ConfigMap, which the server refuses for ever."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        child = label(depot)
        child.immutable = True
        await ctx.apply(child)

    return operator_of(reconcile)


@planted("healthy", "settles")
def status_that_counts_reconciles() -> kw.Operator:
    """Count reconciles in the status, whose change triggers the next reconcile."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.patch_status(depot, DepotStatus(count=depot.status.count + 1))

    return operator_of(reconcile)


@planted("settles", "healthy", "truthful-status")
def time_in_a_child() -> kw.Operator:
    """Write the time of the reconcile into a child."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot, at=str(int(time.time()))))

    return operator_of(reconcile)


@planted("settles", "healthy", "truthful-status")
def random_value_in_a_child() -> kw.Operator:
    """Write a new random value into a child at each reconcile."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot, password=str(random.random())))

    return operator_of(reconcile)


@planted("truthful-status")
def observed_generation_ahead() -> kw.Operator:
    """Report a generation that does not exist yet."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot))
        await ctx.patch_status(depot, DepotStatus(observed_generation=depot.metadata.generation + 1))

    return operator_of(reconcile)


@planted("within-rights")
def undeclared_access() -> kw.Operator:
    """List Secrets without a rule for them."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.client.list(core_v1.Secret, namespace=depot.metadata.namespace)

    return operator_of(reconcile)


@planted("healthy")
def missing_label_assumed() -> kw.Operator:
    """Use a label that the user need not set."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot, team=depot.metadata.labels["team"]))

    return operator_of(reconcile)


@planted("same-final-state")
def later_changes_ignored() -> kw.Operator:
    """Apply the spec of the first reconcile only."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        if await ctx.find(core_v1.ConfigMap, depot.metadata.name) is None:
            await ctx.apply(label(depot))

    return operator_of(reconcile)


@planted("same-final-state", "settles")
def difference_to_the_size_in_memory() -> kw.Operator:
    """Add the difference to the size that is remembered, which a restart forgets."""
    sizes: dict[str, int] = {}

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        more = depot.spec.size - sizes.get(depot.metadata.uid, 0)
        if more:
            await ctx.patch_status(depot, DepotStatus(count=depot.status.count + more))
            sizes[depot.metadata.uid] = depot.spec.size

    return operator_of(reconcile)


@planted("same-final-state")
def old_child_remembered_in_memory() -> kw.Operator:
    """Replace a child by one with another name, and delete the old one only if it is remembered."""
    names: dict[str, str] = {}

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        child = label(depot, f"-{depot.spec.size}")
        await ctx.apply(child)
        old = names.get(depot.metadata.uid)
        names[depot.metadata.uid] = child.metadata.name
        if old is not None and old != child.metadata.name:
            await ctx.client.delete(core_v1.ConfigMap, old, depot.metadata.namespace)

    return operator_of(reconcile)


@planted("healthy")
def loop_that_never_waits() -> kw.Operator:
    """Wait for a child in a loop that never gives the time back."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        for _ in itertools.repeat(None):
            await asyncio.sleep(0)

    return operator_of(reconcile)


@planted("healthy")
def task_for_each_reconcile() -> kw.Operator:
    """Start a task at each reconcile that never ends."""
    tasks: list[asyncio.Task[None]] = []

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        await ctx.apply(label(depot))
        tasks.append(asyncio.create_task(asyncio.sleep(10**9)))

    return operator_of(reconcile)


@planted("settles", "healthy")
def ready_flips() -> kw.Operator:
    """Toggle a value between two reconciles."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        phase = "Odd" if depot.status.phase != "Odd" else "Even"
        await ctx.patch_status(depot, DepotStatus(phase=phase))

    return operator_of(reconcile)


class Accounts(External):
    """An external system in which accounts are opened by name, as often as one likes."""

    def resources(self) -> dict[str, list[Any]]:
        """Return the accounts by their owner."""
        return self.state

    async def find(self, owner: str) -> int:
        return await self.call(f"find {owner}", lambda: len(self.state.get(owner, [])))

    async def open(self, owner: str) -> str:
        await self.call(f"open {owner}", lambda: self.state.setdefault(owner, []).append({}))
        return f"account of {owner}"

    async def close(self, owner: str) -> None:
        await self.call(f"close {owner}", lambda: self.state.pop(owner, None))


class WithAccounts:
    """Keep an account for each Depot."""

    accounts: Accounts

    @asynccontextmanager
    async def simulated(self) -> AsyncGenerator[None, None]:
        self.accounts = Accounts()
        yield

    async def finalize(self, depot: Depot, ctx: kw.Context) -> None:
        await self.accounts.close(depot.metadata.name)


@planted("nothing-doubled")
def external_create_not_looked_up() -> kw.Operator:
    """Open an account unless the status has one: a crash before the status is written opens another."""

    class Reconciler(WithAccounts):
        async def reconcile(self, depot: Depot, ctx: kw.Context) -> None:
            if not depot.status.record:
                record = await self.accounts.open(depot.metadata.name)
                await ctx.patch_status(depot, DepotStatus(record=record))

    reconciler = Reconciler()
    return operator_of(reconciler, finalizer=FINALIZER, proving=reconciler.simulated)


@planted("nothing-left")
def external_resource_not_deleted() -> kw.Operator:
    """Leave the account open if the Depot is small."""

    class Reconciler(WithAccounts):
        async def reconcile(self, depot: Depot, ctx: kw.Context) -> None:
            if not await self.accounts.find(depot.metadata.name):
                await self.accounts.open(depot.metadata.name)

        async def finalize(self, depot: Depot, ctx: kw.Context) -> None:
            if depot.spec.size > 100:
                await self.accounts.close(depot.metadata.name)

    reconciler = Reconciler()
    return operator_of(reconciler, finalizer=FINALIZER, proving=reconciler.simulated)


@planted("nothing-doubled")
def external_create_repeated_after_a_lost_response() -> kw.Operator:
    """Try a call again within a reconcile although its effect may have happened."""

    class Reconciler(WithAccounts):
        async def reconcile(self, depot: Depot, ctx: kw.Context) -> None:
            if await self.accounts.find(depot.metadata.name):
                return
            try:
                await self.accounts.open(depot.metadata.name)
            except ConnectionError:
                await self.accounts.open(depot.metadata.name)

    reconciler = Reconciler()
    return operator_of(reconciler, finalizer=FINALIZER, proving=reconciler.simulated)
