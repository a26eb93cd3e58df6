"""Reads and writes of objects for code inside the server: subresources, admission, authorization.

`handlers.access.StoreAccess` implements it. It is a protocol because kinds, which the handlers import, write through the
handlers.
"""

from collections.abc import Callable
from typing import Protocol

from kubewright.devserver.objects import JsonObject
from kubewright.devserver.request.identity import SYSTEM, UserInfo


class Access(Protocol):
    """Read and write objects past authorization but through the one write path.

    Resources are named by group and plural; objects are in the group's stored version. What is given
    out is the caller's own copy.
    """

    def find(self, group: str, resource: str, namespace: str, name: str) -> JsonObject | None:
        """Read an object, or None when there is none."""
        ...

    def get(self, group: str, resource: str, namespace: str, name: str) -> JsonObject:
        """Read an object, or raise `StatusError.not_found`."""
        ...

    def list(self, group: str, resource: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Read all objects of a resource, in all namespaces by default."""
        ...

    async def create(
        self, group: str, resource: str, obj: JsonObject, *, user: UserInfo = SYSTEM, dry_run: bool = False
    ) -> JsonObject:
        """Create an object."""
        ...

    async def update(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        change: Callable[[JsonObject], JsonObject | None],
        *,
        subresource: str = "",
        user: UserInfo = SYSTEM,
        dry_run: bool = False,
        admitted: bool = False,
    ) -> JsonObject:
        """Change an object: `change` is given a copy, may be called again after a race, and None means as changed.

        A write that is `admitted` is part of a request that admission has seen, and is not shown to it.
        """
        ...

    async def delete(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        options: JsonObject | None = None,
        *,
        user: UserInfo = SYSTEM,
        admitted: bool = False,
    ) -> JsonObject:
        """Delete an object; return what the API would answer."""
        ...
