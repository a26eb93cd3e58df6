"""What the operator asks of an outside system that runs virtual machines, and which systems there are."""

import importlib
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import kubewright as kw

PROVIDERS = {"simulator": "vmgroup.simulator", "vcenter": "vmgroup.vcenter"}
"""Where each is; a module is loaded only when its provider is asked for, with the libraries it needs."""


class ProviderError(Exception):
    """An operation failed; the same call may work later."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One virtual machine as the outside system shows it."""

    name: str
    powered_on: bool
    cpu: int
    memory: int
    template: str
    complete: bool = True
    """False while its making is under way, or was interrupted."""


class Provider(Protocol):
    """A place for virtual machines, sorted into folders."""

    async def has_template(self, template: str) -> bool:
        """Tell whether machines can be cloned from this template."""
        ...

    async def machines(self, folder: str) -> list[Machine]:
        """List the machines of a folder; an absent folder has none."""
        ...

    async def create_folder(self, folder: str) -> None:
        """Make the folder unless it is there."""
        ...

    async def delete_folder(self, folder: str) -> None:
        """Remove the folder if it is there and empty."""
        ...

    async def clone(self, folder: str, name: str, *, template: str, cpu: int, memory: int) -> None:
        """Make a machine from a template, powered on; one that was left half made is completed."""
        ...

    async def power_on(self, folder: str, name: str) -> None:
        """Switch a machine on."""
        ...

    async def power_off(self, folder: str, name: str) -> None:
        """Switch a machine off."""
        ...

    async def destroy(self, folder: str, name: str) -> None:
        """Remove a machine that is off."""
        ...


def provider(name: str) -> AbstractAsyncContextManager[Provider]:
    """Connect to a provider for the length of an `async with`."""
    if name not in PROVIDERS:
        raise kw.errors.ConfigError(f'VMGROUP_PROVIDER is "{name}": it is one of {", ".join(PROVIDERS)}')
    try:
        module = importlib.import_module(PROVIDERS[name])
    except ModuleNotFoundError as error:
        raise kw.errors.ConfigError(
            f'the provider "{name}" needs {error.name}: pip install -r examples/vmgroup/requirements.txt'
        ) from None
    connection: AbstractAsyncContextManager[Provider] = module.connected()
    return connection
