"""Declarations of indexes, which the cache maintains."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kubewright.api.field_paths import field_path

T = TypeVar("T")


class Index(Generic[T]):
    """Declare a lookup: the values under which each object of a kind is found.

    `values` is a function from an object to texts, or the path of a field that holds text: `Index(Backup, "spec.login")`,
    through a list `Index(Pod, "spec.volumes[*].name")`. A path is checked here; a field that is unset or empty holds no value.

    The lookup is maintained from its first use for as long as it is referenced: declare it once, at module level.
    """

    __slots__ = ("__weakref__", "kind", "values")

    def __init__(self, kind: type[T], values: Callable[[T], Iterable[str]] | str) -> None:
        self.kind: type[T] = kind
        self.values: Callable[[T], Iterable[str]]
        if isinstance(values, str):
            name = getattr(kind, "__name__", getattr(kind, "kind", ""))
            self.values = field_path(kind, values, f"Index({name})").texts
        else:
            self.values = values
