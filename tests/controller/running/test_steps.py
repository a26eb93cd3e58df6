"""Durable steps: done once for each input, whatever else writes the status, and misuse is an error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest

from kubewright.api import (
    OUTCOME_LIMIT,
    Condition,
    DeclarationError,
    Field,
    Meta,
    Model,
    Resource,
    Step,
    kind_of,
)
from kubewright.client import requests
from kubewright.controller import Context, Controller, Options, TerminalError, generation_changed
from kubewright.hashing import content_hash
from kubewright.schema import crd
from kubewright.testing import Cluster, eventually

from .operators import running, settled, writes


class DiskSpec(Model):
    size: int = 1


class DiskStatus(Model):
    note: str = ""
    conditions: list[Condition] = []
    steps: list[Step] = []


class Disk(Resource[DiskSpec, DiskStatus], group="steps.example.com", version="v1"):
    """Is snapshotted."""


class BareStatus(Model):
    note: str = ""


class Bare(Resource[DiskSpec, BareStatus], group="steps.example.com", version="v1", plural="bares"):
    """Has no field for steps."""


def snapshots(effects: list[str], **options: Any) -> Controller[Disk]:
    """Return a controller with one step, which notes each effect."""

    async def reconcile(disk: Disk, ctx: Context) -> None:
        async with ctx.step("snapshot", input=disk.spec.size) as step:
            if not step.done:
                effects.append(step.key)
                step.outcome = f"snapshot-{len(effects)}"
        await ctx.patch_status(disk, DiskStatus(note=step.outcome))

    return Controller(Disk, reconcile, **options)


async def test_a_step_is_done_once_for_each_input_also_after_a_restart(cluster: Cluster) -> None:
    effects: list[str] = []
    await cluster.install(Disk)
    async with running(cluster, snapshots(effects)) as manager:
        made = await cluster.create(Disk(Meta("a"), spec=DiskSpec(size=1)))
        first = await cluster.eventually(Disk, "a", lambda it: it.status.note == "snapshot-1")
        [step] = first.status.steps
        assert (step.name, step.outcome) == ("snapshot", "snapshot-1")
        assert step.completion_time is not None
        await cluster.client.patch(made, {"metadata": {"labels": {"again": "yes"}}})
        await settled(manager)
    async with running(cluster, snapshots(effects)) as manager:
        await settled(manager)
        assert writes(manager) == 0
        assert len(effects) == 1
        await cluster.client.patch(made, {"spec": {"size": 2}})
        second = await cluster.eventually(Disk, "a", lambda it: it.status.note == "snapshot-2")
        assert [step.outcome for step in second.status.steps] == ["snapshot-2"]
        await settled(manager)
    assert len(effects) == 2
    assert effects[0] != effects[1]


async def test_steps_are_recorded_by_a_field_manager_of_their_own(cluster: Cluster) -> None:
    await cluster.install(Disk)
    async with running(cluster, snapshots([])):
        await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        found = await cluster.eventually(Disk, "a", lambda it: it.status.note)
    entries = {entry.manager: entry.fields_v1 for entry in found.metadata.managed_fields}
    assert list(entries["disk-steps"]["f:status"]) == ["f:steps"]
    assert "f:steps" not in entries["disk"]["f:status"]


async def test_the_authors_status_never_removes_or_replaces_steps(cluster: Cluster) -> None:
    """The object that a reconciler holds is older than a step that it has just recorded."""

    async def reconcile(disk: Disk, ctx: Context) -> None:
        disk.status.note = f"begun {disk.spec.size}"
        await ctx.patch_status(disk)
        async with ctx.step("first", input=disk.spec.size) as step:
            if not step.done:
                step.outcome = f"one of {disk.spec.size}"
        async with ctx.step("second") as step:
            if not step.done:
                step.outcome = "two"
        # It still has the steps that it was read with, if any.
        disk.status.note = f"ended {disk.spec.size}"
        await ctx.patch_status(disk)
        await ctx.patch_status(disk, {"note": f"left {disk.spec.size}", "steps": []})

    await cluster.install(Disk)
    async with running(cluster, Controller(Disk, reconcile, when=generation_changed)) as manager:
        made = await cluster.create(Disk(Meta("a"), spec=DiskSpec(size=1)))
        for size in (1, 2, 3):
            await cluster.client.patch(made, {"spec": {"size": size}})
            found = await cluster.eventually(
                Disk, "a", lambda it, size=size: it.status.note == f"left {size}"
            )
            outcomes = {step.name: step.outcome for step in found.status.steps}
            assert outcomes == {"first": f"one of {size}", "second": "two"}
        await settled(manager)
        entries = {entry.manager: entry.fields_v1 for entry in found.metadata.managed_fields}
        assert "f:steps" not in entries["disk"]["f:status"]


async def test_a_recorded_step_does_not_lead_to_further_writes_of_the_status(cluster: Cluster) -> None:
    effects: list[str] = []
    await cluster.install(Disk)
    async with running(cluster, snapshots(effects)) as manager:
        made = await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        await cluster.eventually(Disk, "a", lambda it: it.status.note)
        await settled(manager)
        before = writes(manager)
        await cluster.client.patch(made, {"metadata": {"labels": {"again": "yes"}}})
        await settled(manager)
        assert writes(manager) == before


async def test_a_step_whose_block_raises_is_done_again(cluster: Cluster) -> None:
    tries: list[str] = []

    async def reconcile(disk: Disk, ctx: Context) -> None:
        async with ctx.step("snapshot") as step:
            if not step.done:
                tries.append(step.key)
                step.outcome = "set before the failure"
                if len(tries) < 3:
                    raise RuntimeError("the provider is away")

    await cluster.install(Disk)
    async with running(cluster, Controller(Disk, reconcile)):
        await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        await cluster.eventually(Disk, "a", lambda it: it.status.steps)
    assert len(tries) == 3
    assert len(set(tries)) == 1


async def test_steps_that_run_at_the_same_time_are_all_recorded(cluster: Cluster) -> None:
    async def reconcile(disk: Disk, ctx: Context) -> None:
        async def do(name: str) -> None:
            async with ctx.step(name) as step:
                if not step.done:
                    await asyncio.sleep(0)
                    step.outcome = name.upper()

        await asyncio.gather(*(do(name) for name in "abcd"))

    await cluster.install(Disk)
    async with running(cluster, Controller(Disk, reconcile)) as manager:
        await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        found = await cluster.eventually(Disk, "a", lambda it: len(it.status.steps) == 4)
        assert {step.name: step.outcome for step in found.status.steps} == {
            name: name.upper() for name in "abcd"
        }
        await settled(manager)


async def test_two_controllers_keep_their_steps_apart_and_do_not_share_a_name(cluster: Cluster) -> None:
    caught: list[BaseException] = []

    async def other(disk: Disk, ctx: Context) -> None:
        if disk.status.note != "snapshot-1":
            return
        async with ctx.step("mine") as step:
            if not step.done:
                step.outcome = "x"
        try:
            async with ctx.step("snapshot", input=disk.spec.size) as step:
                raise AssertionError("the step of another controller was opened")
        except TerminalError as refusal:
            caught.append(refusal)

    await cluster.install(Disk)
    async with running(cluster, snapshots([]), Controller(Disk, other, name="other")) as manager:
        await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        await eventually(lambda: bool(caught))
        await settled(manager)
        found = await cluster.get(Disk, "a")
    assert "was recorded by another field manager than 'other-steps'" in str(caught[0])
    assert {step.name: step.outcome for step in found.status.steps} == {"snapshot": "snapshot-1", "mine": "x"}


async def test_a_renamed_controller_knows_the_steps_of_its_former_name(cluster: Cluster) -> None:
    effects: list[str] = []
    await cluster.install(Disk)
    async with running(cluster, snapshots(effects)):
        made = await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        await cluster.eventually(Disk, "a", lambda it: it.status.note)
    renamed = Options(former_field_managers=("disk",))
    async with running(cluster, snapshots(effects, name="disks", options=renamed)) as manager:
        await settled(manager)
        assert len(effects) == 1
        await cluster.client.patch(made, {"spec": {"size": 7}})
        await cluster.eventually(Disk, "a", lambda it: it.status.note == "snapshot-2")
        await settled(manager)


async def test_a_step_that_another_replica_recorded_unseen_is_not_done_again(cluster: Cluster) -> None:
    """The cache of a new leader may be behind: the server is asked before a step is done."""
    effects: list[str] = []

    async def reconcile(disk: Disk, ctx: Context) -> None:
        if not effects:
            await record_as_another_replica(disk)
        async with ctx.step("snapshot", input=1) as step:
            if not step.done:
                effects.append("again")
                step.outcome = "again"
        effects.append(step.outcome)

    async def record_as_another_replica(disk: Disk) -> None:
        """Record the step; the watch of this replica brings that after this reconcile has gone on."""
        step = {"name": "snapshot", "inputHash": content_hash(1), "outcome": "of the other"}
        document = {
            "metadata": {"name": disk.metadata.name, "namespace": disk.metadata.namespace},
            "status": {"steps": [step]},
        }
        await cluster.client.send(
            requests.apply(document, kind_of(Disk), field_manager="disk-steps", subresource="status")
        )

    await cluster.install(Disk)
    async with running(cluster, Controller(Disk, reconcile)) as manager:
        await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        await cluster.eventually(Disk, "a", lambda it: it.status.steps)
        await settled(manager)
    assert set(effects) == {"of the other"}


MISUSES: list[tuple[Callable[[Disk, Context], Awaitable[None]], type[Exception], str]] = []


def misuse(error: type[Exception], message: str) -> Callable[[Any], Any]:
    def declare(function: Any) -> Any:
        MISUSES.append((function, error, message))
        return function

    return declare


@misuse(TerminalError, "do its work inside `if not step.done:`")
async def forgets_to_look(disk: Disk, ctx: Context) -> None:
    async with ctx.step("a") as step:
        step.outcome = "x"


@misuse(TerminalError, "ended without an outcome: set step.outcome, or raise an error, such as kw.RetryLater")
async def forgets_the_outcome(disk: Disk, ctx: Context) -> None:
    async with ctx.step("a") as step:
        if not step.done:
            return


@misuse(TerminalError, "the outcome is text, not int")
async def sets_a_number(disk: Disk, ctx: Context) -> None:
    async with ctx.step("a") as step:
        if not step.done:
            step.outcome = 3  # type: ignore[assignment]


@misuse(TerminalError, "the outcome has more than 32768 characters")
async def sets_a_long_text(disk: Disk, ctx: Context) -> None:
    async with ctx.step("a") as step:
        if not step.done:
            step.outcome = "x" * (OUTCOME_LIMIT + 1)


@misuse(TerminalError, "is done: its outcome cannot be set again")
async def sets_it_again(disk: Disk, ctx: Context) -> None:
    async with ctx.step("a") as step:
        if not step.done:
            step.outcome = "x"
    assert step.done
    step.outcome = "y"


@misuse(TerminalError, "has no outcome yet")
async def reads_it_too_early(disk: Disk, ctx: Context) -> None:
    async with ctx.step("a") as step:
        assert not step.done
        ctx.log.info(step.outcome)


@misuse(TerminalError, "was opened with two inputs in one reconcile")
async def opens_it_with_two_inputs(disk: Disk, ctx: Context) -> None:
    for number in range(2):
        async with ctx.step("a", input=number) as step:
            if not step.done:
                step.outcome = "x"


@misuse(TypeError, "set is neither an object nor a JSON value")
async def gives_an_input_without_a_form(disk: Disk, ctx: Context) -> None:
    ctx.step("a", input={1, 2})


@misuse(DeclarationError, "step 'Not A Label'")
async def gives_a_wrong_name(disk: Disk, ctx: Context) -> None:
    ctx.step("Not A Label")


@pytest.mark.parametrize(("reconcile", "error", "message"), MISUSES, ids=[one[0].__name__ for one in MISUSES])
async def test_misuse_of_steps_is_an_error(
    cluster: Cluster, reconcile: Any, error: type[Exception], message: str
) -> None:
    caught: list[BaseException] = []

    async def observed(disk: Disk, ctx: Context) -> None:
        try:
            await reconcile(disk, ctx)
        except Exception as refusal:
            caught.append(refusal)
            raise

    await cluster.install(Disk)
    async with running(cluster, Controller(Disk, observed)) as manager:
        await cluster.create(Disk(Meta("a"), spec=DiskSpec()))
        await eventually(lambda: bool(caught))
        await settled(manager)
    assert type(caught[0]) is error
    assert message in str(caught[0])


async def test_a_kind_without_a_field_for_steps_is_a_declaration_error_that_is_not_retried(
    cluster: Cluster,
) -> None:
    caught: list[BaseException] = []

    async def reconcile(bare: Bare, ctx: Context) -> None:
        try:
            ctx.step("a")
        except DeclarationError as refusal:
            caught.append(refusal)
            raise

    await cluster.install(Bare)
    async with running(cluster, Controller(Bare, reconcile)) as manager:
        await cluster.create(Bare(Meta("a"), spec=DiskSpec()))
        await eventually(lambda: bool(caught))
        await settled(manager)
        assert manager.statistics().controllers[0].queue.retrying == 0
    assert len(caught) == 1
    assert "add `steps: list[kw.Step] = []` to the class of its status" in str(caught[0])


async def never(_: Any, ctx: Context) -> None:
    raise AssertionError("it is only declared")


def test_fields_for_steps_that_cannot_work_are_refused_when_the_controller_is_declared() -> None:
    class One(Model):
        steps: Step | None = None

    class Two(Model):
        steps: list[Step] = []
        more: list[Step] = []

    class Atomic(Model):
        steps: Annotated[list[Step], Field(list_type="atomic")] = []

    class WithOne(Resource[DiskSpec, One], group="steps.example.com", version="v1"):
        """Holds a single step."""

    class WithTwo(Resource[DiskSpec, Two], group="steps.example.com", version="v1"):
        """Holds two lists."""

    class WithAtomic(Resource[DiskSpec, Atomic], group="steps.example.com", version="v1"):
        """Holds an atomic list."""

    for kind, message in (
        (WithOne, r"One.steps: steps are a list by name: write `steps: list\[kw.Step\] = \[\]`"),
        (WithTwo, "steps and more hold steps: keep one of them"),
        (WithAtomic, "steps are a list by name"),
    ):
        with pytest.raises(DeclarationError, match=message):
            Controller(kind, never)


def test_a_list_of_steps_is_a_map_by_name_in_the_crd() -> None:
    schema = crd(Disk)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    steps = schema["properties"]["status"]["properties"]["steps"]
    assert steps["x-kubernetes-list-type"] == "map"
    assert steps["x-kubernetes-list-map-keys"] == ["name"]
    assert set(steps["items"]["required"]) == {"name", "inputHash", "outcome"}
