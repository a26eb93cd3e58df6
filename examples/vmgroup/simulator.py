"""A vCenter of one JSON file: anyone may change the outside world by editing it."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from vmgroup.provider import Machine, ProviderError

OPERATION_SECONDS = 0.05


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
    """One operation that was asked for, with its time."""

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


class Simulator:
    """Keep virtual machines in a file that is read before each operation and replaced atomically."""

    def __init__(self, file: Path) -> None:
        self._file = file
        if not file.exists():
            self._write(empty_world())

    async def has_template(self, template: str) -> bool:
        """Tell whether the file names this template."""
        return template in self._read()["templates"]

    async def machines(self, folder: str) -> list[Machine]:
        """List the machines of a folder."""
        return [
            Machine(name, record["power"] == "on", record["cpu"], record["memory"], record["template"])
            for name, record in self._read()["folders"].get(folder, {}).items()
        ]

    async def create_folder(self, folder: str) -> None:
        """Make the folder unless it is there."""
        if folder not in self._read()["folders"]:
            await self._operate("create_folder", "", lambda world: world["folders"].setdefault(folder, {}))

    async def delete_folder(self, folder: str) -> None:
        """Remove the folder if it is there and empty."""
        if self._read()["folders"].get(folder) == {}:
            await self._operate("delete_folder", "", lambda world: world["folders"].pop(folder, None))

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Add a machine that is on."""
        record = MachineRecord(power="on", cpu=cpu, memory=memory, template=template)

        def add(world: World) -> None:
            world["folders"].setdefault(folder, {})[name] = record

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

    async def _operate(self, operation: str, vm: str, change: Callable[[World], object]) -> None:
        start = time.time()
        await asyncio.sleep(OPERATION_SECONDS)
        # No await between reading and replacing the file: operations of this process cannot overwrite each other.
        world = self._read()
        world["calls"].append(Call(operation=operation, vm=vm, start=start, end=time.time()))
        message = _take_fault(world, operation)
        if message is None:
            change(world)
        self._write(world)
        if message is not None:
            raise ProviderError(message)

    def _read(self) -> World:
        try:
            world: World = json.loads(self._file.read_text())
        except FileNotFoundError:
            return empty_world()
        except json.JSONDecodeError as error:
            raise ProviderError(f"{self._file}: not JSON: {error}") from None
        return world

    def _write(self, world: World) -> None:
        with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False) as draft:
            json.dump(world, draft, indent=2)
        os.replace(draft.name, self._file)


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
