"""A provider for `kubewright plan`: it reads the external system and simulates changes in memory."""

from dataclasses import replace

from vmgroup.provider import Machine, Provider


class Rehearsal:
    """Return what the external system would return after all simulated changes."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._folders: dict[str, dict[str, Machine]] = {}

    async def has_template(self, template: str) -> bool:
        """Return True if the template exists in the external system."""
        return await self._provider.has_template(template)

    async def machines(self, folder: str) -> list[Machine]:
        """Return the machines, including simulated changes."""
        return list((await self._folder(folder)).values())

    async def create_folder(self, folder: str) -> None:
        """Do nothing: a missing folder counts as empty."""

    async def delete_folder(self, folder: str) -> None:
        """Do nothing."""

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Simulate a new machine."""
        (await self._folder(folder))[name] = Machine(name, True, cpu, memory, template)

    async def power_on(self, folder: str, name: str) -> None:
        """Simulate that a machine is switched on."""
        machines = await self._folder(folder)
        machines[name] = replace(machines[name], powered_on=True)

    async def power_off(self, folder: str, name: str) -> None:
        """Simulate that a machine is switched off."""
        machines = await self._folder(folder)
        machines[name] = replace(machines[name], powered_on=False)

    async def destroy(self, folder: str, name: str) -> None:
        """Simulate the deletion of a machine."""
        del (await self._folder(folder))[name]

    async def _folder(self, folder: str) -> dict[str, Machine]:
        if folder not in self._folders:
            found = {machine.name: machine for machine in await self._provider.machines(folder)}
            # Keep changes that were simulated while the provider responded.
            self._folders.setdefault(folder, found)
        return self._folders[folder]
