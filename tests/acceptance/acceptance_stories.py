"""The life of each sample operator's objects, step by step: what a person does, and what must come of it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from acceptance_samples import SAMPLES, Sample

import kubewright as kw
from foo import Foo
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.testing import Cluster, eventually
from mycustomresource import MyCustomResource
from myownshell import MyOwnShell
from pulsarconsumer import PulsarConsumer
from vmgroup import VmGroup
from vmgroup.simulator import World, read_world

SHELL, GROUP, CONSUMER = "myownshell-sample", "vg-1", "pulsarconsumer-sample"
DEPLOYMENT = f"{CONSUMER}-deployment"
DEFAULT_TIMEOUT = 100.0
"""As long as the slowest recovery: a lease that runs out, a backoff, a real garbage collector that looks for kinds."""


@dataclass
class Stage:
    """Where a story plays."""

    sample: Sample
    cluster: Cluster
    outside: Path
    """The simulated vCenter's file."""

    def world(self) -> World:
        """Read the outside world."""
        return read_world(self.outside)

    async def eventually(self, kind: type[Any], name: str, holds: Callable[[Any], object] = bool) -> Any:
        """Wait for an object, longer than any recovery takes."""
        return await self.cluster.eventually(kind, name, holds, timeout=DEFAULT_TIMEOUT)

    async def gone(self, kind: type[Any], name: str) -> None:
        """Wait for an object's end."""
        await self.cluster.eventually_gone(kind, name, timeout=DEFAULT_TIMEOUT)

    async def patch(self, kind: type[Any], name: str, change: dict[str, Any]) -> None:
        """Change an object as its user would."""
        await self.cluster.client.patch(kind, change, name=name, namespace=self.cluster.namespace)

    async def delete(self, kind: type[Any], name: str) -> Any:
        """Delete an object at once; gives what was there."""
        found = await self.cluster.get(kind, name)
        await self.cluster.client.delete(found, grace_period_seconds=0 if kind is core_v1.Pod else None)
        return found


Play = Callable[[Stage], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Step:
    """One thing that a person does, and the wait for what must come of it."""

    title: str
    play: Play


async def apply_samples(stage: Stage) -> None:
    for document in stage.sample.documents():
        document["metadata"]["namespace"] = stage.cluster.namespace
        apply = partial(stage.cluster.client.apply, document, field_manager="person")
        # While the operator whose webhook validates its objects is down, retry, as a user would.
        await eventually(apply, ignore=kw.ApiError, timeout=DEFAULT_TIMEOUT)
    for document in stage.sample.documents():
        await stage.eventually(stage.sample.kind, document["metadata"]["name"], stage.sample.settled)


async def joe_appears(stage: Stage) -> None:
    container = core_v1.Container(name="ubuntu", image="ubuntu:latest", command=["sleep", "infinity"])
    spec = core_v1.PodSpec(containers=[container], scheduler_name="none")
    await stage.cluster.create(core_v1.Pod(kw.Meta("funny-joe"), spec=spec))
    await stage.eventually(MyCustomResource, "my-custom-resource-01", lambda it: it.status.healthy)


async def joe_leaves(stage: Stage) -> None:
    await stage.delete(core_v1.Pod, "funny-joe")
    await stage.eventually(MyCustomResource, "my-custom-resource-01", lambda it: it.status.healthy is False)


async def friend_goes(stage: Stage) -> None:
    await stage.delete(MyCustomResource, "my-custom-resource-01")
    await stage.gone(MyCustomResource, "my-custom-resource-01")


async def shell_grows(stage: Stage) -> None:
    await stage.patch(MyOwnShell, SHELL, {"spec": {"size": 5}})
    await stage.eventually(MyOwnShell, SHELL, lambda it: it.status.ready == 5)


async def shell_drifts(stage: Stage) -> None:
    await stage.cluster.client.scale(apps_v1.Deployment, SHELL, stage.cluster.namespace, replicas=1)
    await stage.eventually(
        apps_v1.Deployment, SHELL, lambda it: it.spec.replicas == 5 and it.status.ready_replicas == 5
    )


async def shell_loses_its_deployment(stage: Stage) -> None:
    old = await stage.delete(apps_v1.Deployment, SHELL)
    await stage.eventually(
        apps_v1.Deployment,
        SHELL,
        lambda it: it.metadata.uid != old.metadata.uid and it.status.ready_replicas == 5,
    )
    await stage.eventually(MyOwnShell, SHELL, lambda it: it.status.ready == 5)


async def shell_goes(stage: Stage) -> None:
    await stage.delete(MyOwnShell, SHELL)
    await stage.gone(MyOwnShell, SHELL)
    await stage.gone(apps_v1.Deployment, SHELL)


async def foo_loses_its_pod(stage: Stage) -> None:
    old = await stage.delete(core_v1.Pod, "test")
    await stage.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != old.metadata.uid)


