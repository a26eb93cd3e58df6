"""vCenter as a provider: pyVmomi's blocking calls in threads of their own, every wait bounded."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from pyVmomi import vim as vim_types

from vmgroup.inventory import MARK, as_machine, find_folder, find_machine, find_template, machines_in, pool_of
from vmgroup.provider import Machine, Provider, ProviderError
from vmgroup.vcenter_session import Session, Settings

vim: Any = vim_types
T = TypeVar("T")

THREADS = 8
TASK_SECONDS = 900.0
"""How long a task of vCenter may take: a clone copies disks."""


@asynccontextmanager
async def connected() -> AsyncGenerator[Provider, None]:
    """Log in with the environment's settings; a vCenter that is unavailable is called again when there is work."""
    settings = Settings.from_environment()
    session, threads = Session(settings), ThreadPoolExecutor(THREADS, thread_name_prefix="vcenter")
    loop = asyncio.get_running_loop()
    try:
        try:
            await loop.run_in_executor(threads, session.open)
        except ProviderError:
            pass
        yield VCenter(session, threads, settings.folder)
    finally:
        # What a cancelled operation began ends before this does: its requests have time-outs.
        await loop.run_in_executor(threads, session.close)
        await asyncio.to_thread(threads.shutdown)


class VCenter:
    """Keep virtual machines in the folders of a vCenter."""

    def __init__(self, session: Session, threads: ThreadPoolExecutor, root: tuple[str, ...]) -> None:
        self._session = session
        self._threads = threads
        self._root = root

    async def has_template(self, template: str) -> bool:
        """Return True if there is a template of this name."""
        return await self.call(lambda content: find_template(content, template)) is not None

    async def machines(self, folder: str) -> list[Machine]:
        """List the machines of a folder with one request for all their properties."""

        def read(content: Any) -> list[Machine]:
            found = find_folder(content, (*self._root, folder))
            return [] if found is None else [as_machine(facts) for facts in machines_in(content, found)]

        return await self.call(read)

    async def create_folder(self, folder: str) -> None:
        """Make the folder, and the folders above it, unless they are there."""
        for depth in range(len(self._root) + 1):
            path = (*self._root, folder)[: depth + 1]
            await self.call(partial(_make_folder, path=path))

    async def delete_folder(self, folder: str) -> None:
        """Remove the folder if it is there and empty: with a folder, vCenter would remove what is in it."""

        def start(content: Any) -> Any:
            found = find_folder(content, (*self._root, folder))
            return None if found is None or found.childEntity else found.Destroy_Task()

        await self._do(start)

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Clone, then set CPUs and memory, then switch on; begins where an earlier try was interrupted.

        What the machine is to be is checked and set on the machine itself: a clone may ignore it.
        """

        def copy(content: Any) -> Any:
            place = self._folder(content, folder)
            if find_machine(place, name) is not None:
                return None
            source = find_template(content, template)
            if source is None:
                raise ProviderError(f'could not find template "{template}"')
            location = vim.vm.RelocateSpec(pool=pool_of(content))
            spec = vim.vm.CloneSpec(location=location, powerOn=False, template=False)
            return source.CloneVM_Task(folder=place, name=name, spec=spec)

        def configure(content: Any) -> Any:
            mark = vim.option.OptionValue(key=MARK, value=template)
            spec = vim.vm.ConfigSpec(numCPUs=cpu, memoryMB=memory * 1024, extraConfig=[mark])
            return self._machine(content, folder, name).ReconfigVM_Task(spec=spec)

        await self._do(copy)
        await self._do(configure)
        await self.power_on(folder, name)

    async def power_on(self, folder: str, name: str) -> None:
        """Switch a machine on."""
        await self._do(lambda content: self._machine(content, folder, name).PowerOnVM_Task())

    async def power_off(self, folder: str, name: str) -> None:
        """Switch a machine off."""
        await self._do(lambda content: self._machine(content, folder, name).PowerOffVM_Task())

    async def destroy(self, folder: str, name: str) -> None:
        """Remove a machine with its disks."""
        await self._do(lambda content: self._machine(content, folder, name).Destroy_Task())

    def _folder(self, content: Any, folder: str) -> Any:
        found = find_folder(content, (*self._root, folder))
        if found is None:
            raise ProviderError(f"folder {folder} is gone")
        return found

    def _machine(self, content: Any, folder: str, name: str) -> Any:
        found = find_machine(self._folder(content, folder), name)
        if found is None:
            raise ProviderError(f"machine {name} is gone")
        return found

    async def call(self, function: Callable[[Any], T]) -> T:
        """Call a function in a thread; each request has a timeout, so that no thread waits forever."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._session.call, function)

    async def _do(self, start: Callable[[Any], Any]) -> None:
        """Start a task and wait for its end; the wait is ours, so it can be cancelled."""
        task = await self.call(start)
        if task is None:
            return
        try:
            async with asyncio.timeout(TASK_SECONDS):
                await self._wait(task)
        except TimeoutError:
            raise ProviderError(f"vCenter has not done it within {TASK_SECONDS:.0f} s") from None

    async def _wait(self, task: Any) -> None:
        pause = 0.02
        while True:
            info = await self.call(lambda _: task.info)
            if info.state == vim.TaskInfo.State.success:
                return
            if info.state == vim.TaskInfo.State.error:
                raise ProviderError(info.error.localizedMessage or type(info.error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)


def _make_folder(content: Any, path: tuple[str, ...]) -> None:
    if find_folder(content, path) is not None:
        return
    above = find_folder(content, path[:-1])
    try:
        above.CreateFolder(path[-1])
    except vim.fault.DuplicateName:
        # Another client created it first.
        pass
