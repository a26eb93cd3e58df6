"""COM 5 and 7: replicas as processes, their lease, their end."""

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from acceptance_replica import Replica
from acceptance_samples import SAMPLES, Sample

import kubewright as kw
from kubewright.api.builtin import apps_v1, coordination_v1
from kubewright.testing import Cluster, eventually
from myownshell import MyOwnShell, ShellSpec
from vmgroup import VmGroup, VmGroupSpec
from vmgroup.simulator import read_world

Launch = Callable[..., Awaitable[Replica]]
SHELL = next(sample for sample in SAMPLES if sample.name == "myownshell")
TAKE_OVER = 100.0
"""As long as a lease that runs out, and a replica that only starts, take on a busy machine."""


async def holder(cluster: Cluster) -> str:
    lease = await cluster.get(coordination_v1.Lease, "myownshell")
    return lease.spec.holder_identity or ""


async def two_replicas(cluster: Cluster, launch: Launch) -> tuple[Replica, Replica]:
    """Start two; the first one given holds the lease."""
    await cluster.install(SHELL.operator())
    leader = await launch(SHELL.target, "--leader-elect")
    await leader.wait_says("Starting workers")
    return leader, await launch(SHELL.target, "--leader-elect")


async def test_the_standby_takes_over_when_the_leader_is_killed(cluster: Cluster, launch: Launch) -> None:
    leader, other = await two_replicas(cluster, launch)
    made = await cluster.create(MyOwnShell(kw.Meta("demo"), spec=ShellSpec(size=1)))
    await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.spec.replicas == 1)
    before = await holder(cluster)
    await leader.ended(signal.SIGKILL, timeout=60)
    assert not any("Starting workers" in line.get("msg", "") for line in other.lines())
    await cluster.client.patch(made, {"spec": {"size": 2}})
    await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.spec.replicas == 2, timeout=TAKE_OVER)
    assert await holder(cluster) != before
    assert await other.ended(signal.SIGTERM, timeout=60) == 0


async def test_a_leader_that_is_terminated_releases_its_lease_at_once(
    cluster: Cluster, launch: Launch
) -> None:
    leader, other = await two_replicas(cluster, launch)
    before = await holder(cluster)
    assert await leader.ended(signal.SIGTERM, timeout=60) == 0
    # Released, or already acquired by the other: it does not have to expire first.
    assert await holder(cluster) != before
    await other.wait_says("Starting workers", timeout=TAKE_OVER)
    assert await holder(cluster) not in ("", before)
    assert await other.ended(signal.SIGTERM, timeout=60) == 0


async def test_a_replica_exits_with_0_when_terminated(
    sample: Sample, cluster: Cluster, launch: Launch
) -> None:
    replica = await launch(sample.target, "--install")
    await replica.wait_says("Starting workers")
    assert await replica.ended(signal.SIGTERM, timeout=60) == 0


async def test_running_reconciles_end_before_the_process_exits(
    cluster: Cluster, launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "vcenter.json"
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(file))
    vm_sample = next(sample for sample in SAMPLES if sample.name == "vmgroup")
    replica = await launch(vm_sample.target, "--install")
    await replica.wait_says("Starting workers")
    spec = VmGroupSpec(cpu=1, memory=1, replicas=7, template="vm-operator-template")
    await cluster.create(VmGroup(kw.Meta("vg-1"), spec=spec))
    await eventually(lambda: any(call["operation"] == "clone" for call in read_world(file)["calls"]))
    assert await replica.ended(signal.SIGTERM, timeout=60) == 0
    assert len(read_world(file)["folders"][f"{cluster.namespace}-vg-1"]) == 7
    printed = await cluster.get(VmGroup, "vg-1")
    assert printed.status.current_replicas == 7
