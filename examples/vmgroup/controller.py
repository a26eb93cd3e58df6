"""Keep as many virtual machines as each VmGroup asks for, in a folder of its own."""

import asyncio
import os
import random
import re
import string
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import kubewright as kw
from vmgroup.kinds import Phase, VmGroup, VmGroupStatus
from vmgroup.provider import Machine, Provider, ProviderError
from vmgroup.simulator import Simulator

OPERATIONS_AT_ONCE = 3
RETRY_AFTER = timedelta(seconds=20)
RESYNC = timedelta(minutes=5)


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
        observed_generation=group.metadata.generation,
    )


def status_of(group: VmGroup, phase: Phase, machines: list[Machine], message: str) -> VmGroupStatus:
    """Say how the group is; a group that never had machines shows no number of them."""
    return VmGroupStatus(
        phase=phase,
        current_replicas=len(machines) if machines or phase != "ERROR" else None,
        desired_replicas=group.spec.replicas,
        last_message=message,
        conditions=[spec_applied(group, machines)],
    )


class VmGroups:
    """Reconcile VmGroups against the provider that the environment names."""

    def __init__(self) -> None:
        self._provider: Provider | None = None

    @property
    def provider(self) -> Provider:
        """The outside system; there is one only inside `session`."""
        if self._provider is None:
            raise RuntimeError("VmGroups works inside its session only")
        return self._provider

    async def reconcile(self, group: VmGroup, ctx: kw.Context) -> kw.Result | None:
        """Bring the number of running machines to `spec.replicas`."""
        if not await self.provider.has_template(group.spec.template):
            message = f'could not find template "{group.spec.template}"'
            await ctx.patch_status(group, status_of(group, "ERROR", await self._machines(group), message))
            return None
        try:
            await self._scale(group)
        except ProviderError as error:
            await ctx.patch_status(group, status_of(group, "PENDING", await self._machines(group), str(error)))
            ctx.warn("ProviderFailed", str(error))
            return kw.Result(after=RETRY_AFTER)
        message = "successfully reconciled VmGroup"
        await ctx.patch_status(group, status_of(group, "RUNNING", await self._machines(group), message))
        return None

    async def finalize(self, group: VmGroup, ctx: kw.Context) -> None:
        """Remove every machine, then the folder; what fails is tried again."""
        await at_most(OPERATIONS_AT_ONCE, [self._remove(group, machine) for machine in await self._machines(group)])
        await self.provider.delete_folder(folder_of(group))

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[None, None]:
        """Connect to the provider named by VMGROUP_PROVIDER."""
        name = os.environ.get("VMGROUP_PROVIDER", "simulator")
        if name != "simulator":
            raise kw.ConfigError(f'VMGROUP_PROVIDER is "{name}"; this version knows "simulator"')
        default = Path(tempfile.gettempdir()) / "vmgroup-simulator.json"
        self._provider = Simulator(Path(os.environ.get("VMGROUP_SIMULATOR", default)))
        yield
        self._provider = None

    async def _machines(self, group: VmGroup) -> list[Machine]:
        machines = await self.provider.machines(folder_of(group))
        return sorted((m for m in machines if belongs_to(group, m)), key=lambda machine: machine.name)

    async def _scale(self, group: VmGroup) -> None:
        machines = await self._machines(group)
        await self.provider.create_folder(folder_of(group))
        keep, surplus = machines[: group.spec.replicas], machines[group.spec.replicas :]
        work: list[Awaitable[None]] = [self._remove(group, machine) for machine in surplus]
        work += [self._clone(group) for _ in range(group.spec.replicas - len(keep))]
        off = [machine.name for machine in keep if not machine.powered_on]
        work += [self.provider.power_on(folder_of(group), name) for name in off]
        await at_most(OPERATIONS_AT_ONCE, work)

    async def _clone(self, group: VmGroup) -> None:
        await self.provider.clone(
            folder_of(group),
            new_machine_name(group),
            template=group.spec.template,
            cpu=group.spec.cpu,
            memory=group.spec.memory,
        )

    async def _remove(self, group: VmGroup, machine: Machine) -> None:
        if machine.powered_on:
            await self.provider.power_off(folder_of(group), machine.name)
        await self.provider.destroy(folder_of(group), machine.name)


async def at_most(limit: int, work: Iterable[Awaitable[None]]) -> None:
    """Do the work, a few at once; the first failure is raised when all that started has ended."""
    gate = asyncio.Semaphore(limit)

    async def one(job: Awaitable[None]) -> None:
        async with gate:
            await job

    for outcome in await asyncio.gather(*(one(job) for job in work), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def operator() -> kw.Operator:
    """Declare the operator; nothing outside is touched until it runs."""
    groups = VmGroups()
    return kw.Operator(
        kw.Controller(VmGroup, groups, finalizer="vm-operator", resync=RESYNC, concurrency=4),
        name="vmgroup",
        lifespan=groups.session,
        env=[kw.Env(name, secret="vc-creds") for name in ("VC_HOST", "VC_USER", "VC_PASS")],
    )
