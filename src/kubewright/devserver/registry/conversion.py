"""Versions of one kind: objects that have to be converted with somebody's help before they can be read."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from kubewright.api import GroupVersionKind, KubewrightError
from kubewright.devserver.objects import JsonObject

T = TypeVar("T")


class Converter(Protocol):
    """Bring objects of one kind into another version."""

    async def convert(self, objects: Sequence[JsonObject], target: GroupVersionKind) -> list[JsonObject]:
        """Convert objects of any version, in their order."""
        ...


class Unconverted(KubewrightError):
    """An object that is not there yet in the wanted version; `supply` brings it there."""

    def __init__(self, supply: Callable[[], Awaitable[None]]) -> None:
        super().__init__("an object was read before it was converted")
        self.supply = supply


async def converting(make: Callable[[], T]) -> T:
    """Give what a pure function makes; it is run again after each conversion that it turned out to need."""
    while True:
        try:
            return make()
        except Unconverted as missing:
            await missing.supply()
