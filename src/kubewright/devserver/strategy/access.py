"""Reads and writes of objects for code inside the server: subresources, admission, authorization.

`handlers.access.StoreAccess` is the one implementation. The protocol breaks an import cycle: a strategy that writes, such as
that of Services, takes an `Access`; `StoreAccess` runs the steps of a write in `handlers.pipeline`; and the pipeline imports
the registry, which imports the strategies. Passing functions instead would pass six of them to every plugin and strategy.
"""

from collections.abc import Callable
from typing import Protocol

from kubewright.devserver.objects import JsonObject
from kubewright.devserver.request.identity import SYSTEM, UserInfo


class Access(Protocol):
    """Read and write objects past authorization but through the one write path.

    Resources are named by group and plural; objects are in the group's stored version. A returned object is a copy that
    the caller may change.
    """

    def find(self, group: str, resource: str, namespace: str, name: str) -> JsonObject | None:
        """Return an object, or None if it does not exist."""
        ...

    def get(self, group: str, resource: str, namespace: str, name: str) -> JsonObject:
        """Return an object; raise a StatusError with reason NotFound if it does not exist."""
        ...

    def list(self, group: str, resource: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Return all objects of a resource, by default of all namespaces."""
        ...

    async def create(
        self, group: str, resource: str, obj: JsonObject, *, user: UserInfo = SYSTEM, dry_run: bool = False
    ) -> JsonObject:
        """Create an object; return it as stored."""
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
        """Update an object; return it as stored.

        `change` receives a copy and returns the new object, or None if it changed the copy in place. It is called again
        when another writer was faster. With `admitted` the write is part of a request that has passed admission, and
        admission does not run again, nor is it recorded in managedFields.
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
        """Delete an object; return the body of the API's response."""
        ...
