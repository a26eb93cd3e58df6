"""One write on its way: what it is aimed at, how it is to be done, and by whom."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from kubewright.api import GroupVersionKind
from kubewright.devserver.core import Core
from kubewright.devserver.merge import ApplyError, MergeSchema, Write, update_managed_fields
from kubewright.devserver.objects import JsonObject, copy, encode_sorted, labels_of, meta, split_api_version
from kubewright.devserver.objects.metadata import place_in_namespace
from kubewright.devserver.objects.status import OPTIMISTIC_LOCK, StatusError
from kubewright.devserver.registry import Resource, Unconverted
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.request.identity import User
from kubewright.devserver.request.options import WriteOptions
from kubewright.devserver.storage import Record


@dataclass(frozen=True, slots=True)
class View:
    """A small object that stands for a bigger one before admission, as a Scale does."""

    kind: GroupVersionKind
    show: Callable[[JsonObject], JsonObject]
    take: Callable[[JsonObject, JsonObject], None]
    """Put into (object, view) what admission has changed in the view."""


@dataclass(slots=True)
class Scope:
    """The target of a write and everything its steps need to know."""

    core: Core
    resource: Resource
    namespace: str
    name: str
    user: User
    options: WriteOptions
    manager: str
    subresource: str = ""
    view: View | None = None
    collective: bool = False
    """One of many objects that a request deletes: admission is not told its name."""
    admitted: bool = False
    """Part of a request that admission has seen as a whole: it is not asked about this write."""
    warnings: list[str] = field(default_factory=list[str])
    _converted: dict[tuple[bytes, str], JsonObject] = field(
        default_factory=dict[tuple[bytes, str], JsonObject]
    )
    """What a converter has made of the objects that this write had to see in another version."""

    @property
    def key(self) -> str:
        """Give the storage key."""
        return self.resource.key(self.namespace, self.name)

    def record(self) -> Record | None:
        """Find the present record."""
        return self.resource.collection.get(self.key)

    async def read(self, record: Record) -> JsonObject:
        """Give a record's object in the version of the request."""
        await self.resource.prepare([record], again=True)
        return self.resource.read(record)

    def place(self, obj: JsonObject) -> None:
        """Put an object where the URL says, or refuse it."""
        place_in_namespace(obj, self.namespace if self.resource.namespaced else "")

    def not_found(self) -> StatusError:
        """Say that the target does not exist."""
        return StatusError.not_found(self.resource.group, self.resource.plural, self.name)

    def conflict(self, why: str = "") -> StatusError:
        """Say that the target is not what the client thinks."""
        group, plural = self.resource.group, self.resource.plural
        return StatusError.conflict(group, plural, self.name, why or OPTIMISTIC_LOCK)

    def operation(
        self,
        operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"],
        obj: JsonObject | None,
        old: JsonObject | None,
        options: JsonObject | None = None,
    ) -> Operation:
        """Show the write to admission."""
        kind = {"CREATE": "CreateOptions", "DELETE": "DeleteOptions"}.get(operation, "UpdateOptions")
        name = self.name or (meta(obj).get("name", "") if obj is not None else "")
        if self.collective:
            name = ""
        namespace = self.namespace
        if self.resource.plural == "namespaces" and not self.resource.group:
            namespace = name
        if self.view is not None:
            obj = None if obj is None else self.view.show(obj)
            old = None if old is None else self.view.show(old)
        return Operation(
            self.resource.gvk if self.view is None else self.view.kind,
            self.resource.gvr,
            self.subresource,
            operation,
            name,
            namespace,
            obj,
            old,
            self.options.wire(kind) if options is None else options,
            self.user,
            self.options.dry_run,
            self.warnings,
        )

    async def admit(
        self,
        operation: Literal["CREATE", "UPDATE"],
        obj: JsonObject,
        old: JsonObject | None,
        options: JsonObject | None = None,
    ) -> JsonObject:
        """Let admission change the object; gives what became of it."""
        if self.admitted:
            return obj
        shown = self.operation(operation, obj, old, options)
        await self.core.admission.admit(shown)
        if shown.object is None:
            return obj
        if self.view is None:
            return shown.object
        self.view.take(obj, shown.object)
        return obj

    async def judge(
        self, operation: Literal["CREATE", "UPDATE"], obj: JsonObject, old: JsonObject | None
    ) -> None:
        """Let admission refuse the object."""
        if not self.admitted:
            await self.core.admission.validate(self.operation(operation, obj, old))

    def write(self) -> Write:
        """Tell field management who writes."""
        return Write(self.manager, self.resource.api_version, self.core.clock.stamp(), self.subresource)

    def empty(self) -> JsonObject:
        """Give the kind's empty object, from which a new one starts."""
        gvk = self.resource.gvk
        if self.resource.custom:
            return {"apiVersion": gvk.api_version, "kind": gvk.kind}
        return self.core.types.zero(gvk)

    def manage_fields(self, live: JsonObject | None, new: JsonObject, *, reset: bool = False) -> JsonObject:
        """Write down who owns the fields that a plain write sets; `reset` forgets all owners."""
        try:
            owned = update_managed_fields(
                self.resource.codec.merge_schema,
                self.empty() if live is None else live,
                self._there_and_back(new),
                self.write(),
                reset_fields=self.reset_fields(),
                reset=reset,
                convert=self.convert,
            )
        except ApplyError:
            # What cannot be owned, as an element without its key, is no reason to refuse a plain write.
            owned: JsonObject = {}
        metadata = {name: part for name, part in meta(new).items() if name != "managedFields"}
        if entries := meta(owned).get("managedFields"):
            metadata["managedFields"] = entries
        return {**new, "metadata": metadata}

    def _there_and_back(self, obj: JsonObject) -> JsonObject:
        """Give a built-in object as it comes back from its stored version, which adds to some what it stands for."""
        resource = self.resource
        stored = resource.storage_codec.gvk
        if resource.custom or stored == resource.gvk:
            return obj
        convert = resource.strategy.convert
        return convert(convert(obj, stored), resource.gvk)

    def convert(self, obj: JsonObject, version: str) -> tuple[JsonObject, MergeSchema] | None:
        """Give an object in another served version of its kind, with that version's schema."""
        other = self.core.registry.find(*split_api_version(version), self.resource.plural)
        if other is None or other.collection is not self.resource.collection:
            return None
        if self.resource.converter is None or obj.get("apiVersion") == other.api_version:
            return self.resource.strategy.convert(obj, other.gvk), other.codec.merge_schema
        key = (encode_sorted(obj), other.version)
        if key not in self._converted:
            raise Unconverted(lambda: self._supply(key, obj, other))
        return copy(self._converted[key]), other.codec.merge_schema

    async def _supply(self, key: tuple[bytes, str], obj: JsonObject, version: Resource) -> None:
        self._converted[key] = await version.convert(obj)

    def reset_fields(self) -> frozenset[tuple[str, ...]]:
        """Give the paths that nobody comes to own through this path of the API."""
        resource = self.resource
        known = resource.strategy.reset_fields.get(self.subresource)
        if known is not None:
            return known
        if self.subresource == "status":
            return frozenset((name,) for name in ("spec", "metadata"))
        return frozenset({("status",)}) if resource.has_status and not self.subresource else frozenset()

    async def rehearse(self, obj: JsonObject) -> bytes:
        """Give the bytes that writing an object would answer with."""
        resource = self.resource
        storage = resource.storage_codec
        if storage is resource.codec:
            return resource.codec.encode(obj)
        stored = await resource.to_storage(obj)
        record = Record(self.key, 0, storage.encode(stored), storage.shape, {})
        await resource.prepare([record])
        return resource.render(record)

    async def commit(self, obj: JsonObject, expected: Record | None) -> bytes:
        """Write an object in its stored version; gives its bytes in the requested one."""
        stored = await self.resource.to_storage(obj)
        # Formed before its revision is known, it has a place for it.
        meta(stored)["resourceVersion"] = "0"
        return await self.put(self.resource.storage_codec.form(stored), expected)

    async def put(self, formed: JsonObject, expected: Record | None) -> bytes:
        """Write an object that has its stored version and form."""
        resource = self.resource
        storage = resource.storage_codec

        def encode(revision: int) -> bytes:
            meta(formed)["resourceVersion"] = str(revision)
            return storage.write(formed)

        record = self.core.store.put(
            resource.collection, self.key, expected, encode, storage.shape, labels_of(formed)
        )
        await resource.prepare([record])
        return resource.render(record)
