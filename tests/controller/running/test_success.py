"""A reconcile that counts as a success has done its work, or an event is certain to reconcile the key again."""

import asyncio
import uuid
from typing import Any

import pytest

from kubewright import conditions
from kubewright.api import (
    Condition,
    Forbidden,
    Meta,
    NotFound,
    Object,
    Status,
    StatusCause,
    StatusDetails,
)
from kubewright.api.builtin import core_v1
from kubewright.backoff import Backoff
from kubewright.controller import (
    Context,
    Controller,
    ObjectTerminating,
    Options,
    Selector,
    needs,
    owned,
    watch,
)
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxSpec, BoxStatus, Paper
from .operators import running, settled

HELD = "running.example.com/held"
QUICK = Options(backoff=Backoff(base=0.01, maximum=0.1))


class Crate(Object, group="running.example.com", version="v1", scope="Cluster"):
    """Owns children in namespaces."""


def refusal(namespace: str) -> Forbidden:
    cause = StatusCause(reason="NamespaceTerminating", message=f"namespace {namespace} is being terminated")
    return Forbidden(Status(reason="Forbidden", code=403, details=StatusDetails(causes=[cause])))


async def delete_namespace(cluster: Cluster, name: str) -> None:
    """Delete a namespace and remove it for good, as the namespace controller of a cluster does."""
    await cluster.client.delete(core_v1.Namespace, name)
    namespace = await cluster.client.get(core_v1.Namespace, name)
    assert namespace.status.phase == "Terminating"


async def finalize_namespace(cluster: Cluster, name: str) -> None:
    namespace = await cluster.client.get(core_v1.Namespace, name)
    namespace.spec.finalizers = []
    await cluster.client.replace(namespace, subresource="finalize")

    async def gone() -> bool:
        try:
            await cluster.client.get(core_v1.Namespace, name)
        except NotFound:
            return True
        return False

    await eventually(gone)


async def test_retries_until_the_namespace_of_a_child_exists_again(cluster: Cluster) -> None:
    await cluster.install(Crate, Paper)
    elsewhere = f"test-{uuid.uuid4().hex[:8]}"
    await cluster.client.create(core_v1.Namespace(Meta(elsewhere)))
    await delete_namespace(cluster, elsewhere)
    refused = asyncio.Event()

    async def reconcile(crate: Crate, ctx: Context) -> None:
        try:
            await ctx.apply(Paper(Meta(crate.metadata.name, namespace=elsewhere), text="hello"))
        except Forbidden:
            refused.set()
            raise

    crates = Controller(Crate, reconcile, owns=[Paper], options=QUICK)
    crate = await cluster.create(Crate(Meta(elsewhere)))
    async with running(cluster, crates) as manager:
        await asyncio.wait_for(refused.wait(), 60)
        await finalize_namespace(cluster, elsewhere)
        await cluster.client.create(core_v1.Namespace(Meta(elsewhere)))

        async def made() -> bool:
            return (await cluster.client.get(Paper, elsewhere, elsewhere)).text == "hello"

        await eventually(made)
        assert manager.statistics().controllers[0].outcomes["error"] > 0
    await cluster.client.delete(crate)


