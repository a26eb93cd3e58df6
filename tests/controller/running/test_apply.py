from typing import Any

import pytest
from acceptance_waits import served

from kubewright.api import Kind, Meta, Object, OwnerReference, Quantity, kind_of, to_wire
from kubewright.api.builtin import apiextensions_v1, apps_v1, batch_v1, core_v1, meta_v1, networking_v1
from kubewright.controller import Context, Controller, Options, needs
from kubewright.testing import Cluster, eventually

from .apply_scenarios import SAMPLE, SAMPLE_BETA, definition
from .kinds import Box, Paper, Policy
from .operators import events, running, settled, writes


def pod_template(**labels: str) -> core_v1.PodTemplateSpec:
    container = core_v1.Container(
        name="main",
        image="busybox",
        command=["sleep", "1"],
        ports=[core_v1.ContainerPort(container_port=80)],
        env=[core_v1.EnvVar(name="A", value="1"), core_v1.EnvVar(name="B", value="2")],
        resources=core_v1.ResourceRequirements(
            limits={"cpu": Quantity("1000m"), "memory": Quantity("1024Mi")}
        ),
    )
    return core_v1.PodTemplateSpec(metadata=Meta(labels=labels), spec=core_v1.PodSpec(containers=[container]))


def deployment(name: str) -> apps_v1.Deployment:
    return apps_v1.Deployment(
        Meta(name, labels={"app": name, "extra": "1"}),
        spec=apps_v1.DeploymentSpec(
            replicas=2,
            selector=meta_v1.LabelSelector(match_labels={"app": name}),
            template=pod_template(app=name),
        ),
    )


async def test_a_child_is_created_with_its_owner_reference_and_not_applied_again(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta(box.metadata.name), text="hello"))

    boxes = Controller(Box, reconcile, owns=[Paper])
    async with running(cluster, boxes):
        box = await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda paper: paper.text == "hello")
        assert [owner.uid for owner in paper.metadata.owner_references] == [box.metadata.uid]
    async with running(cluster, boxes) as manager:
        await settled(manager)
        assert writes(manager) == 0
        await cluster.client.patch(box, {"metadata": {"annotations": {"touched": "yes"}}})
        await settled(manager)
        assert writes(manager) == 0
    assert (await cluster.get(Paper, "a")).metadata.resource_version == paper.metadata.resource_version


async def test_a_changed_or_deleted_child_is_restored(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta(box.metadata.name), text="hello"))

    async with running(cluster, Controller(Box, reconcile, owns=[Paper])):
        await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda paper: paper.text == "hello")
        await cluster.client.patch(paper, {"text": "spoilt"})
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "hello")
        await cluster.client.delete(paper)
        await cluster.eventually(Paper, "a", lambda found: found.metadata.uid != paper.metadata.uid)


