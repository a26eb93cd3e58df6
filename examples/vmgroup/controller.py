"""Keep `spec.replicas` virtual machines for each VmGroup, in a folder of its own."""

import asyncio
import importlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta

import kubewright as kw
from vmgroup.kinds import VmGroup, VmGroupStatus
from vmgroup.machines import belongs_to, folder_of, machine_names, status_of
from vmgroup.provider import Machine, Provider, ProviderError, provider
from vmgroup.rehearsal import Rehearsal

OPERATIONS_AT_ONCE = 3
RETRY_AFTER = timedelta(seconds=20)
RESYNC = timedelta(minutes=5)
SETTINGS = ("VMGROUP_PROVIDER", "VC_FOLDER", "VC_INSECURE")
CREDENTIALS = ("VC_HOST", "VC_USER", "VC_PASS")

Job = Callable[[], Awaitable[None]]


async def at_most(limit: int, jobs: Iterable[Job]) -> None:
    """Run all jobs, at most `limit` at once, then raise the first error."""
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
    """Reconcile VmGroups with the provider that the environment selects."""

    def __init__(self) -> None:
        self._provider: Provider | None = None

    @property
    def provider(self) -> Provider:
        """Return the provider; it exists only inside `session`."""
        if self._provider is None:
            raise RuntimeError("VmGroups is used outside its session")
        return self._provider

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[None, None]:
        """Connect to the provider that VMGROUP_PROVIDER selects."""
        async with provider(os.environ.get("VMGROUP_PROVIDER", "simulator")) as self._provider:
            yield
        self._provider = None

    @asynccontextmanager
    async def rehearsal(self) -> AsyncGenerator[None, None]:
        """Read from the provider but only simulate changes, for `kubewright plan`."""
        async with self.session():
            self._provider = Rehearsal(self.provider)
            yield

    @asynccontextmanager
    async def simulated(self) -> AsyncGenerator[None, None]:
        """Use a simulated vCenter that takes part in faults, for `kubewright prove`."""
        # Imported only here: it needs kubewright[testing].
        self._provider = importlib.import_module("vmgroup.proving").VCenter()
        yield

    async def reconcile(self, group: VmGroup, ctx: kw.Context) -> None:
        """Bring the number of running machines to `spec.replicas`."""
        try:
            if not await ctx.record(self.provider.has_template, group.spec.template):
                message = f'could not find template "{group.spec.template}"'
                machines = await self._machines(group, ctx)
                await ctx.patch_status(group, status_of(group, "ERROR", machines, message))
                return
            await self._scale(group, ctx)
            status = status_of(
                group, "RUNNING", await self._machines(group, ctx), "successfully reconciled VmGroup"
            )
        except ProviderError as error:
            ctx.warn("ProviderFailed", str(error))
            await ctx.patch_status(group, await self._pending(group, str(error), ctx))
            raise kw.RetryLater(str(error), after=RETRY_AFTER) from error
        await ctx.patch_status(group, status)

    async def finalize(self, group: VmGroup, ctx: kw.Context) -> None:
        """Delete every machine, then the folder; an error is retried, and the group stays until then."""
        machines = await self._machines(group, ctx)
        await at_most(OPERATIONS_AT_ONCE, [self._removal(group, machine, ctx) for machine in machines])
        await ctx.record(self.provider.delete_folder, folder_of(group))

    async def _machines(self, group: VmGroup, ctx: kw.Context) -> list[Machine]:
        machines = await ctx.record(self.provider.machines, folder_of(group))
        return [machine for machine in machines if belongs_to(group, machine)]

    async def _pending(self, group: VmGroup, message: str, ctx: kw.Context) -> VmGroupStatus:
        try:
            return status_of(group, "PENDING", await self._machines(group, ctx), message)
        except ProviderError:
            # The provider cannot be read: keep the last known state.
            group.status.phase, group.status.last_message = "PENDING", message
            return group.status

    async def _scale(self, group: VmGroup, ctx: kw.Context) -> None:
        await ctx.record(self.provider.create_folder, folder_of(group))
        live = {machine.name: machine for machine in await self._machines(group, ctx)}
        desired = machine_names(group)
        surplus = [machine for name, machine in live.items() if name not in desired]
        await at_most(OPERATIONS_AT_ONCE, [self._removal(group, machine, ctx) for machine in surplus])
        jobs: list[Job] = []
        for name in desired:
            machine = live.get(name)
            if machine is None or not machine.complete:
                jobs.append(self._creation(group, name, ctx))
            elif not machine.powered_on:
                jobs.append(self._start(group, name, ctx))
        await at_most(OPERATIONS_AT_ONCE, jobs)

    def _creation(self, group: VmGroup, name: str, ctx: kw.Context) -> Job:
        spec = group.spec
        return lambda: ctx.record(
            self.provider.clone,
            folder_of(group),
            name,
            template=spec.template,
            cpu=spec.cpu,
            memory=spec.memory,
        )

    def _start(self, group: VmGroup, name: str, ctx: kw.Context) -> Job:
        return lambda: ctx.record(self.provider.power_on, folder_of(group), name)

    def _removal(self, group: VmGroup, machine: Machine, ctx: kw.Context) -> Job:
        async def remove() -> None:
            if machine.powered_on:
                await ctx.record(self.provider.power_off, folder_of(group), machine.name)
            await ctx.record(self.provider.destroy, folder_of(group), machine.name)

        return remove


def operator(*, resync: timedelta = RESYNC) -> kw.Operator:
    """Declare the operator; it connects to the provider only when it runs."""
    groups = VmGroups()
    return kw.Operator(
        kw.Controller(
            VmGroup,
            groups,
            finalizer="vm-operator",
            # A status write must not trigger a reconcile: a failed operation waits for RETRY_AFTER.
            when=kw.predicates.generation_changed,
            resync=resync,
            concurrency=4,
        ),
        name="vmgroup",
        lifespan=groups.session,
        planning=groups.rehearsal,
        proving=groups.simulated,
        env=[
            *(kw.packaging.Env(name, config_map="vmgroup", optional=True) for name in SETTINGS),
            # Optional, because the simulator needs no credentials.
            *(kw.packaging.Env(name, secret="vc-creds", optional=True) for name in CREDENTIALS),
        ],
    )