async def test_a_refusal_of_the_objects_own_namespace_waits_for_the_objects_deletion(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    runs: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        runs.append(box.metadata.name)
        raise refusal(cluster.namespace)

    async with running(cluster, Controller(Box, reconcile, options=QUICK)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(runs))
        await settled(manager)
        assert runs == ["a"]
        outcomes = manager.statistics().controllers[0].outcomes
        assert (outcomes["error"], outcomes["success"]) == (0, 1)


@pytest.mark.parametrize("message", ["namespace elsewhere is being terminated", "in other words"])
async def test_a_refusal_of_any_other_namespace_is_retried(cluster: Cluster, message: str) -> None:
    await cluster.install(Box)
    runs: list[str] = []
    cause = StatusCause(reason="NamespaceTerminating", message=message)

    async def reconcile(box: Box, ctx: Context) -> None:
        runs.append(box.metadata.name)
        if len(runs) < 3:
            raise Forbidden(Status(reason="Forbidden", code=403, details=StatusDetails(causes=[cause])))

    async with running(cluster, Controller(Box, reconcile, options=QUICK)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(runs) == 3)
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["error"] == 2


async def test_a_finalizer_that_a_terminating_namespace_refuses_is_retried(cluster: Cluster) -> None:
    await cluster.install(Box)
    tries: list[str] = []

    class Boxes:
        async def reconcile(self, box: Box, ctx: Context) -> None: ...

        async def finalize(self, box: Box, ctx: Context) -> None:
            tries.append(box.metadata.name)
            if len(tries) < 3:
                raise refusal(cluster.namespace)

    async with running(cluster, Controller(Box, Boxes(), finalizer=HELD, options=QUICK)):
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.metadata.finalizers)
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "a")


async def make_terminating(cluster: Cluster, name: str) -> Paper:
    """Create a child with a finalizer of another controller."""
    paper = await cluster.create(Paper(Meta(name, finalizers=[HELD]), text="old"))
    await cluster.client.delete(paper)
    return await cluster.eventually(Paper, name, lambda found: found.metadata.deletion_timestamp is not None)


async def let_go(cluster: Cluster, paper: Paper) -> None:
    await cluster.client.patch(paper, {"metadata": {"finalizers": None}})


DECLARATIONS: dict[str, dict[str, Any]] = {
    "not watched": {"needs": [needs(Paper, "get", "create", "patch")]},
    "watched without a map to the key": {
        "needs": [needs(Paper, "get", "create", "patch")],
        "watches": [watch(Paper, map=lambda _: ())],
    },
    "watched, filtered": {
        "needs": [needs(Paper, "get", "create", "patch")],
        "watches": [watch(Paper, map=lambda _: (), when=lambda _: False)],
    },
    "owned, filtered": {"owns": [owned(Paper, when=lambda _: False)]},
    "owned, outside the scope": {"owns": [owned(Paper, selector=Selector(labels="never=there"))]},
    "owned, metadata only": {"owns": [owned(Paper, metadata_only=True)]},
    "owned": {"owns": [Paper]},
}


@pytest.mark.parametrize("declared", DECLARATIONS)
async def test_a_terminating_object_is_applied_once_it_is_gone(cluster: Cluster, declared: str) -> None:
    await cluster.install(Box, Paper)
    paper = await make_terminating(cluster, "a")
    errors: list[Exception] = []
    met = asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> None:
        try:
            await ctx.apply(Paper(Meta("a"), text="new"))
        except Exception as error:
            errors.append(error)
            raise
        finally:
            met.set()

    async with running(cluster, Controller(Box, reconcile, options=QUICK, **DECLARATIONS[declared])):
        await cluster.create(Box(Meta("a")))
        await asyncio.wait_for(met.wait(), 60)
        await let_go(cluster, paper)
        made = await cluster.eventually(Paper, "a", lambda found: found.text == "new")
    assert made.metadata.uid != paper.metadata.uid
    if declared in ("not watched", "owned, outside the scope"):
        assert isinstance(errors[0], ObjectTerminating)
        assert f"papers.running.example.com {cluster.namespace}/a" in str(errors[0])
    else:
        assert errors == []