async def test_fields_removed_from_the_desired_child_are_removed(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        child = deployment(box.metadata.name)
        if box.spec.size > 1:
            child.metadata.labels.pop("extra")
            child.spec.template.spec.containers[0].env.pop()
        if box.spec.size > 2:
            child.spec.replicas = None
            child.spec.template.spec.containers[0].ports = []
        if box.spec.size == 1:
            child.spec.template.spec.containers.append(core_v1.Container(name="side", image="side"))
        await ctx.apply(child)

    async with running(cluster, Controller(Box, reconcile, owns=[apps_v1.Deployment])):
        box = await cluster.create(Box(Meta("a")))
        made = await cluster.eventually(apps_v1.Deployment, "a", lambda found: found.spec.replicas == 2)
        assert [one.name for one in made.spec.template.spec.containers] == ["main", "side"]
        await cluster.client.patch(box, {"spec": {"size": 2}})
        thinner = await cluster.eventually(
            apps_v1.Deployment, "a", lambda found: len(found.spec.template.spec.containers) == 1
        )
        assert thinner.metadata.labels == {"app": "a"}
        assert [entry.name for entry in thinner.spec.template.spec.containers[0].env] == ["A"]
        await cluster.client.patch(box, {"spec": {"size": 3}})
        await cluster.eventually(
            apps_v1.Deployment, "a", lambda found: not found.spec.template.spec.containers[0].ports
        )


def defaulted_children(name: str) -> list[Object]:
    selector = meta_v1.LabelSelector(match_labels={"app": name})
    job = batch_v1.JobSpec(template=pod_template(app=name))
    job.template.spec.restart_policy = "Never"
    volume = core_v1.Volume(name="tmp", empty_dir=core_v1.EmptyDirVolumeSource())
    claim = core_v1.PersistentVolumeClaim(
        Meta("data"),
        spec=core_v1.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
        ),
    )
    stateful = apps_v1.StatefulSetSpec(
        service_name=name, selector=selector, template=pod_template(app=name), volume_claim_templates=[claim]
    )
    stateful.template.spec.volumes = [volume]
    rule = networking_v1.IngressRule(
        host="example.com",
        http=networking_v1.HTTPIngressRuleValue(
            paths=[
                networking_v1.HTTPIngressPath(
                    path="/",
                    path_type="Prefix",
                    backend=networking_v1.IngressBackend(
                        service=networking_v1.IngressServiceBackend(
                            name=name, port=networking_v1.ServiceBackendPort(number=80)
                        )
                    ),
                )
            ]
        ),
    )
    return [
        deployment(name),
        core_v1.Service(
            Meta(name), spec=core_v1.ServiceSpec(selector={"app": name}, ports=[core_v1.ServicePort(port=80)])
        ),
        apps_v1.StatefulSet(Meta(name), spec=stateful),
        batch_v1.Job(Meta(name), spec=job),
        batch_v1.CronJob(
            Meta(name),
            spec=batch_v1.CronJobSpec(schedule="* * * * *", job_template=batch_v1.JobTemplateSpec(spec=job)),
        ),
        networking_v1.Ingress(Meta(name), spec=networking_v1.IngressSpec(rules=[rule])),
        core_v1.Secret(Meta(name), string_data={"password": "secret"}),
        core_v1.ConfigMap(Meta(name), data={"a": "1", "empty": ""}),
    ]


WRITES_AFTER_A_RESTART = {
    # Proven by the live object, our entry, and what Kubernetes declares about the kind.
    "ConfigMap": 0,
    "Secret": 0,
    "Deployment": 0,
    "Service": 0,
    "Job": 0,
    "CronJob": 0,
    "Ingress": 0,
    # The server completes the elements of an atomic list (volumeClaimTemplates): each object is sent once.
    "StatefulSet": 3,
}


@pytest.mark.parametrize("number", range(8))
async def test_the_servers_defaults_do_not_lead_to_a_second_write(cluster: Cluster, number: int) -> None:
    await cluster.install(Box)
    kind = type(defaulted_children("a")[number])

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(defaulted_children(box.metadata.name)[number])

    boxes, names = Controller(Box, reconcile, owns=[kind]), ("a", "b", "c")
    async with running(cluster, boxes) as manager:
        made = [await cluster.create(Box(Meta(name))) for name in names]
        for name in names:
            await eventually(lambda name=name: cluster.find(kind, name))
        await settled(manager)
        assert writes(manager) == 3
        for box in made:
            await cluster.client.patch(box, {"metadata": {"annotations": {"touched": "yes"}}})
        await settled(manager)
        assert writes(manager) == 3
    before = [(await cluster.get(kind, name)).metadata.resource_version for name in names]
    async with running(cluster, boxes) as manager:
        await settled(manager)
        assert writes(manager) == WRITES_AFTER_A_RESTART[kind.__name__]
        for box in made:
            await cluster.client.patch(box, {"metadata": {"annotations": {"touched": "again"}}})
        await settled(manager)
        assert writes(manager) == WRITES_AFTER_A_RESTART[kind.__name__]
    assert [(await cluster.get(kind, name)).metadata.resource_version for name in names] == before
    assert not await events(cluster, "ApplyAltered")


async def test_a_child_of_another_owner_is_left_alone(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    owner = await cluster.create(core_v1.ConfigMap(Meta("owner")))
    reference = OwnerReference(
        api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid, controller=True
    )
    await cluster.create(Paper(Meta("a", owner_references=[reference]), text="theirs"))

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a"), text="ours"))

    async with running(cluster, Controller(Box, reconcile, owns=[Paper])) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: manager.statistics().controllers[0].outcomes["error"] > 0)
    assert (await cluster.get(Paper, "a")).text == "theirs"


