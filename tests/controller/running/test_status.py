from datetime import UTC, datetime

from acceptance_waits import served

from kubewright import conditions
from kubewright.api import Condition, KubewrightError, Meta, Resource, kind_of
from kubewright.api.builtin import apiextensions_v1, apps_v1, core_v1, meta_v1
from kubewright.controller import Context, Controller
from kubewright.schema import crd
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxSpec, BoxStatus
from .operators import running, settled, writes


async def test_only_changed_fields_of_a_status_are_sent(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

    boxes = Controller(Box, reconcile)
    async with running(cluster, boxes) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.status.ready == 1)
        await settled(manager)
        assert writes(manager) == 1
        await cluster.client.patch(box, {"spec": {"size": 0}})
        await cluster.eventually(Box, "a", lambda found: found.status.ready == 0)
        await settled(manager)
        assert writes(manager) == 2
    async with running(cluster, boxes) as manager:
        await settled(manager)
        assert writes(manager) == 0


async def test_a_status_field_set_to_none_is_removed(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.patch_status(box, BoxStatus(ready=1, note="one" if box.spec.size == 1 else None))

    async with running(cluster, Controller(Box, reconcile)):
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Box, "a", lambda found: found.status.note == "one")
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await cluster.eventually(Box, "a", lambda found: found.status.note is None)


async def test_conditions_of_other_writers_stay_and_times_change_only_with_the_status(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    box = await cluster.create(Box(Meta("a")))
    theirs = Condition(type="Theirs", status="True", reason="Theirs", last_transition_time=long_ago)
    ours = Condition(type="Ready", status="True", reason="Old", last_transition_time=long_ago)
    box.status.conditions = [theirs, ours]
    await cluster.client.replace(box, subresource="status")

    async def reconcile(box: Box, ctx: Context) -> None:
        ready = Condition(type="Ready", status="True", reason=f"Size{box.spec.size}")
        await ctx.patch_status(box, BoxStatus(conditions=[ready]))

    async with running(cluster, Controller(Box, reconcile)):
        found = await cluster.eventually(
            Box, "a", lambda found: any(one.reason == "Size1" for one in found.status.conditions)
        )
        ready = conditions.find(found.status.conditions, "Ready")
        assert ready is not None
        assert ready.last_transition_time == long_ago
        assert ready.observed_generation == found.metadata.generation
        assert conditions.find(found.status.conditions, "Theirs") == theirs


async def test_patching_the_status_of_a_deleted_object_is_not_an_error(cluster: Cluster) -> None:
    await cluster.install(Box)
    ends: list[Box] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        await cluster.client.delete(box)
        await cluster.eventually_gone(Box, "a")
        ends.append(await ctx.patch_status(box, BoxStatus(ready=7)))

    async with running(cluster, Controller(Box, reconcile)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(ends))
        await settled(manager)
        assert manager.statistics().controllers[0].outcomes["error"] == 0


async def test_conditions_of_built_in_kinds_are_sent_as_those_have_them(cluster: Cluster) -> None:
    selector = meta_v1.LabelSelector(match_labels={"app": "a"})
    pod = core_v1.PodSpec(containers=[core_v1.Container(name="main", image="busybox")])
    template = core_v1.PodTemplateSpec(metadata=Meta(labels={"app": "a"}), spec=pod)

    async def reconcile(found: apps_v1.Deployment, ctx: Context) -> None:
        available = apps_v1.DeploymentCondition(type="Available", status="True")
        await ctx.patch_status(found, apps_v1.DeploymentStatus(conditions=[available]))

    async with running(cluster, Controller(apps_v1.Deployment, reconcile)):
        await cluster.create(
            apps_v1.Deployment(Meta("a"), spec=apps_v1.DeploymentSpec(selector=selector, template=template))
        )
        found = await cluster.eventually(apps_v1.Deployment, "a", lambda found: found.status.conditions)
    assert found.status.conditions[0].last_transition_time is not None


async def test_patching_the_status_of_a_kind_without_one_is_explained(cluster: Cluster) -> None:
    class Plain(Resource[BoxSpec, BoxStatus], group="running.example.com", version="v1", plural="plains"):
        """A kind whose CRD is written by hand."""

    definition = crd(Plain)
    del definition["spec"]["versions"][0]["subresources"]
    definitions = kind_of(apiextensions_v1.CustomResourceDefinition)
    await cluster.client.apply(definition, kind=definitions, field_manager="install")
    reported: list[str] = []

    async def reconcile(plain: Plain, ctx: Context) -> None:
        try:
            await ctx.patch_status(plain, BoxStatus(ready=1))
        except KubewrightError as error:
            reported.append(str(error))

    await served(cluster.client, kind_of(Plain), cluster.namespace)
    async with running(cluster, Controller(Plain, reconcile)):
        await cluster.create(Plain(Meta("a"), spec=BoxSpec()))
        await eventually(lambda: bool(reported))
    assert "the object exists but has no status subresource" in reported[0]
