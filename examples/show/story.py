"""The story: what happens on the stage, step by step, each step checked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import kubewright as kw
from kubewright.api.builtin import apps_v1, coordination_v1, core_v1
from mycustomresource import MyCustomResource
from myownshell import MyOwnShell
from pulsarconsumer import PulsarConsumer
from show.stage import NAMESPACE, REPLICATED, Stage
from vmgroup import VmGroup

SHELL, GROUP, CONSUMER = "myownshell-sample", "vg-1", "pulsarconsumer-sample"
TEMPLATE = "vm-operator-template"
TAKE_OVER = 30.0


@dataclass(frozen=True)
class Step:
    """One thing that happens, and what must come of it; `play` returns what was seen."""

    title: str
    play: Callable[[], Awaitable[str]]


class Story:
    """Tell what operators do, on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster = stage.cluster
        self._leader = ""

    async def steps(self) -> AsyncIterator[Step]:
        """Give the steps in order."""
        for step in (
            Step("The samples of the five operators are applied", self.samples),
            Step("A Pod called funny-joe appears", self.friend),
            Step("MyOwnShell: size 3 becomes 5", self.grow),
            Step("Its Deployment is scaled to 1 by hand", self.drift),
            Step("The Pod of a Foo is deleted", self.deleted_pod),
            Step("The leader of the two MyOwnShell replicas is killed", self.kill_leader),
            Step("A VmGroup is given a template that is not there", self.wrong_template),
            Step("The template is corrected", self.right_template),
            Step("A PulsarConsumer gets another topic and two replicas", self.consumer),
            Step("MyOwnShell: size 5 becomes 2 while its operator has no leader", self.take_over),
        ):
            yield step

    async def samples(self) -> str:
        """Apply the samples and wait until each operator has done its part."""
        applied = await self._stage.apply_samples()
        wait = self._cluster.eventually
        await wait(MyCustomResource, "my-custom-resource-01", lambda it: it.status.healthy is False)
        await wait(MyOwnShell, SHELL, lambda it: it.status.ready == 3)
        await wait(core_v1.Pod, "test", lambda it: it.status.phase == "Running")
        await wait(
            VmGroup, GROUP, lambda it: it.status.phase == "RUNNING" and it.status.current_replicas == 3
        )
        await wait(PulsarConsumer, CONSUMER, lambda it: it.status.topic == "my-topic")
        return f"{len(applied)} resources, 3 shells ready, 3 machines on, a consumer deployed"

    async def friend(self) -> str:
        """Make the friend that one resource looks for."""
        container = core_v1.Container(name="ubuntu", image="ubuntu:latest", command=["sleep", "infinity"])
        joe = core_v1.Pod(kw.Meta("funny-joe"), spec=core_v1.PodSpec(containers=[container]))
        await self._cluster.create(joe)
        await self._cluster.eventually(
            MyCustomResource, "my-custom-resource-01", lambda it: it.status.healthy is True
        )
        other = await self._cluster.get(MyCustomResource, "my-custom-resource-02")
        if other.status.healthy:
            raise AssertionError("my-custom-resource-02 has no friend and says Healthy")
        return "my-custom-resource-01 is Healthy, 02 is not"

    async def grow(self) -> str:
        """Ask for more shells."""
        await self._patch(MyOwnShell, SHELL, {"spec": {"size": 5}})
        await self._cluster.eventually(MyOwnShell, SHELL, lambda it: it.status.ready == 5)
        return "5 of 5 shells are ready"

    async def drift(self) -> str:
        """Change the Deployment behind the operator's back."""
        await self._cluster.client.scale(apps_v1.Deployment, SHELL, NAMESPACE, replicas=1)
        await self._cluster.eventually(
            apps_v1.Deployment, SHELL, lambda it: it.spec.replicas == 5 and it.status.ready_replicas == 5
        )
        return "back at 5"

    async def deleted_pod(self) -> str:
        """Take a Foo's Pod away."""
        pod = await self._cluster.get(core_v1.Pod, "test")
        await self._cluster.client.delete(pod)
        await self._cluster.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != pod.metadata.uid)
        return "a new Pod called test is there"

    async def kill_leader(self) -> str:
        """Kill the replica that holds the lease; the other one cannot know yet."""
        self._leader = await self._stage.leader()
        replica = self._stage.replicas[0]
        await replica.kill()
        return f"process {replica.pid} is gone; its lease runs out in 15 s"

    async def wrong_template(self) -> str:
        """Break the VmGroup."""
        await self._patch(VmGroup, GROUP, {"spec": {"template": "no-such-template"}})
        group = await self._cluster.eventually(VmGroup, GROUP, lambda it: it.status.phase == "ERROR")
        return f"ERROR: {group.status.last_message}"

    async def right_template(self) -> str:
        """Fix the VmGroup."""
        await self._patch(VmGroup, GROUP, {"spec": {"template": TEMPLATE}})
        group = await self._cluster.eventually(VmGroup, GROUP, lambda it: it.status.phase == "RUNNING")
        return f"RUNNING {group.status.current_replicas}/{group.status.desired_replicas}"

    async def consumer(self) -> str:
        """Change two things in one patch."""
        name = f"{CONSUMER}-deployment"
        before = await self._cluster.get(apps_v1.Deployment, name)
        await self._patch(PulsarConsumer, CONSUMER, {"spec": {"topic": "t2", "replicas": 2}})
        await self._cluster.eventually(PulsarConsumer, CONSUMER, lambda it: it.status.topic == "t2")
        after = await self._cluster.eventually(
            apps_v1.Deployment, name, lambda it: it.status.ready_replicas == 2
        )
        changes = after.metadata.generation - before.metadata.generation
        if changes != 1:
            raise AssertionError(f"the Deployment was changed {changes} times")
        return "its Deployment follows in one change"

    async def take_over(self) -> str:
        """Leave work for the replica that is left."""
        await self._patch(MyOwnShell, SHELL, {"spec": {"size": 2}})
        await self._cluster.eventually(
            coordination_v1.Lease,
            REPLICATED,
            lambda it: it.spec.holder_identity not in (None, "", self._leader),
            timeout=TAKE_OVER,
        )
        await self._cluster.eventually(MyOwnShell, SHELL, lambda it: it.status.ready == 2)
        return "the other replica has taken over: 2 shells are ready"

    async def _patch(self, kind: type[kw.Object], name: str, patch: dict[str, object]) -> None:
        await self._cluster.client.patch(kind, patch, name=name, namespace=NAMESPACE)
