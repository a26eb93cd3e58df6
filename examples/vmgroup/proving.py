"""A simulated vCenter for `kubewright prove`: its calls are lost, fail and are slow, and it outlives the operator."""

from collections.abc import Callable
from typing import Any, cast

from kubewright.testing import External
from vmgroup.provider import ProviderError
from vmgroup.simulator import Simulator, World, empty_world


class VCenter(External, Simulator):
    """The simulator, with its machines in the state of the simulation."""

    error = ProviderError

    def initial(self) -> dict[str, Any]:
        """Return a vCenter with one template."""
        return dict(empty_world())

    def resources(self) -> dict[str, list[Any]]:
        """Return the machines of each folder, without their names, which contain a hash of a uid; and the folders."""
        folders = self._world["folders"]
        return {"folders": sorted(folders), **{name: list(found.values()) for name, found in folders.items()}}

    @property
    def _world(self) -> World:
        return cast("World", self.state)

    async def _read(self) -> World:
        return await self.call("read", lambda: self._world)

    async def _operate(self, operation: str, vm: str, change: Callable[[World], object]) -> None:
        await self.call(f"{operation} {vm}".rstrip(), lambda: change(self._world))