async def foo_goes(stage: Stage) -> None:
    await stage.delete(Foo, "test")
    await stage.gone(Foo, "test")
    await stage.cluster.get(core_v1.Pod, "test")


def group_is(phase: str, replicas: int | None) -> Callable[[VmGroup], bool]:
    return lambda it: (
        it.status.phase == phase
        and (replicas is None or it.status.current_replicas == replicas == it.status.desired_replicas)
        and all(printed.observed_generation == it.metadata.generation for printed in it.status.conditions)
    )


def group_scales(replicas: int) -> Play:
    async def play(stage: Stage) -> None:
        await stage.cluster.client.scale(VmGroup, GROUP, stage.cluster.namespace, replicas=replicas)
        await stage.eventually(VmGroup, GROUP, group_is("RUNNING", replicas))
        machines = stage.world()["folders"][f"{stage.cluster.namespace}-{GROUP}"]
        assert [machine["power"] for machine in machines.values()] == ["on"] * replicas

    return play


async def group_meets_a_wrong_template(stage: Stage) -> None:
    await stage.patch(VmGroup, GROUP, {"spec": {"template": "no-such"}})
    await stage.eventually(VmGroup, GROUP, group_is("ERROR", None))


async def group_recovers(stage: Stage) -> None:
    await stage.patch(VmGroup, GROUP, {"spec": {"template": "vm-operator-template"}})
    await stage.eventually(VmGroup, GROUP, group_is("RUNNING", 2))


async def group_goes(stage: Stage) -> None:
    await stage.delete(VmGroup, GROUP)
    await stage.gone(VmGroup, GROUP)
    assert stage.world()["folders"] == {}


async def consumer_changes(stage: Stage) -> None:
    await stage.patch(PulsarConsumer, CONSUMER, {"spec": {"replicas": 3, "topic": "t2"}})
    await stage.eventually(
        PulsarConsumer, CONSUMER, lambda it: (it.status.topic, it.status.replicas) == ("t2", 3)
    )
    await stage.eventually(apps_v1.Deployment, DEPLOYMENT, lambda it: it.status.ready_replicas == 3)


async def consumer_is_annotated(stage: Stage) -> None:
    await stage.patch(PulsarConsumer, CONSUMER, {"metadata": {"annotations": {"note": "changed"}}})


async def consumer_drifts(stage: Stage) -> None:
    await stage.cluster.client.scale(apps_v1.Deployment, DEPLOYMENT, stage.cluster.namespace, replicas=1)
    await stage.eventually(
        apps_v1.Deployment, DEPLOYMENT, lambda it: it.spec.replicas == 3 and it.status.ready_replicas == 3
    )


async def consumer_loses_its_deployment(stage: Stage) -> None:
    old = await stage.delete(apps_v1.Deployment, DEPLOYMENT)
    await stage.eventually(
        apps_v1.Deployment,
        DEPLOYMENT,
        lambda it: it.metadata.uid != old.metadata.uid and it.status.ready_replicas == 3,
    )


async def consumer_goes(stage: Stage) -> None:
    await stage.delete(PulsarConsumer, CONSUMER)
    await stage.gone(PulsarConsumer, CONSUMER)
    await stage.gone(apps_v1.Deployment, DEPLOYMENT)


SAMPLES_APPLIED = Step("the samples are applied", apply_samples)
STORIES = {
    "mycustomresource": (
        SAMPLES_APPLIED,
        Step("the friend of one appears", joe_appears),
        Step("the friend leaves", joe_leaves),
        Step("the resource is deleted", friend_goes),
    ),
    "myownshell": (
        SAMPLES_APPLIED,
        Step("size 3 becomes 5", shell_grows),
        Step("the Deployment is scaled to 1 by hand", shell_drifts),
        Step("the Deployment is deleted", shell_loses_its_deployment),
        Step("the resource is deleted", shell_goes),
    ),
    "foo": (
        SAMPLES_APPLIED,
        Step("its Pod is deleted", foo_loses_its_pod),
        Step("the resource is deleted", foo_goes),
    ),
    "vmgroup": (
        SAMPLES_APPLIED,
        Step("it is scaled to 5", group_scales(5)),
        Step("it is scaled to 2", group_scales(2)),
        Step("it is given a template that is not there", group_meets_a_wrong_template),
        Step("the template is corrected", group_recovers),
        Step("the resource is deleted", group_goes),
    ),
    "pulsarconsumer": (
        SAMPLES_APPLIED,
        Step("replicas and topic change in one patch", consumer_changes),
        Step("it is annotated", consumer_is_annotated),
        Step("the Deployment is scaled to 1 by hand", consumer_drifts),
        Step("the Deployment is deleted", consumer_loses_its_deployment),
        Step("the resource is deleted", consumer_goes),
    ),
}


def stages(cluster: Cluster, outside: Path) -> list[Stage]:
    """Set a stage for each sample in one namespace; their objects do not meet."""
    return [Stage(sample, cluster, outside) for sample in SAMPLES]
