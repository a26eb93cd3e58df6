"""An outside system that is only looked at: what would be done to it is remembered, and done to nobody."""

from dataclasses import replace

from vmgroup.provider import Machine, Provider


class Rehearsal:
    """Answer as the outside system would if everything had been done; `kubewright plan` works with it."""

    def __init__(self, outside: Provider) -> None:
        self._outside = outside
        self._folders: dict[str, dict[str, Machine]] = {}

    async def has_template(self, template: str) -> bool:
        """Ask outside."""
        return await self._outside.has_template(template)

    async def machines(self, folder: str) -> list[Machine]:
        """List what is there outside, as it would be by now."""
        return list((await self._folder(folder)).values())

    async def create_folder(self, folder: str) -> None:
        """Leave it: a folder that is not there is as good as an empty one."""

    async def delete_folder(self, folder: str) -> None:
        """Leave it."""

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Pretend that there is one more machine."""
        (await self._folder(folder))[name] = Machine(name, True, cpu, memory, template)

    async def power_on(self, folder: str, name: str) -> None:
        """Pretend that a machine is on."""
        machines = await self._folder(folder)
        machines[name] = replace(machines[name], powered_on=True)

    async def power_off(self, folder: str, name: str) -> None:
        """Pretend that a machine is off."""
        machines = await self._folder(folder)
        machines[name] = replace(machines[name], powered_on=False)

    async def destroy(self, folder: str, name: str) -> None:
        """Pretend that a machine is gone."""
        del (await self._folder(folder))[name]

    async def _folder(self, folder: str) -> dict[str, Machine]:
        if folder not in self._folders:
            found = {machine.name: machine for machine in await self._outside.machines(folder)}
            # What was pretended while the answer was on its way stands.
            self._folders.setdefault(folder, found)
        return self._folders[folder]
