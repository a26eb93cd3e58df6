"""Small operators with one bug each that depends on the order of messages; `prove --only orders` must find each.

Each function returns a new operator; its docstring says what is wrong. `ORDER_BUGS` lists them with the properties that
may fail, the samples, and the depth at which the bug is found.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import kubewright as kw
from kubewright.api.builtin import core_v1

from .operators import FINALIZER, SAMPLE, Depot, DepotStatus, Planted, label, operator_of

SOUTH = {**SAMPLE, "metadata": {"name": "south"}}


class OrderBug(NamedTuple):
    """A planted bug."""

    make: Planted
    properties: frozenset[str]
    samples: list[dict[str, Any]]
    depth: int


ORDER_BUGS: dict[str, OrderBug] = {}


def found_in_orders(
    *properties: str, samples: tuple[dict[str, Any], ...] = (SAMPLE,), depth: int = 1
) -> Callable[[Planted], Planted]:
    """List an operator with the properties that may fail."""

    def add(make: Planted) -> Planted:
        ORDER_BUGS[make.__name__] = OrderBug(make, frozenset(properties), list(samples), depth)
        return make

    return add


def place(depot: Depot, name: str = "") -> kw.Meta:
    return kw.Meta(name or depot.metadata.name, namespace=depot.metadata.namespace)


@found_in_orders("nothing-left")
def cache_trusted_in_the_finalizer() -> kw.Operator:
    """Create a child behind the back of the cache, and delete in the finalizer only what the cache has by then."""

    class Reconciler:
        async def reconcile(self, depot: Depot, ctx: kw.Context) -> None:
            if await ctx.find(core_v1.ConfigMap, depot.metadata.name) is None:
                await ctx.client.create(core_v1.ConfigMap(place(depot)))

        async def finalize(self, depot: Depot, ctx: kw.Context) -> None:
            if (found := await ctx.find(core_v1.ConfigMap, depot.metadata.name)) is not None:
                await ctx.delete(found)

    return operator_of(Reconciler(), finalizer=FINALIZER)


@found_in_orders("same-final-state", "truthful-status")
def generation_read_after_the_work() -> kw.Operator:
    """Report the generation that the server has after the work, and skip generations that are reported as done."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        if depot.status.observed_generation == depot.metadata.generation:
            return
        await ctx.apply(label(depot))
        now = await ctx.live.get(Depot, depot.metadata.name)
        await ctx.patch_status(depot, DepotStatus(observed_generation=now.metadata.generation))

    return operator_of(reconcile)


@found_in_orders("same-final-state", "settles", "truthful-status")
def event_of_the_parent_expected_first() -> kw.Operator:
    """Copy the status of the parent at the event of the child: the watch of the parent may be behind."""

    async def depots(depot: Depot, ctx: kw.Context) -> None:
        wanted = f"size {depot.spec.size}"
        name, namespace = depot.metadata.name, depot.metadata.namespace
        if depot.status.phase != wanted:
            status = {"status": {"phase": wanted}}
            await ctx.client.patch(Depot, status, name=name, namespace=namespace, subresource="status")
        for _ in range(2):
            await ctx.live.get(Depot, name)
        found = await ctx.live.find(core_v1.ConfigMap, name)
        data = {"size": str(depot.spec.size)}
        if found is None:
            await ctx.client.create(core_v1.ConfigMap(place(depot), data=data))
        elif found.data.get("size") != data["size"]:
            await ctx.client.patch(core_v1.ConfigMap, {"data": data}, name=name, namespace=namespace)

    def nothing(depot: Depot) -> list[kw.ObjectKey]:
        return []

    async def labels(child: core_v1.ConfigMap, ctx: kw.Context) -> None:
        depot = await ctx.find(Depot, child.metadata.name)
        if depot is not None and child.data.get("phase") != depot.status.phase:
            await ctx.patch(child, {"data": {"phase": depot.status.phase}})

    return kw.Operator(
        kw.Controller(
            Depot,
            depots,
            name="depots",
            needs=[
                kw.needs(core_v1.ConfigMap, "get", "create", "patch", "delete"),
                kw.needs(Depot, "get"),
                kw.needs(Depot, "patch", subresource="status"),
            ],
        ),
        kw.Controller(
            core_v1.ConfigMap,
            labels,
            name="labels",
            watches=[kw.watch(Depot, map=nothing)],
            needs=[kw.needs(core_v1.ConfigMap, "patch")],
        ),
        name="depots",
        keeps=[core_v1.ConfigMap],
    )


@found_in_orders("same-final-state", samples=(SAMPLE, SOUTH))
def shared_child_of_two_workers() -> kw.Operator:
    """Read, change and replace a child that two objects share, in two workers, and look only once whether that lasted."""

    async def reconcile(depot: Depot, ctx: kw.Context) -> None:
        entry = {depot.metadata.name: str(depot.spec.size)}

        async def entries() -> dict[str, str]:
            found = await ctx.live.find(core_v1.ConfigMap, "index")
            return {} if found is None else dict(found.data or {})

        known = await entries()
        if known == {**known, **entry}:
            return
        index = core_v1.ConfigMap(place(depot, "index"), data={**known, **entry})
        await ctx.client.apply(index, field_manager="index")
        known = await entries()
        if known != {**known, **entry}:
            raise kw.RetryLater("another depot has replaced the index")

    return kw.Operator(
        kw.Controller(
            Depot,
            reconcile,
            name="depots",
            needs=[kw.needs(core_v1.ConfigMap, "get", "create", "patch")],
            concurrency=2,
        ),
        name="depots",
        keeps=[core_v1.ConfigMap],
    )