async def test_a_renamed_controller_takes_over_the_fields_of_its_former_name(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def first(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a", labels={"old": "label"}), text="hello", number=1))

    async def second(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a"), text="hello"))

    async with running(cluster, Controller(Box, first, name="before", owns=[Paper])):
        await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda paper: paper.number == 1)
    renamed = Controller(
        Box, second, name="after", owns=[Paper], options=Options(former_field_managers=("before",))
    )
    async with running(cluster, renamed):
        paper = await cluster.eventually(Paper, "a", lambda paper: paper.number is None)
    assert paper.metadata.labels == {}
    assert {entry.manager for entry in paper.metadata.managed_fields} == {"after"}


async def test_a_value_that_the_server_changes_is_reported_once_and_not_sent_again(cluster: Cluster) -> None:
    await cluster.install(Box)
    untyped = Kind(group="apps", version="v1", kind="Deployment", plural="deployments", status=True)

    async def reconcile(box: Box, ctx: Context) -> None:
        child: dict[str, Any] = to_wire(deployment("a"))
        # Without a class it is not known that this text is a quantity; the server writes it as 1.
        child["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1000m"
        await ctx.apply(child)

    async with running(cluster, Controller(Box, reconcile, owns=[untyped])) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(apps_v1.Deployment, "a", lambda found: found.spec.replicas == 2)
        await settled(manager)
        assert writes(manager) == 1
        for count in range(3):
            await cluster.client.patch(box, {"metadata": {"annotations": {"count": str(count)}}})
            await settled(manager)
        assert writes(manager) == 1
    field = "spec.template.spec.containers[0].resources.limits.cpu"
    assert [event.note for event in await events(cluster, "ApplyAltered")] == [
        f"The server did not take {field} as controller box applied it"
    ]


async def test_fields_that_we_no_longer_own_are_applied_again_even_if_the_server_alters_them(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    untyped = Kind(group="apps", version="v1", kind="Deployment", plural="deployments", status=True)

    async def reconcile(box: Box, ctx: Context) -> None:
        child: dict[str, Any] = to_wire(deployment("a"))
        child["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1000m"
        await ctx.apply(child)

    def ours(found: apps_v1.Deployment) -> bool:
        return any(entry.manager == "box" for entry in found.metadata.managed_fields)

    async with running(cluster, Controller(Box, reconcile, owns=[untyped])) as manager:
        await cluster.create(Box(Meta("a")))
        made = await cluster.eventually(apps_v1.Deployment, "a", ours)
        await settled(manager)
        await cluster.client.patch(made, {"metadata": {"managedFields": [{}]}})
        await cluster.eventually(apps_v1.Deployment, "a", ours)
        await settled(manager)
        assert writes(manager) == 2


async def test_a_kind_that_is_only_needed_is_applied_without_an_owner(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(core_v1.ConfigMap(Meta("a"), data={"a": "1"}))

    need = needs(core_v1.ConfigMap, "get", "create", "patch")
    async with running(cluster, Controller(Box, reconcile, needs=[need])):
        await cluster.create(Box(Meta("a")))
        made = await cluster.eventually(core_v1.ConfigMap, "a", lambda found: found.data == {"a": "1"})
    assert made.metadata.owner_references == []


async def test_init_containers_that_are_swapped_are_swapped_on_the_server(cluster: Cluster) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        child = deployment("a")
        first, second = (core_v1.Container(name=name, image="busybox") for name in ("first", "second"))
        child.spec.template.spec.init_containers = [first, second] if box.spec.size == 1 else [second, first]
        await ctx.apply(child)

    def order(found: apps_v1.Deployment) -> list[str]:
        return [container.name for container in found.spec.template.spec.init_containers]

    async with running(cluster, Controller(Box, reconcile, owns=[apps_v1.Deployment])):
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(apps_v1.Deployment, "a", lambda found: order(found) == ["first", "second"])
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await cluster.eventually(apps_v1.Deployment, "a", lambda found: order(found) == ["second", "first"])


async def applied_in_turn(cluster: Cluster, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Have a controller apply one spec of a Policy and then another; returns the spec that is there in the end."""
    await cluster.install(Box, Policy)
    applied: list[int] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        spec = first if box.spec.size == 1 else second
        described = kind_of(Policy)
        await ctx.apply(
            {"apiVersion": described.api_version, "kind": "Policy", "metadata": {"name": "a"}, "spec": spec}
        )
        applied.append(box.spec.size)

    async def reached(size: int) -> bool:
        return size in applied

    async with running(cluster, Controller(Box, reconcile, owns=[kind_of(Policy)])) as manager:
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: reached(1))
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await eventually(lambda: reached(2))
        await settled(manager)
    found = await cluster.client.get(kind_of(Policy), "a", cluster.namespace)
    return found["spec"]


@pytest.mark.parametrize("first", [{}, {"allow": ["a"]}])
async def test_an_explicit_empty_list_reaches_the_server(cluster: Cluster, first: dict[str, Any]) -> None:
    there = await applied_in_turn(cluster, first, {"allow": []})
    assert there["allow"] == []


@pytest.mark.parametrize(("field", "value"), [("protocol", "TCP"), ("status", "True")])
async def test_a_field_taken_out_of_an_element_of_an_atomic_list_is_removed(
    cluster: Cluster, field: str, value: str
) -> None:
    there = await applied_in_turn(
        cluster, {"routes": [{"host": "a", field: value}]}, {"routes": [{"host": "a"}]}
    )
    assert there["routes"] == [{"host": "a"}]


class PaperOfAnotherClass(
    Object, group="running.example.com", version="v1", kind="Paper", plural="papers", short_names=("pp",)
):
    """The same kind as Paper, described by another class."""

    text: str = ""


@pytest.mark.parametrize("form", ["class", "kind"])
async def test_a_child_given_as_another_class_of_an_owned_kind_gets_its_owner_reference(
    cluster: Cluster, form: str
) -> None:
    await cluster.install(Box, Paper)
    read: list[Paper | None] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        if form == "class":
            await ctx.apply(PaperOfAnotherClass(Meta("a"), text="hello"))
        else:
            wire = {"apiVersion": "running.example.com/v1", "kind": "Paper", "metadata": {"name": "a"}}
            await ctx.apply(wire | {"text": "hello"})
        read.append(await ctx.get(Paper, "a"))

    async with running(cluster, Controller(Box, reconcile, owns=[Paper])) as manager:
        box = await cluster.create(Box(Meta("a")))
        paper = await cluster.eventually(Paper, "a", lambda found: found.text == "hello")
        await settled(manager)
        assert writes(manager) == 1
    assert [owner.uid for owner in paper.metadata.owner_references] == [box.metadata.uid]
    assert read[0] is not None
    assert read[0].text == "hello"


async def test_a_child_given_in_another_version_of_an_owned_kind_gets_its_owner_reference(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    await cluster.client.apply(
        definition(SAMPLE), kind=kind_of(apiextensions_v1.CustomResourceDefinition), field_manager="install"
    )
    await served(cluster.client, SAMPLE_BETA, cluster.namespace)

    async def reconcile(box: Box, ctx: Context) -> None:
        sample = {"apiVersion": SAMPLE_BETA.api_version, "kind": "Sample", "metadata": {"name": "a"}}
        await ctx.apply(sample | {"spec": {"text": "hello"}})

    async with running(cluster, Controller(Box, reconcile, owns=[SAMPLE])) as manager:
        box = await cluster.create(Box(Meta("a")))

        async def made() -> Any:
            return await cluster.client.get(SAMPLE, "a", cluster.namespace)

        sample = await eventually(made)
        await settled(manager)
        assert writes(manager) == 1
        await cluster.client.patch(
            SAMPLE, {"spec": {"text": "spoilt"}}, name="a", namespace=cluster.namespace, field_manager="rival"
        )

        async def corrected() -> bool:
            return (await made())["spec"]["text"] == "hello"

        await eventually(corrected)
    assert [owner["uid"] for owner in sample["metadata"]["ownerReferences"]] == [box.metadata.uid]
    assert {entry["apiVersion"] for entry in sample["metadata"]["managedFields"]} == {SAMPLE_BETA.api_version}
