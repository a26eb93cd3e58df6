"""Keep as many virtual machines as each VmGroup asks for, in a folder of its own."""

import asyncio
import os
import random
import re
import string
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta

import kubewright as kw
from vmgroup.kinds import Phase, VmGroup, VmGroupStatus
from vmgroup.provider import Machine, Provider, ProviderError
from vmgroup.simulator import Simulator, simulator_file

OPERATIONS_AT_ONCE = 3
RETRY_AFTER = timedelta(seconds=20)
RESYNC = timedelta(minutes=5)

Job = Callable[[], Awaitable[None]]


def folder_of(group: VmGroup) -> str:
    """Name the folder of a group; two groups may share one, so machines are told apart by name."""
    return f"{group.metadata.namespace}-{group.metadata.name}"


def new_machine_name(group: VmGroup) -> str:
    """Choose the name of a new machine."""
    return f"{group.metadata.name}-replica-{''.join(random.choices(string.ascii_lowercase, k=8))}"


def belongs_to(group: VmGroup, machine: Machine) -> bool:
    """Tell whether a machine was made for this group."""
    return re.fullmatch(rf"{re.escape(group.metadata.name)}-replica-[a-z]{{8}}", machine.name) is not None


def spec_applied(group: VmGroup, machines: Iterable[Machine]) -> kw.Condition:
    """Tell in a condition whether live machines are as the spec says: they are not rebuilt by themselves."""
    wanted = (group.spec.cpu, group.spec.memory, group.spec.template)
    different = sorted(m.name for m in machines if (m.cpu, m.memory, m.template) != wanted)
    return kw.Condition(
        type="SpecApplied",
        status="False" if different else "True",
        reason="MachinesDiffer" if different else "MachinesMatch",
        message=f"cpu, memory or template differ: {', '.join(different)}" if different else "",
    )


def status_of(group: VmGroup, phase: Phase, machines: list[Machine], message: str) -> VmGroupStatus:
    """Say how the group is; a group in error without machines shows no number of them."""
    return VmGroupStatus(
        phase=phase,
        current_replicas=None if phase == "ERROR" and not machines else len(machines),
        desired_replicas=group.spec.replicas,
        last_message=message,
        conditions=[spec_applied(group, machines)],
    )


async def at_most(limit: int, jobs: Iterable[Job]) -> None:
    """Do all jobs, a few at once; the first failure is raised when each has had its turn."""
    gate = asyncio.Semaphore(limit)
    failures: list[ProviderError] = []

    async def take_turn(job: Job) -> None:
        async with gate:
            try:
                await job()
            except ProviderError as error:
                failures.append(error)

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(take_turn(job))
    if failures:
        raise failures[0]


class VmGroups:
    """Reconcile VmGroups against the outside system that the environment names."""

    def __init__(self) -> None:
        self._provider: Provider | None = None

    @property
    def provider(self) -> Provider:
        """The outside system; there is one only inside `session`."""
        if self._provider is None:
            raise RuntimeError("VmGroups works inside its session only")
        return self._provider

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[None, None]:
        """Connect to the provider that VMGROUP_PROVIDER names."""
        name = os.environ.get("VMGROUP_PROVIDER", "simulator")
        if name != "simulator":
            raise kw.ConfigError(f'VMGROUP_PROVIDER is "{name}": the only provider is "simulator"')
        self._provider = await Simulator.open(simulator_file())
        yield
        self._provider = None

    async def reconcile(self, group: VmGroup, ctx: kw.Context) -> kw.Result | None:
        """Bring the number of running machines to `spec.replicas`."""
        try:
            if not await self.provider.has_template(group.spec.template):
                message = f'could not find template "{group.spec.template}"'
                await ctx.patch_status(group, status_of(group, "ERROR", await self._machines(group), message))
                return None
            await self._scale(group)
        except ProviderError as error:
            ctx.warn("ProviderFailed", str(error))
            await ctx.patch_status(
                group, status_of(group, "PENDING", await self._machines(group), str(error))
            )
            return kw.Result(after=RETRY_AFTER)
        machines = await self._machines(group)
        await ctx.patch_status(
            group, status_of(group, "RUNNING", machines, "successfully reconciled VmGroup")
        )
        return None

    async def finalize(self, group: VmGroup, ctx: kw.Context) -> None:
        """Remove every machine, then the folder; what fails is tried again, and the group stays until then."""
        await at_most(OPERATIONS_AT_ONCE, [self._removal(group, m) for m in await self._machines(group)])
        await self.provider.delete_folder(folder_of(group))

    async def _machines(self, group: VmGroup) -> list[Machine]:
        machines = await self.provider.machines(folder_of(group))
        return sorted((m for m in machines if belongs_to(group, m)), key=lambda machine: machine.name)

    async def _scale(self, group: VmGroup) -> None:
        await self.provider.create_folder(folder_of(group))
        machines = await self._machines(group)
        keep, surplus = machines[: group.spec.replicas], machines[group.spec.replicas :]
        jobs = [self._removal(group, machine) for machine in surplus]
        jobs += [self._power_on(group, machine) for machine in keep if not machine.powered_on]
        jobs += [self._clone(group) for _ in range(group.spec.replicas - len(keep))]
        await at_most(OPERATIONS_AT_ONCE, jobs)

    def _clone(self, group: VmGroup) -> Job:
        spec = group.spec
        return lambda: self.provider.clone(
            folder_of(group),
            new_machine_name(group),
            template=spec.template,
            cpu=spec.cpu,
            memory=spec.memory,
        )

    def _power_on(self, group: VmGroup, machine: Machine) -> Job:
        return lambda: self.provider.power_on(folder_of(group), machine.name)

    def _removal(self, group: VmGroup, machine: Machine) -> Job:
        async def remove() -> None:
            if machine.powered_on:
                await self.provider.power_off(folder_of(group), machine.name)
            await self.provider.destroy(folder_of(group), machine.name)

        return remove


def operator(*, resync: timedelta = RESYNC) -> kw.Operator:
    """Declare the operator; nothing outside is touched until it runs."""
    groups = VmGroups()
    return kw.Operator(
        kw.Controller(
            VmGroup,
            groups,
            finalizer="vm-operator",
            # Its own status is no reason to look again: a failed operation waits for its 20 seconds.
            when=kw.generation_changed,
            resync=resync,
            concurrency=4,
        ),
        name="vmgroup",
        lifespan=groups.session,
        env=[kw.Env(name, secret="vc-creds") for name in ("VC_HOST", "VC_USER", "VC_PASS")],
    )
