"""The demo's scenario: a sequence of steps, each of which is checked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import kubewright as kw
from kubewright.api.builtin import apps_v1, coordination_v1, core_v1
from mycustomresource import MyCustomResource
from myownshell import MyOwnShell
from pulsarconsumer import PulsarConsumer
from show.environment import NAMESPACE, REPLICATED, Environment
from vmgroup import VmGroup

SHELL, GROUP, CONSUMER = "myownshell-sample", "vg-1", "pulsarconsumer-sample"
TEMPLATE = "vm-operator-template"
TAKE_OVER = 30.0


@dataclass(frozen=True)
class Step:
    """One step; `play` runs it, waits for the result and returns a description of it."""

    title: str
    play: Callable[[], Awaitable[str]]


class Scenario:
    """The steps that show what operators do."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._cluster = environment.cluster
        self._leader = ""

    async def steps(self) -> AsyncIterator[Step]:
        """Yield the steps in order."""
        for step in (
            Step("The samples of the five operators are applied", self.samples),
            Step("A Pod called funny-joe appears", self.friend),
            Step("MyOwnShell: size 3 becomes 5", self.grow),
            Step("Its Deployment is scaled to 1 by hand", self.drift),
            Step("The Pod of a Foo is deleted", self.deleted_pod),
            Step("The leader of the two MyOwnShell replicas is killed", self.kill_leader),
            Step("A VmGroup gets a template that does not exist", self.wrong_template),
            Step("The template is corrected", self.right_template),
            Step("A PulsarConsumer gets another topic and two replicas", self.consumer),
            Step("MyOwnShell: size 5 becomes 2 while its operator has no leader", self.take_over),
        ):
            yield step

    async def samples(self) -> str:
        """Apply the samples and wait until each operator has reconciled them."""
        applied = await self._environment.apply_samples()
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
        """Create the Pod that one of the resources looks for."""
        container = core_v1.Container(name="ubuntu", image="ubuntu:latest", command=["sleep", "infinity"])
        joe = core_v1.Pod(kw.Meta("funny-joe"), spec=core_v1.PodSpec(containers=[container]))
        await self._cluster.create(joe)
        await self._cluster.eventually(
            MyCustomResource, "my-custom-resource-01", lambda it: it.status.healthy is True
        )
        other = await self._cluster.get(MyCustomResource, "my-custom-resource-02")
        if other.status.healthy:
            raise AssertionError("my-custom-resource-02 has no friend and is Healthy")
        return "my-custom-resource-01 is Healthy, 02 is not"

    async def grow(self) -> str:
        """Increase the size."""
        await self._patch(MyOwnShell, SHELL, {"spec": {"size": 5}})
        await self._cluster.eventually(MyOwnShell, SHELL, lambda it: it.status.ready == 5)
        return "5 of 5 shells are ready"

    async def drift(self) -> str:
        """Scale the Deployment manually."""
        await self._cluster.client.scale(apps_v1.Deployment, SHELL, NAMESPACE, replicas=1)
        await self._cluster.eventually(
            apps_v1.Deployment, SHELL, lambda it: it.spec.replicas == 5 and it.status.ready_replicas == 5
        )
        return "back at 5"

    async def deleted_pod(self) -> str:
        """Delete the Pod of a Foo."""
        pod = await self._cluster.get(core_v1.Pod, "test")
        await self._cluster.client.delete(pod)
        await self._cluster.eventually(core_v1.Pod, "test", lambda it: it.metadata.uid != pod.metadata.uid)
        return "a new Pod called test is there"

    async def kill_leader(self) -> str:
        """Kill the replica that holds the lease; the other one takes over when the lease expires."""
        self._leader = await self._environment.leader()
        replica = self._environment.replicas[0]
        await replica.kill()
        return f"process {replica.pid} is killed; its lease expires in 15 s"

    async def wrong_template(self) -> str:
        """Set a template that does not exist."""
        await self._patch(VmGroup, GROUP, {"spec": {"template": "no-such-template"}})
        group = await self._cluster.eventually(VmGroup, GROUP, lambda it: it.status.phase == "ERROR")
        return f"ERROR: {group.status.last_message}"

    async def right_template(self) -> str:
        """Set the template that exists."""
        await self._patch(VmGroup, GROUP, {"spec": {"template": TEMPLATE}})
        group = await self._cluster.eventually(VmGroup, GROUP, lambda it: it.status.phase == "RUNNING")
        return f"RUNNING {group.status.current_replicas}/{group.status.desired_replicas}"

    async def consumer(self) -> str:
        """Change two fields in one patch."""
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
        """Change the size and wait until the other replica takes over."""
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
