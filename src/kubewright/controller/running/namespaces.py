"""Namespaces that an operator selects by label: the informers of a namespace start when it gets the label and stop after.

    Namespace informer -> FollowedNamespaces -- joined -> Runner opens informers; when all of them are synced, it subscribes
                                             -- left ---> Runner unsubscribes, releases them, and drops what is queued

Invariants:

- An object is enqueued only after all informers of its namespace are synced, including those of children and watched kinds.
- When a namespace loses its labels, its objects are dropped. As with any selector, objects in other namespaces that own or
  refer to them see that as a deletion and are reconciled.
- A namespace that cannot be read does not delay the others.
- A namespace that is being deleted is followed until it is deleted, so that finalizers in it still run.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from kubewright.api import Kind, Object, PartialMeta
from kubewright.api.scoping import NamespaceSelector
from kubewright.cache import Cache, CacheSyncTimeout, Informer, Selection, StoreChange

NAMESPACE = Kind(
    group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False, builtin=True
)

_log = logging.getLogger("kubewright.controller")


class NamespaceUser(Protocol):
    """A runner that reconciles objects in the followed namespaces."""

    def open_namespace(self, name: str) -> Sequence[tuple[Informer[Any], bool]]:
        """Start the informers of a namespace; return them, each with True if its kind is optional."""
        ...

    def begin_namespace(self, name: str) -> None:
        """Start to use the informers of a namespace, which are all synced."""
        ...

    def leave_namespace(self, name: str) -> None:
        """Release the informers of a namespace and drop its objects, whether `begin_namespace` was called or not."""
        ...


class _Joining:
    """A namespace that a runner is opening; `settled` is set when it is in use, cannot be read, or was left."""

    def __init__(self, informers: Sequence[tuple[Informer[Any], bool]]) -> None:
        self.informers = informers
        self.refusal = ""
        self.settled = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class FollowedNamespaces:
    """Follow the namespaces with certain labels; `run` while users are added.

    `report` is called with the metadata of a namespace and the reason why it cannot be read, once for each reason.
    """

    def __init__(
        self, cache: Cache, selector: NamespaceSelector, report: Callable[[PartialMeta, str], None]
    ) -> None:
        self.selector = selector
        self._report = report
        self._found: dict[str, PartialMeta] = {}
        self._reported: dict[str, set[str]] = {}
        self._users: dict[NamespaceUser, dict[str, _Joining]] = {}
        self._group: asyncio.TaskGroup | None = None
        selection = Selection(NAMESPACE, labels=selector.labels, metadata_only=True)
        self._informer: Informer[Object] = cache.informer(selection, Object)
        self._informer.subscribe(self._changed)

    @property
    def names(self) -> Collection[str]:
        """Return the namespaces that have the labels now."""
        return self._found.keys()

    @property
    def refused(self) -> Mapping[str, str]:
        """Return the namespaces that have the labels and cannot be read, with the reason."""
        return {
            name: joining.refusal
            for joinings in self._users.values()
            for name, joining in joinings.items()
            if joining.refusal
        }

    async def run(self) -> None:
        """Start the informers of namespaces until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for user, joinings in self._users.items():
                    for name in joinings:
                        self._start(user, name)
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None

    def add(self, user: NamespaceUser) -> None:
        """Open the namespaces that have the labels for a user, and follow changes from now on."""
        self._users[user] = {}
        for name in list(self._found):
            self._open(user, name)

    def remove(self, user: NamespaceUser) -> None:
        """Stop all namespaces of a user."""
        for name in list(self._users.get(user, ())):
            self._leave(user, name)
        self._users.pop(user, None)

    async def wait_known(self) -> None:
        """Wait until the namespaces with the labels are known; raise CacheSyncTimeout if that takes too long."""
        await self._informer.wait_synced()

    async def wait_synced(self, user: NamespaceUser) -> None:
        """Wait until the namespaces are known, and each of them is in use by this user or was refused."""
        await self.wait_known()
        for joining in list(self._users.get(user, {}).values()):
            await joining.settled.wait()

    def _changed(self, change: StoreChange) -> None:
        name, old, new = change.key.name, change.old, change.new
        if new is None:
            self._found.pop(name, None)
            self._reported.pop(name, None)
            deleted = old is not None and old.meta.deletion_timestamp is not None
            _log.info(
                "Namespace %s %s", name, "was deleted" if deleted else f"no longer matches {self.selector}"
            )
            for user in self._users:
                self._leave(user, name)
            return
        known = name in self._found
        self._found[name] = new.meta
        if not known:
            for user in self._users:
                self._open(user, name)

    def _open(self, user: NamespaceUser, name: str) -> None:
        self._users[user][name] = _Joining(user.open_namespace(name))
        self._start(user, name)

    def _start(self, user: NamespaceUser, name: str) -> None:
        joining = self._users[user][name]
        if self._group is not None and joining.task is None:
            joining.task = self._group.create_task(self._join(user, name, joining), name=f"namespace {name}")

    def _leave(self, user: NamespaceUser, name: str) -> None:
        joining = self._users[user].pop(name, None)
        if joining is None:
            return
        if joining.task is not None:
            joining.task.cancel()
        joining.settled.set()
        user.leave_namespace(name)

    async def _join(self, user: NamespaceUser, name: str, joining: _Joining) -> None:
        """Wait until all informers of the namespace are synced, then call `begin_namespace`."""
        for informer, optional in joining.informers:
            await informer.feed.wait_answered()
            if not optional and not informer.synced:
                joining.refusal = "; ".join(informer.problems)
                self._report_refusal(name, joining.refusal)
                joining.settled.set()
        for informer, optional in joining.informers:
            await _wait_without_limit(informer, optional=optional)
        joining.refusal = ""
        self._reported.pop(name, None)
        _log.info("Following namespace %s, which matches %s", name, self.selector)
        user.begin_namespace(name)
        joining.settled.set()

    def _report_refusal(self, name: str, reason: str) -> None:
        reported = self._reported.setdefault(name, set())
        if reason in reported or name not in self._found:
            return
        reported.add(reason)
        note = f"It matches {self.selector}, but nothing in it is reconciled: {reason}"
        _log.warning("Namespace %s: %s", name, note)
        self._report(self._found[name], note)


async def _wait_without_limit(informer: Informer[Any], *, optional: bool) -> None:
    """Wait until the informer is synced, without a timeout: a missing permission may be granted later."""
    while True:
        try:
            await informer.wait_synced(optional=optional)
        except CacheSyncTimeout:
            continue  # the feed has logged why
        else:
            return
