"""The identity of kinds and objects."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast


class GroupVersionKind(NamedTuple):
    """Group, version and kind; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """Return the `apiVersion` text: `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, api_version: str, kind: str) -> "GroupVersionKind":
        """Parse the `apiVersion` and `kind` of an object."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"


class GroupVersionResource(NamedTuple):
    """Group, version and plural name of a resource, as in URLs."""

    group: str
    version: str
    resource: str


class ObjectKey(NamedTuple):
    """The namespace and name of an object; the namespace of cluster-scoped objects is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


key_of_pair: Callable[[tuple[str, str]], ObjectKey] = partial(cast(Any, tuple).__new__, ObjectKey)
"""Return the key of a namespace and a name; each event needs several, and the constructor of a NamedTuple is a Python function."""
