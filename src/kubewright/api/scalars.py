"""Types that are one value on the wire and something richer in Python."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class Scalar:
    """A type written as one JSON scalar; `structural` is what a CRD says about it."""

    __slots__ = ()
    structural: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Read the JSON scalar; a ValueError says why it is none."""
        raise NotImplementedError(f"{cls.__name__} cannot be read from {value!r}")

    def to_wire(self) -> str | int | float | bool:
        """Return the JSON scalar."""
        raise NotImplementedError
