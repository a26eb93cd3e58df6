"""Follow CustomResourceDefinitions: accept their names, establish them, serve their resources, clean up after them."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kubewright.backoff import RETRY_BACKOFF
from kubewright.devserver.core import Core
from kubewright.devserver.definitions.api_services import ApiServices
from kubewright.devserver.definitions.kind import CLEANUP
from kubewright.devserver.definitions.naming import Naming, accept_names, is_true, set_condition
from kubewright.devserver.objects import JsonObject, decode, meta
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource, custom_resources
from kubewright.devserver.registry.conversion import converter_of
from kubewright.devserver.storage import Collection, JournalError
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.webhook_client import Caller

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
NAMING_SECONDS = 0.03
ESTABLISHING_SECONDS = 0.03
INITIALIZING_SECONDS = 0.05
WATCH_END_SECONDS = 1.0
STORAGE_RETRY_SECONDS = 0.5
_LONG = 3600.0

_log = logging.getLogger("kubewright.devserver")


class DefinitionController:
    """Keep the registry in step with the stored definitions."""

    def __init__(
        self,
        core: Core,
        api: Access,
        caller: Caller,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._caller = caller
        self._core = core
        self._api = api
        self._services = ApiServices(api, core.clock)
        self._spawn = spawn
        self._served: dict[str, tuple[int, list[ServedResource]]] = {}
        self._ending: set[str] = set()

    @property
    def _definitions(self) -> Collection:
        return self._core.store.collection(f"{PLURAL}.{GROUP}")

    def restore(self) -> None:
        """Serve what was established before a restart."""
        for record in self._definitions.records():
            crd = decode(record.data)
            if is_true(crd, "Established"):
                self._serve(crd)

    async def run(self) -> None:
        """Follow the definitions until cancelled."""
        loop = asyncio.get_running_loop()
        collection = self._definitions
        for record in collection.records():
            await self._reconcile(record.key)
        cursor = self._core.store.revision
        while True:
            events = collection.after(cursor)
            for event in events:
                cursor = event.revision
                await self._reconcile(event.key)
            if not events:
                await collection.changed(loop.time() + _LONG)

    async def _reconcile(self, name: str) -> None:
        try:
            await self._until_stored(lambda: self._bring_up_to_date(name))
        except StatusError as error:
            _log.warning("custom resource definition %s: %s", name, error)

    async def _bring_up_to_date(self, name: str) -> None:
        record = self._definitions.get(name)
        if record is None:
            self._withdraw(name)
            await self._reconsider(name)
        else:
            await self._look_at(name, decode(record.data))
        await self._services.follow(
            {(item.group, item.version) for _, served in self._served.values() for item in served}
        )

    @staticmethod
    async def _until_stored(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Retry while the data file cannot be written: no event would start this work again."""
        while True:
            try:
                await work()
            except JournalError as error:
                if error.first:
                    _log.error("%s", error)
                await asyncio.sleep(STORAGE_RETRY_SECONDS)
            else:
                return

    async def _look_at(self, name: str, crd: JsonObject) -> None:
        if meta(crd).get("deletionTimestamp"):
            self._begin_end(name, crd)
        else:
            await self._establish(crd)

    async def _reconsider(self, name: str) -> None:
        """Look again at the others of a group after one of them has freed its names."""
        group = name.partition(".")[2]
        for record in self._definitions.records():
            crd = decode(record.data)
            if crd["spec"]["group"] == group and not is_true(crd, "NamesAccepted"):
                await self._establish(crd)

    async def _establish(self, crd: JsonObject) -> None:
        naming = accept_names(crd, self._others(crd))
        if not self._settled(crd, naming):
            await self._pause(NAMING_SECONDS)
            crd = await self._write(crd, lambda draft: self._accept(draft, naming))
        if naming.fine and not is_true(crd, "Established"):
            await self._pause(ESTABLISHING_SECONDS)
            crd = await self._write(crd, self._mark_established)
        if is_true(crd, "Established"):
            self._serve(crd)

    def _others(self, crd: JsonObject) -> list[JsonObject]:
        found = [decode(record.data) for record in self._definitions.records()]
        group, name = crd["spec"]["group"], crd["metadata"]["name"]
        return [item for item in found if item["spec"]["group"] == group and item["metadata"]["name"] != name]

    @staticmethod
    def _settled(crd: JsonObject, naming: Naming) -> bool:
        status: JsonObject = crd.get("status") or {}
        conditions: list[JsonObject] = status.get("conditions") or []
        known = any(
            item["type"] == "NamesAccepted" and item.get("reason") == naming.reason for item in conditions
        )
        return known and (status.get("acceptedNames") or {}) == naming.accepted

    def _accept(self, crd: JsonObject, naming: Naming) -> None:
        stamp = self._core.clock.stamp()
        crd.setdefault("status", {})["acceptedNames"] = naming.accepted
        status = "True" if naming.fine else "False"
        set_condition(crd, "NamesAccepted", status, naming.reason, naming.message, stamp)
        if naming.fine and not self._core.realistic:
            self._mark_established(crd)
        elif not is_true(crd, "Established"):
            reason, text = (
                ("Installing", "the initial names have been accepted")
                if naming.fine
                else (
                    "NotAccepted",
                    "not all names are accepted",
                )
            )
            set_condition(crd, "Established", "False", reason, text, stamp)

    def _mark_established(self, crd: JsonObject) -> None:
        text = "the initial names have been accepted"
        set_condition(crd, "Established", "True", "InitialNamesAccepted", text, self._core.clock.stamp())

    async def _write(self, crd: JsonObject, change: Callable[[JsonObject], None]) -> JsonObject:
        return await self._api.update(
            GROUP, PLURAL, "", crd["metadata"]["name"], change, subresource="status"
        )

    async def _pause(self, seconds: float) -> None:
        if self._core.realistic:
            await asyncio.sleep(seconds)

    def _serve(self, crd: JsonObject) -> None:
        name, generation = crd["metadata"]["name"], crd["metadata"].get("generation", 0)
        before = self._served.get(name)
        if before is not None and before[0] == generation:
            return
        resources = list(
            custom_resources(self._core.types, self._core.store, crd, converter_of(crd, self._caller))
        )
        for old in before[1] if before is not None else ():
            self._core.registry.remove(old)
        loop = asyncio.get_running_loop()
        for resource in resources:
            if self._core.realistic:
                resource.ready_at = loop.time() + INITIALIZING_SECONDS
            self._core.registry.add(resource)
        self._served[name] = (generation, resources)
        if before is not None:
            self._end_watches(before[1])

    def _end_watches(self, resources: list[ServedResource]) -> None:
        """End the watches on a kind whose definition has changed, as kube-apiserver does.

        Its watch cache is filled again then: watches cannot resume from before.
        """
        for collection in {resource.collection for resource in resources}:
            if self._core.realistic:
                asyncio.get_running_loop().call_later(
                    WATCH_END_SECONDS, collection.end_watches, self._core.store.revision
                )
            else:
                collection.end_watches(self._core.store.revision)

    def _withdraw(self, name: str) -> None:
        _, resources = self._served.pop(name, (0, list[ServedResource]()))
        for resource in resources:
            self._core.registry.remove(resource)
        for collection in {resource.collection for resource in resources}:
            collection.end_watches()

    def _begin_end(self, name: str, crd: JsonObject) -> None:
        if CLEANUP in (meta(crd).get("finalizers") or ()) and name not in self._ending:
            self._ending.add(name)
            for resource in self._served.get(name, (0, list[ServedResource]()))[1]:
                resource.terminating = True
            self._spawn(self._end(name, crd))

    async def _end(self, name: str, crd: JsonObject) -> None:
        """Delete all objects of a definition, then remove its finalizer; retry until it succeeds."""
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]

        async def delete_and_release() -> None:
            await self._set_terminating(
                crd, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
            )
            await self._delete_objects(group, plural)
            await self._set_terminating(crd, "False", "InstanceDeletionCompleted", "removed all instances")
            await self._api.update(GROUP, PLURAL, "", name, self._release)

        attempts = itertools.count()
        try:
            await self._pause(NAMING_SECONDS)
            while True:
                try:
                    await self._until_stored(delete_and_release)
                except StatusError as error:
                    if error.reason == "NotFound":
                        return
                    _log.warning("custom resource definition %s: %s", name, error)
                    await asyncio.sleep(RETRY_BACKOFF.delay(next(attempts)))
                else:
                    return
        finally:
            self._ending.discard(name)

    async def _set_terminating(self, crd: JsonObject, status: str, reason: str, message: str) -> None:
        def change(draft: JsonObject) -> None:
            set_condition(draft, "Terminating", status, reason, message, self._core.clock.stamp())

        await self._write(crd, change)

    @staticmethod
    def _release(crd: JsonObject) -> None:
        metadata = meta(crd)
        metadata["finalizers"] = [item for item in metadata.get("finalizers") or () if item != CLEANUP]

    async def _delete_objects(self, group: str, plural: str) -> None:
        loop = asyncio.get_running_loop()
        resource = self._core.registry.stored(group, plural)
        if resource is None:
            return
        collection = resource.collection
        for record in collection.records():
            namespace, _, name = record.key.rpartition("/")
            try:
                # Webhooks and policies are not called, as in kube-apiserver: they could block the deletion forever.
                await self._api.delete(group, plural, namespace, name, admitted=True)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
        while len(collection):
            await collection.changed(loop.time() + _LONG)
