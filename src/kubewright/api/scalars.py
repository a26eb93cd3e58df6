"""Base class for types that are encoded as one JSON scalar."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class Scalar:
    """A type that is encoded as one JSON scalar; `structural` is its schema in a CRD."""

    __slots__ = ()
    structural: ClassVar[Mapping[str, Any]] = {"type": "string"}

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Return the value of a JSON scalar; raise ValueError if it is invalid."""
        raise NotImplementedError(f"{cls.__name__} cannot be read from {value!r}")

    def to_wire(self) -> str | int | float | bool:
        """Return the JSON scalar."""
        raise NotImplementedError