async def test_an_object_that_turns_out_to_be_terminating_is_applied_once_it_is_gone(
    cluster: Cluster,
) -> None:
    await cluster.install(Box, Paper)
    applied: list[Paper] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        applied.append(await ctx.apply(Paper(Meta("a"), text=f"size {box.spec.size}")))
        if len(applied) == 1:
            # The cache has not seen the deletion when the next apply is made.
            await cluster.client.patch(applied[0], {"metadata": {"finalizers": [HELD]}})
            await cluster.client.delete(applied[0])
            applied.append(await ctx.apply(Paper(Meta("a"), text="other")))

    declared = needs(Paper, "get", "create", "patch")
    async with running(cluster, Controller(Box, reconcile, needs=[declared], options=QUICK)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: manager.statistics().controllers[0].outcomes["error"] > 0)
        await let_go(cluster, applied[0])
        made = await cluster.eventually(Paper, "a", lambda found: found.text == "size 1")
    assert made.metadata.uid != applied[0].metadata.uid


@pytest.mark.parametrize("target", ["given", "read again", "without generation"])
async def test_conditions_state_the_generation_that_was_reconciled(cluster: Cluster, target: str) -> None:
    await cluster.install(Box)
    stated: list[tuple[int, int]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        reconciled = box.metadata.generation
        if reconciled == 1:
            await cluster.client.patch(box, {"spec": {"size": 2}})

            async def seen() -> bool:
                known = await ctx.find(Box, "a")
                return known is not None and known.metadata.generation == 2

            await eventually(seen)
        match target:
            case "read again":
                newer = await ctx.find(Box, "a")
                assert newer is not None
                box = newer
            case "without generation":
                box = Box(Meta("a", namespace=cluster.namespace))
            case _:
                pass
        ready = Condition(type="Ready", status="True", reason="Made")
        answer = await ctx.patch_status(box, BoxStatus(conditions=[ready]))
        condition = conditions.find(answer.status.conditions, "Ready")
        assert condition is not None
        stated.append((reconciled, condition.observed_generation))

    async with running(cluster, Controller(Box, reconcile)) as manager:
        await cluster.create(Box(Meta("a"), spec=BoxSpec(size=1)))
        await cluster.eventually(
            Box, "a", lambda found: any(one.observed_generation == 2 for one in found.status.conditions)
        )
        await settled(manager)
    assert stated[0] == (1, 1)
    assert all(reconciled == observed for reconciled, observed in stated)


async def test_conditions_of_another_object_state_the_generation_it_was_read_with(cluster: Cluster) -> None:
    await cluster.install(Box)
    stated: list[int] = []

    async def reconcile(config: core_v1.ConfigMap, ctx: Context) -> None:
        box = await ctx.find(Box, "a")
        if box is None or stated:
            return
        await cluster.client.patch(box, {"spec": {"size": 2}})
        ready = Condition(type="Ready", status="True", reason="Made")
        for target in (box, Box(Meta("a", namespace=cluster.namespace))):
            answer = await ctx.patch_status(target, BoxStatus(conditions=[ready]))
            stated.extend(one.observed_generation for one in answer.status.conditions)

    await cluster.create(Box(Meta("a")))
    maps = Controller(
        core_v1.ConfigMap,
        reconcile,
        needs=[needs(Box, "get", "patch"), needs(Box, "patch", subresource="status")],
        selector=Selector(fields="metadata.name=a"),
    )
    async with running(cluster, maps):
        await cluster.create(core_v1.ConfigMap(Meta("a")))
        await eventually(lambda: len(stated) == 2)
    # The second was never read: nothing is known of a generation, so none is stated.
    assert stated == [1, 0]


async def test_a_status_is_written_to_an_object_that_the_cache_has_not_seen_yet(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        if box.metadata.name != "a":
            return
        created = await cluster.create(Box(Meta("b")))
        # Nothing has been awaited since, so no watch event can have come in between.
        await ctx.patch_status(created, BoxStatus(ready=7))

    async with running(cluster, Controller(Box, reconcile)):
        await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "b", lambda found: found.status.ready == 7)


def test_a_refusal_names_the_namespace_that_is_being_deleted() -> None:
    assert refusal("photos").terminating_namespace == "photos"
    assert Forbidden(Status(reason="Forbidden", code=403)).terminating_namespace is None
