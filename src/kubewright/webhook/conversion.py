"""Conversion between the versions of a kind: every spoke to the hub and back (pure functions)."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kubewright.api import DeclarationError, Kind, Object, kind_of

Hub = TypeVar("Hub", bound=Object)
Spoke = TypeVar("Spoke", bound=Object)


class Conversion(Generic[Hub, Spoke]):
    """Declare how one version becomes another: `Conversion(Foo, FooV1Alpha1, up=..., down=...)`.

    `up` converts a spoke's object to the hub's version, `down` does the reverse. Metadata may be passed on or
    omitted; only labels and annotations may be changed. A kind with three versions has two conversions to one hub.
    """

    def __init__(
        self, hub: type[Hub], spoke: type[Spoke], *, up: Callable[[Spoke], Hub], down: Callable[[Hub], Spoke]
    ) -> None:
        self.hub = hub
        self.spoke = spoke
        self.up = up
        self.down = down
        high, low = kind_of(hub), kind_of(spoke)
        if (high.group, high.kind) != (low.group, low.kind):
            self._refuse(f"{high} and {low} are different kinds: convert versions of one kind")
        if high.version == low.version:
            self._refuse(f"both are {high.version}: hub and spoke are two versions")
        for function in (up, down):
            if inspect.iscoroutinefunction(function):
                self._refuse("up and down must be plain `def`: they may only look at the object")

    def __repr__(self) -> str:
        return f"Conversion({self.hub.__name__}, {self.spoke.__name__})"

    def _refuse(self, what: str) -> None:
        raise DeclarationError(f"{self!r}: {what}")


class Versions:
    """All versions of one kind and the conversions between them."""

    def __init__(self, hub: type[Object], conversions: Iterable[Conversion[Any, Any]]) -> None:
        self.hub = hub
        self.kind: Kind = kind_of(hub)
        self._spokes = {kind_of(each.spoke).api_version: each for each in conversions}
        self.classes: dict[str, type[Object]] = {self.kind.api_version: hub} | {
            version: each.spoke for version, each in self._spokes.items()
        }

    def convert(self, subject: Object, version: str) -> Object:
        """Return the object in another version, through the hub."""
        here = kind_of(subject).api_version
        middle = subject if here == self.kind.api_version else self._spokes[here].up(subject)
        _expect(middle, self.hub, "up")
        if version == self.kind.api_version:
            return middle
        spoke = self._spokes[version]
        made = spoke.down(middle)
        _expect(made, spoke.spoke, "down")
        return made


def versions_of(conversions: Iterable[Conversion[Any, Any]]) -> dict[tuple[str, str], Versions]:
    """Group conversions by group and kind; raise if a kind has two hubs or a version two conversions."""
    gathered: dict[tuple[str, str], list[Conversion[Any, Any]]] = {}
    for each in conversions:
        kind = kind_of(each.hub)
        others = gathered.setdefault((kind.group, kind.kind), [])
        for other in others:
            if other.hub is not each.hub:
                raise DeclarationError(
                    f"{other!r} and {each!r} have different hubs: use one for all versions"
                )
            if kind_of(other.spoke).version == kind_of(each.spoke).version:
                raise DeclarationError(f"{other!r} is declared twice")
        others.append(each)
    return {key: Versions(found[0].hub, found) for key, found in gathered.items()}


def _expect(made: object, cls: type[Object], way: str) -> None:
    if not isinstance(made, cls):
        raise TypeError(f"{way} must return {cls.__name__}, not {type(made).__name__}")
