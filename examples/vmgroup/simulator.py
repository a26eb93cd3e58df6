"""A simulated vCenter in a JSON file, which you can edit to change the external system."""

import asyncio
import json
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypedDict

from vmgroup.provider import Machine, Provider, ProviderError

OPERATION_SECONDS = 0.05
"""How long the simulated vCenter takes for anything."""


class MachineRecord(TypedDict):
    """A machine as the file holds it."""

    power: str
    cpu: int
    memory: int
    template: str


class Fault(TypedDict):
    """The next `times` calls of an operation fail with a message."""

    operation: str
    times: int
    message: str


class Call(TypedDict):
    """One requested operation, with its time."""

    operation: str
    vm: str
    start: float
    end: float


class World(TypedDict):
    """The whole file."""

    templates: list[str]
    folders: dict[str, dict[str, MachineRecord]]
    faults: list[Fault]
    calls: list[Call]


def empty_world() -> World:
    """Make the world a new file starts with."""
    return World(templates=["vm-operator-template"], folders={}, faults=[], calls=[])


def simulator_file() -> Path:
    """Return the file that VMGROUP_SIMULATOR names."""
    default = Path(tempfile.gettempdir()) / "vmgroup-simulator.json"
    return Path(os.environ.get("VMGROUP_SIMULATOR", default))


def read_world(file: Path) -> World:
    """Read the file; what it leaves out is empty."""
    try:
        stored: World = json.loads(file.read_text())
        return empty_world() | stored
    except FileNotFoundError:
        return empty_world()
    except (OSError, ValueError, TypeError) as error:
        raise ProviderError(f"{file} cannot be read: {error}") from None


def write_world(file: Path, world: World) -> None:
    """Replace the file at once: a reader sees the old or the new world, never half of one."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}-", delete=False) as draft:
        json.dump(world, draft, indent=2)
    os.replace(draft.name, file)


@asynccontextmanager
async def connected() -> AsyncGenerator[Provider, None]:
    """Use the simulator of the file; there is nothing to close."""
    yield await FileSimulator.open(simulator_file())


class Simulator(ABC):
    """Keep virtual machines in a World, wherever that is stored."""

    @abstractmethod
    async def _read(self) -> World:
        """Return what is stored."""

    @abstractmethod
    async def _operate(self, operation: str, vm: str, change: Callable[[World], object]) -> None:
        """Change what is stored, at one instant; raise ProviderError if that fails."""

    async def has_template(self, template: str) -> bool:
        """Return True if the template is known."""
        return template in (await self._read())["templates"]

    async def machines(self, folder: str) -> list[Machine]:
        """List the machines of a folder."""
        return [
            Machine(name, record["power"] == "on", record["cpu"], record["memory"], record["template"])
            for name, record in (await self._read())["folders"].get(folder, {}).items()
        ]

    async def create_folder(self, folder: str) -> None:
        """Make the folder unless it is there."""
        if folder not in (await self._read())["folders"]:
            await self._operate("create_folder", "", lambda world: world["folders"].setdefault(folder, {}))

    async def delete_folder(self, folder: str) -> None:
        """Remove the folder if it is there and empty."""
        if (await self._read())["folders"].get(folder) == {}:
            await self._operate("delete_folder", "", lambda world: world["folders"].pop(folder, None))

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Add a machine that is on."""
        record = MachineRecord(power="on", cpu=cpu, memory=memory, template=template)

        def add(world: World) -> None:
            world["folders"].setdefault(folder, {}).setdefault(name, record)

        await self._operate("clone", name, add)

    async def power_on(self, folder: str, name: str) -> None:
        """Switch a machine on."""
        await self._operate("power_on", name, lambda world: _set_power(world, folder, name, "on"))

    async def power_off(self, folder: str, name: str) -> None:
        """Switch a machine off."""
        await self._operate("power_off", name, lambda world: _set_power(world, folder, name, "off"))

    async def destroy(self, folder: str, name: str) -> None:
        """Remove a machine."""
        await self._operate("destroy", name, lambda world: world["folders"].get(folder, {}).pop(name, None))


class FileSimulator(Simulator):
    """Keep virtual machines in a file that is read before each operation and replaced atomically."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, file: Path) -> Self:
        """Use a file, which is created unless it exists."""
        simulator = cls(file)
        if not await asyncio.to_thread(file.exists):
            await simulator._change(lambda _: None)
        return simulator

    async def _operate(self, operation: str, vm: str, change: Callable[[World], object]) -> None:
        """Take the time an operation takes, then do it, or fail as the file says."""
        start = time.time()
        await asyncio.sleep(OPERATION_SECONDS)

        def settle(world: World) -> str | None:
            world["calls"].append(Call(operation=operation, vm=vm, start=start, end=time.time()))
            fault = _take_fault(world, operation)
            if fault is None:
                change(world)
            return fault

        fault = await self._change(settle)
        if fault is not None:
            raise ProviderError(fault)

    async def _read(self) -> World:
        return await asyncio.to_thread(read_world, self._file)

    async def _change(self, change: Callable[[World], str | None]) -> str | None:
        def replace() -> str | None:
            world = read_world(self._file)
            answer = change(world)
            write_world(self._file, world)
            return answer

        async with self._turn:
            return await asyncio.to_thread(replace)


def _set_power(world: World, folder: str, name: str, power: str) -> None:
    machine = world["folders"].get(folder, {}).get(name)
    if machine is not None:
        machine["power"] = power


def _take_fault(world: World, operation: str) -> str | None:
    for fault in world["faults"]:
        if fault["operation"] == operation and fault["times"] > 0:
            fault["times"] -= 1
            return fault["message"]
    return None
