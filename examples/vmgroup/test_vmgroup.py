"""VmGroup from its users' point of view; the external system is the simulator's file."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import kind_of
from kubewright.api.builtin import core_v1
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually
from kubewright.testing.proving import Prover, single_crashes
from vmgroup import VmGroup, VmGroupSpec, controller, operator
from vmgroup.simulator import Call, Fault, World, empty_world, read_world, write_world

TEMPLATE = "vm-operator-template"
SUCCESS = "successfully reconciled VmGroup"


class VCenterFile:
    """The file of the simulated vCenter, to read and to edit."""

    def __init__(self, file: Path) -> None:
        self.file = file
        write_world(file, empty_world())

    @property
    def world(self) -> World:
        return read_world(self.file)

    def edit(self, change: Callable[[World], object]) -> None:
        world = self.world
        change(world)
        write_world(self.file, world)

    def fail(self, operation: str, message: str, times: int = 1) -> None:
        fault = Fault(operation=operation, times=times, message=message)
        self.edit(lambda world: world["faults"].append(fault))

    def calls(self, operation: str) -> list[Call]:
        return [call for call in self.world["calls"] if call["operation"] == operation]

    async def shows(self, holds: Callable[[World], object]) -> None:
        await eventually(lambda: holds(self.world))


@pytest.fixture
def vcenter_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VCenterFile:
    file = tmp_path / "vcenter.json"
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(file))
    return VCenterFile(file)


def group(name: str = "vg-1", *, replicas: int = 3, template: str = TEMPLATE) -> VmGroup:
    return VmGroup(kw.Meta(name), spec=VmGroupSpec(cpu=1, memory=1, replicas=replicas, template=template))


def is_running(replicas: int) -> Callable[[VmGroup], bool]:
    return lambda it: it.status.phase == "RUNNING" and it.status.current_replicas == replicas


def reconciles(manager: Manager) -> int:
    return sum(sum(controller.outcomes.values()) for controller in manager.statistics().controllers)


async def test_creates_the_machines_of_the_spec(cluster: Cluster, vcenter_file: VCenterFile) -> None:
    async with cluster.running(operator()):
        await cluster.create(group())
        made = await cluster.eventually(VmGroup, "vg-1", is_running(3))
    machines = vcenter_file.world["folders"][f"{cluster.namespace}-vg-1"]
    expected = {"power": "on", "cpu": 1, "memory": 1, "template": TEMPLATE}
    assert list(machines.values()) == [expected] * 3
    assert all(
        name.startswith("vg-1-replica-") and len(name) == len("vg-1-replica-") + 8 for name in machines
    )
    assert (made.status.desired_replicas, made.status.last_message) == (3, SUCCESS)
    assert made.metadata.finalizers == ["vm-operator"]


async def test_follows_the_scale_subresource(cluster: Cluster, vcenter_file: VCenterFile) -> None:
    async with cluster.running(operator()):
        await cluster.create(group())
        await cluster.eventually(VmGroup, "vg-1", is_running(3))
        await cluster.client.scale(VmGroup, "vg-1", cluster.namespace, replicas=5)
        await cluster.eventually(VmGroup, "vg-1", is_running(5))
        await cluster.client.scale(VmGroup, "vg-1", cluster.namespace, replicas=2)
        await cluster.eventually(VmGroup, "vg-1", is_running(2))
        scale = await cluster.client.get_scale(VmGroup, "vg-1", cluster.namespace)
    assert (scale.spec.replicas, scale.status.replicas) == (2, 2)
    assert len(vcenter_file.world["folders"][f"{cluster.namespace}-vg-1"]) == 2


async def test_never_clones_more_than_three_at_once(cluster: Cluster, vcenter_file: VCenterFile) -> None:
    async with cluster.running(operator()):
        await cluster.create(group(replicas=7))
        await cluster.eventually(VmGroup, "vg-1", is_running(7))
    clones = vcenter_file.calls("clone")
    at_once = [sum(other["start"] <= call["start"] < other["end"] for other in clones) for call in clones]
    assert (len(clones), max(at_once)) == (7, 3)


async def test_reports_an_unknown_template_and_recovers(cluster: Cluster, vcenter_file: VCenterFile) -> None:
    async with cluster.running(operator()) as manager:
        made = await cluster.create(group(template="no-such-template"))
        failed = await cluster.eventually(VmGroup, "vg-1", lambda it: it.status.phase == "ERROR")
        assert "could not find template" in failed.status.last_message
        assert failed.status.current_replicas is None
        await cluster.settled(VmGroup)
        assert vcenter_file.world["folders"] == {}
        assert reconciles(manager) <= 3
        await cluster.client.patch(made, {"spec": {"template": TEMPLATE}})
        await cluster.eventually(VmGroup, "vg-1", is_running(3))


async def test_a_failed_clone_is_tried_again_after_twenty_seconds(
    cluster: Cluster, vcenter_file: VCenterFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(seconds=20) == controller.RETRY_AFTER
    monkeypatch.setattr(controller, "RETRY_AFTER", timedelta(seconds=4))
    vcenter_file.fail("clone", "the datastore is busy")
    async with cluster.running(operator()):
        await cluster.create(group())
        pending = await cluster.eventually(VmGroup, "vg-1", lambda it: it.status.phase == "PENDING")
        assert (pending.status.last_message, pending.status.current_replicas) == ("the datastore is busy", 2)
        await cluster.eventually(VmGroup, "vg-1", is_running(3))
    *first, last = vcenter_file.calls("clone")
    assert len(first) == 3
    assert last["start"] - max(call["end"] for call in first) >= 4
    assert len(vcenter_file.world["folders"][f"{cluster.namespace}-vg-1"]) == 3


async def test_restores_machines_that_were_changed_in_vcenter(
    cluster: Cluster, vcenter_file: VCenterFile
) -> None:
    folder = f"{cluster.namespace}-vg-1"
    async with cluster.running(operator(resync=timedelta(seconds=0.5))):
        await cluster.create(group())
        await cluster.eventually(VmGroup, "vg-1", is_running(3))
        before = vcenter_file.world["folders"][folder]
        first, second, _ = before

        def meddle(world: World) -> None:
            world["folders"][folder][first]["power"] = "off"
            del world["folders"][folder][second]

        vcenter_file.edit(meddle)
        await vcenter_file.shows(
            lambda world: [machine["power"] for machine in world["folders"][folder].values()] == ["on"] * 3
        )
    assert vcenter_file.world["folders"][folder] == before
    assert [call["vm"] for call in vcenter_file.calls("power_on")] == [first]
    assert [call["vm"] for call in vcenter_file.calls("clone")][3:] == [second]


async def test_deleting_a_group_deletes_its_machines(cluster: Cluster, vcenter_file: VCenterFile) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(group())
        await cluster.eventually(VmGroup, "vg-1", is_running(3))
        await cluster.client.delete(made)
        await cluster.eventually_gone(VmGroup, "vg-1")
    assert vcenter_file.world["folders"] == {}
    assert len(vcenter_file.calls("power_off")) == 3


async def test_a_deleted_group_stays_until_its_machines_are_deleted(
    cluster: Cluster, vcenter_file: VCenterFile
) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(group())
        await cluster.eventually(VmGroup, "vg-1", is_running(3))
        vcenter_file.fail("destroy", "vCenter is away", times=5)
        await cluster.client.delete(made)
        await vcenter_file.shows(lambda world: world["faults"][0]["times"] < 5)
        waiting = await cluster.get(VmGroup, "vg-1")
        assert waiting.metadata.deletion_timestamp is not None
        await cluster.eventually_gone(VmGroup, "vg-1")
    assert vcenter_file.world["folders"] == {}


async def test_groups_that_share_a_folder_keep_to_their_own_machines(
    cluster: Cluster, vcenter_file: VCenterFile
) -> None:
    # "a-b" + "c" and "a" + "b-c" give the same folder.
    twin = f"{cluster.namespace}-b"
    await cluster.client.create(core_v1.Namespace(kw.Meta(twin)))
    elsewhere = Cluster(cluster.server, cluster.client, cluster.config, cluster.kubeconfig, twin)
    async with cluster.running(operator(), everywhere=True):
        await cluster.create(group("b-c", replicas=2))
        made = await elsewhere.create(group("c", replicas=1))
        await cluster.eventually(VmGroup, "b-c", is_running(2))
        await elsewhere.eventually(VmGroup, "c", is_running(1))
        assert len(vcenter_file.world["folders"][f"{cluster.namespace}-b-c"]) == 3
        await cluster.client.delete(made)
        await elsewhere.eventually_gone(VmGroup, "c")
        assert len(vcenter_file.world["folders"][f"{cluster.namespace}-b-c"]) == 2
    await cluster.client.delete(core_v1.Namespace(kw.Meta(twin)))


async def test_reports_machines_that_differ_from_the_spec(
    cluster: Cluster, vcenter_file: VCenterFile
) -> None:
    def spec_applied(status: str) -> Callable[[VmGroup], bool]:
        return lambda it: (
            [found.status for found in it.status.conditions if found.type == "SpecApplied"] == [status]
        )

    async with cluster.running(operator()):
        made = await cluster.create(group())
        await cluster.eventually(VmGroup, "vg-1", spec_applied("True"))
        await cluster.client.patch(made, {"spec": {"cpu": 2}})
        changed = await cluster.eventually(VmGroup, "vg-1", spec_applied("False"))
    (condition,) = changed.status.conditions
    assert condition.observed_generation == changed.metadata.generation
    assert all(
        name in condition.message for name in vcenter_file.world["folders"][f"{cluster.namespace}-vg-1"]
    )


def test_a_change_of_cpu_ends_in_the_same_machines_after_crashes() -> None:
    sample: dict[str, Any] = {
        "apiVersion": kind_of(VmGroup).api_version,
        "kind": "VmGroup",
        "metadata": {"name": "vg-1"},
        "spec": {"cpu": 1, "memory": 1, "replicas": 2, "template": TEMPLATE},
    }
    prover = Prover(operator, [sample, {**sample, "spec": {**sample["spec"], "cpu": 2}}])
    seen = prover.undisturbed()
    assert [text for text, _ in seen.changes.values()] == ["spec.cpu: 1 -> 2"]
    for case in list(single_crashes(seen.points))[::6]:
        result = prover.run(case)
        assert result.failure is None, result.failure


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu": 5}, "spec.cpu in body should be less than or equal to 4"),
        ({"cpu": 0}, "spec.cpu in body should be greater than or equal to 1"),
        ({"memory": 9}, "spec.memory in body should be less than or equal to 8"),
        ({"replicas": 0}, "spec.replicas in body should be greater than or equal to 1"),
        ({"template": None}, "spec.template: Required value"),
    ],
)
async def test_refuses_invalid_groups(cluster: Cluster, change: dict[str, Any], message: str) -> None:
    await cluster.install(operator())
    kind = kind_of(VmGroup)
    spec = {"cpu": 1, "memory": 1, "replicas": 1, "template": TEMPLATE} | change
    document: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "wrong", "namespace": cluster.namespace},
        "spec": {name: value for name, value in spec.items() if value is not None},
    }
    with pytest.raises(kw.errors.Invalid, match=message):
        await cluster.client.create(document, kind=kind)


async def test_an_unknown_provider_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMGROUP_PROVIDER", "cloud")
    lifespan = operator().lifespan
    assert lifespan is not None
    with pytest.raises(kw.errors.ConfigError, match='VMGROUP_PROVIDER is "cloud"'):
        async with lifespan():
            pass
