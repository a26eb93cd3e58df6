"""The interface of an external system that runs virtual machines, and its implementations."""

import importlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import kubewright as kw

PROVIDERS = {"simulator": "vmgroup.simulator", "vcenter": "vmgroup.vcenter"}
"""Module of each provider, imported only if the provider is used."""


class ProviderError(Exception):
    """An operation failed; the same call may work later."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One virtual machine as the external system reports it."""

    name: str
    powered_on: bool
    cpu: int
    memory: int
    template: str
    complete: bool = True
    """False if its creation is in progress or was interrupted."""


class Provider(Protocol):
    """An external system with virtual machines in folders."""

    async def has_template(self, template: str) -> bool:
        """Return True if the template exists."""
        ...

    async def machines(self, folder: str) -> list[Machine]:
        """Return the machines of a folder; none if the folder does not exist."""
        ...

    async def create_folder(self, folder: str) -> None:
        """Create the folder if it does not exist."""
        ...

    async def delete_folder(self, folder: str) -> None:
        """Delete the folder if it exists and is empty."""
        ...

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Clone a machine from a template and switch it on; complete one whose creation was interrupted."""
        ...

    async def power_on(self, folder: str, name: str) -> None:
        """Switch a machine on."""
        ...

    async def power_off(self, folder: str, name: str) -> None:
        """Switch a machine off."""
        ...

    async def destroy(self, folder: str, name: str) -> None:
        """Delete a machine that is switched off."""
        ...


def provider(name: str) -> AbstractAsyncContextManager[Provider]:
    """Connect to a provider for the length of an `async with`."""
    if name not in PROVIDERS:
        raise kw.errors.ConfigError(f'VMGROUP_PROVIDER is "{name}": expected one of {", ".join(PROVIDERS)}')
    try:
        module = importlib.import_module(PROVIDERS[name])
    except ModuleNotFoundError as error:
        raise kw.errors.ConfigError(
            f'the provider "{name}" needs {error.name}: pip install -r examples/vmgroup/requirements.txt'
        ) from None
    connection: AbstractAsyncContextManager[Provider] = module.connected()
    return connection
