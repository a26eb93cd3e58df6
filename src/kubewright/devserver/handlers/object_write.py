"""One write of one object in progress: its target, its options, and the operations that the steps of a write share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from kubewright.api import FieldError, GroupVersionKind
from kubewright.devserver.auth import check_escalation
from kubewright.devserver.core import Core
from kubewright.devserver.merge import (
    ApplyError,
    FieldWrite,
    MergeSchema,
    check_fits,
    update_managed_fields,
)
from kubewright.devserver.objects import JsonObject, copy, encode_sorted, labels_of, meta, split_api_version
from kubewright.devserver.objects.metadata import place_in_namespace
from kubewright.devserver.objects.status import OPTIMISTIC_LOCK, StatusError
from kubewright.devserver.registry import ServedResource, Unconverted
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionOperation
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import AuthorizationAttributes, forbidden
from kubewright.devserver.request.options import WriteParameters, manager_of
from kubewright.devserver.storage import Record

MAX_STORED = 1536 * 1024
"""etcd's limit for a request."""
MAX_MESSAGE = 2 * 1024 * 1024
"""The limit of kube-apiserver's connection to etcd."""
_REQUEST_OVERHEAD = 64
_NO_REVISION = "0"


@dataclass(frozen=True, slots=True)
class AdmissionView:
    """A smaller object that admission sees in place of the stored one, such as a Scale."""

    kind: GroupVersionKind
    show: Callable[[JsonObject], JsonObject]
    take: Callable[[JsonObject, JsonObject], None]
    """Copy into (object, view) what admission has changed in the view."""


@dataclass(slots=True)
class ObjectWrite:
    """The target of a write and everything its steps need."""

    core: Core
    context: RequestContext
    resource: ServedResource
    namespace: str
    name: str
    options: WriteParameters
    subresource: str = ""
    view: AdmissionView | None = None
    in_collection: bool = False
    """Part of a deletecollection request: admission does not see the object's name."""
    admitted: bool = False
    """Part of a request that admission has already seen as a whole: skip admission."""
    _converted: dict[tuple[bytes, str], JsonObject | StatusError] = field(
        default_factory=dict[tuple[bytes, str], JsonObject | StatusError]
    )
    """Results of the conversion webhook, or its failures, by object and version."""

    @property
    def key(self) -> str:
        """Return the storage key."""
        return self.resource.key(self.namespace, self.name)

    @property
    def warnings(self) -> list[str]:
        """Return the warnings of the request, to append to."""
        return self.context.warnings

    @property
    def stored_otherwise(self) -> bool:
        """Return True if the target, a custom resource, may be stored as the schema of this version does not allow.

        It was written under an older schema, or through another version: what that one allows is converted when it is
        stored, and not validated again.
        """
        record = self.record() if self.resource.custom else None
        if record is None:
            return False
        return record.shape != self.resource.codec.shape or len(self.resource.versions) > 1

    def record(self) -> Record | None:
        """Return the current record, or None if the object does not exist."""
        return self.resource.collection.get(self.key)

    async def read(self, record: Record) -> JsonObject:
        """Return a record's object in the version of the request."""
        await self.resource.prepare([record], refresh=True)
        return self.resource.read(record)

    def place(self, obj: JsonObject) -> None:
        """Set the object's namespace from the URL, or raise if it names another."""
        place_in_namespace(obj, self.namespace if self.resource.namespaced else "")

    def not_found(self) -> StatusError:
        """Return the NotFound error of the target."""
        return StatusError.not_found(self.resource.group, self.resource.plural, self.name)

    def invalid(self, errors: Sequence[FieldError], name: str | None = None) -> StatusError:
        """Return the error that lists what is wrong with the object, under another name if admission changed it."""
        resource = self.resource
        if not resource.strategy.repeats_errors:
            once: dict[str, FieldError] = {}
            for error in errors:
                once.setdefault(str(error), error)
            errors = list(once.values())
        shown = self.name if name is None else name
        return StatusError.invalid(resource.home_group, resource.kind, shown, errors)

    def conflict(self, why: str = "") -> StatusError:
        """Return the Conflict error of the target."""
        group, plural = self.resource.group, self.resource.plural
        return StatusError.conflict(group, plural, self.name, why or OPTIMISTIC_LOCK)

    def attributes(
        self,
        operation: AdmissionOperation,
        obj: JsonObject | None,
        old: JsonObject | None,
        options: JsonObject | None = None,
    ) -> AdmissionAttributes:
        """Return the write as admission sees it."""
        kind = {"CREATE": "CreateOptions", "DELETE": "DeleteOptions"}.get(operation, "UpdateOptions")
        name = self.name or (meta(obj).get("name", "") if obj is not None else "")
        if self.in_collection:
            name = ""
        namespace = self.namespace
        if self.resource.plural == "namespaces" and not self.resource.group:
            namespace = name
        if self.view is not None:
            obj = None if obj is None else self.view.show(obj)
            old = None if old is None else self.view.show(old)
        return AdmissionAttributes(
            self.context,
            self.resource.gvk if self.view is None else self.view.kind,
            self.resource.gvr,
            self.subresource,
            operation,
            name,
            namespace,
            obj,
            old,
            self.options.wire(kind) if options is None else options,
            self.options.dry_run,
        )

    async def run_mutating_admission(
        self, operation: Literal["CREATE", "UPDATE"], obj: JsonObject, old: JsonObject | None
    ) -> JsonObject:
        """Return the object as mutating admission leaves it."""
        if self.admitted:
            return obj
        attributes = self.attributes(operation, obj, old)
        await self.core.admission.admit(attributes)
        if attributes.object is None:
            return obj
        if self.view is None:
            return attributes.object
        self.view.take(obj, attributes.object)
        return obj

    def check_escalation(self, obj: JsonObject, old: JsonObject | None) -> None:
        """Raise Forbidden if a role or binding grants more than its writer holds."""
        check_escalation(self.core.authorizer, self.core.api, self.context, self.resource.gvr, obj, old)

    def check_may_create(self) -> None:
        """Raise Forbidden if the user of a PUT or an apply, which would create the object, may not create it."""
        attributes = replace(AuthorizationAttributes.of(self.context.info), verb="create")
        decision = self.core.authorizer.authorize(self.context.user, attributes)
        if not decision.allowed:
            raise forbidden(self.context.user, attributes, decision.reason)

    async def run_validating_admission(
        self, operation: Literal["CREATE", "UPDATE"], obj: JsonObject, old: JsonObject | None
    ) -> None:
        """Raise if validating admission rejects the object."""
        if not self.admitted:
            await self.core.admission.validate(self.attributes(operation, obj, old))

    async def allocate(self, obj: JsonObject, old: JsonObject | None) -> None:
        """Set what must be unique in the cluster, such as cluster IPs and node ports."""
        strategy = self.resource.strategy
        if strategy.before_commit is not None and not self.subresource:
            await strategy.before_commit(self.core.api, obj, old, dry_run=self.options.dry_run)

    def field_write(self) -> FieldWrite:
        """Return the manager, version and time that managedFields records for this write."""
        manager = manager_of(self.options, self.context.request)
        return FieldWrite(manager, self.resource.api_version, self.core.clock.stamp(), self.subresource)

    def empty(self) -> JsonObject:
        """Return the kind's empty object, from which a new one starts."""
        gvk = self.resource.gvk
        if self.resource.custom:
            return {"apiVersion": gvk.api_version, "kind": gvk.kind}
        return self.core.types.zero(gvk)

    def manage_fields(self, live: JsonObject | None, new: JsonObject, *, reset: bool = False) -> JsonObject:
        """Return the object with managedFields for a create, update or patch; `reset` drops all managers."""
        try:
            self._check_stored(live, new)
            self._check_ignored(live, new)
            owned = update_managed_fields(
                self.resource.codec.merge_schema,
                self.empty() if live is None else live,
                self._through_storage_version(new),
                self.field_write(),
                reset_fields=self.reset_fields(),
                reset=reset,
                convert=self.convert,
            )
        except ApplyError:
            # Fields that cannot be tracked, such as a list element without its key, do not fail a plain write: the managers
            # stay as they are.
            owned: JsonObject = {} if live is None else live
        metadata = {name: part for name, part in meta(new).items() if name != "managedFields"}
        if entries := meta(owned).get("managedFields"):
            metadata["managedFields"] = entries
        return {**new, "metadata": metadata}

    def _check_stored(self, live: JsonObject | None, new: JsonObject) -> None:
        """Raise ApplyError if an object of a custom kind, stored in another version or schema, does not fit this one."""
        if live is not None and self.stored_otherwise:
            check_fits(live, self.resource.codec.merge_schema)
            check_fits(new, self.resource.codec.merge_schema)

    def _check_ignored(self, live: JsonObject | None, new: JsonObject) -> None:
        """Raise ApplyError if the status, which this write cannot change, does not fit the schema of a custom kind.

        What it can change is validated later, and fails the write.
        """
        if not self.resource.custom or self.subresource or not self.resource.has_status:
            return
        status = new.get("status")
        if status is not None and (live is None or status != live.get("status")):
            check_fits({"status": status}, self.resource.codec.merge_schema)

    def _through_storage_version(self, obj: JsonObject) -> JsonObject:
        """Return a built-in object converted to its storage version and back, which sets fields that stand for others."""
        resource = self.resource
        stored = resource.storage_codec.gvk
        if resource.custom or stored == resource.gvk:
            return obj
        convert = resource.strategy.convert
        return convert(convert(obj, stored), resource.gvk)

    def convert(self, obj: JsonObject, version: str) -> tuple[JsonObject, MergeSchema] | None:
        """Return an object in another version of its kind with that version's schema.

        Return None if a built-in kind is not served in it. Raise ApplyError if a custom kind is not defined in it, or if
        the conversion webhook fails: this fails an apply, and makes a plain write keep the managers as they are, as in
        kube-apiserver.
        """
        if self.resource.custom:
            return self._convert_custom(obj, version)
        other = self.core.registry.find(*split_api_version(version), self.resource.plural)
        if other is None or other.collection is not self.resource.collection:
            return None
        return self.resource.strategy.convert(obj, other.gvk), other.codec.merge_schema

    def _convert_custom(self, obj: JsonObject, version: str) -> tuple[JsonObject, MergeSchema]:
        resource = self.resource
        codec = resource.versions.get(version)
        if codec is None:
            raise ApplyError(f"request to convert CR to an invalid group/version: {version}")
        if resource.converter is None or obj.get("apiVersion") == version:
            converted = resource.strategy.convert(obj, codec.gvk)
        else:
            key = (encode_sorted(obj), version)
            found = self._converted.get(key)
            if found is None:
                raise Unconverted(lambda: self._supply(key, obj, codec.gvk))
            if isinstance(found, StatusError):
                raise ApplyError(found.message)
            converted = copy(found)
        if codec is not resource.codec:
            check_fits(converted, codec.merge_schema)
        return converted, codec.merge_schema

    async def _supply(self, key: tuple[bytes, str], obj: JsonObject, kind: GroupVersionKind) -> None:
        try:
            self._converted[key] = await self.resource.convert_to(obj, kind)
        except StatusError as error:
            self._converted[key] = error

    def reset_fields(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that this endpoint ignores, so that its writers never own them."""
        resource = self.resource
        known = resource.strategy.reset_fields.get(self.subresource)
        if known is not None:
            return known
        if self.subresource == "status":
            return frozenset((name,) for name in ("spec", "metadata"))
        return frozenset({("status",)}) if resource.has_status and not self.subresource else frozenset()

    async def dry_run_result(self, obj: JsonObject, *, create: bool) -> bytes:
        """Return the bytes that storing a new or a changed object would respond with."""
        resource = self.resource
        storage = resource.storage_codec
        stored = await resource.to_storage(obj)
        if self._is_defaulted_when_read(create=create):
            storage.default(stored)
        if storage is resource.codec:
            return storage.encode(stored)
        record = Record(self.key, 0, storage.encode(stored), storage.shape, {})
        await resource.prepare([record])
        return resource.render(record)

    async def commit(self, obj: JsonObject, expected: Record | None) -> bytes:
        """Store an object in its storage version; return its bytes in the version of the request."""
        return await self.commit_stored(await self.resource.to_storage(obj), expected)

    async def commit_stored(self, stored: JsonObject, expected: Record | None) -> bytes:
        """Store an object that is in its storage version; return its bytes in the version of the request."""
        storage = self.resource.storage_codec
        # The codec orders fields: the placeholder reserves the place of the resource version.
        meta(stored)["resourceVersion"] = _NO_REVISION
        undefaulted: bytes | None = None
        if self._is_defaulted_when_read(create=expected is None):
            plain = copy(stored)
            storage.default(stored)
            if plain != stored:
                undefaulted = storage.encode(plain)
        return await self.put(storage.form(stored), expected, undefaulted)

    async def is_stored(self, formed: JsonObject, record: Record) -> bool:
        """Return True if a write of this object, in its storage version and field order, changes nothing.

        kube-apiserver compares it with the object that it has read, written again, and with what is in etcd. These two
        differ if it filled in defaults in the version of the request.
        """
        resource = self.resource
        if record.undefaulted is None and (resource.storage_codec is resource.codec or not resource.custom):
            return resource.storage_codec.write(formed) == record.data
        if resource.storage_codec is resource.codec or not self._is_in_etcd(formed, record):
            return False
        return self._is_in_etcd(await resource.to_storage(resource.read(record)), record)

    def _is_in_etcd(self, formed: JsonObject, record: Record) -> bool:
        write = self.resource.storage_codec.write
        if record.undefaulted is None:
            return write(formed) == record.data
        metadata = {**meta(formed), "resourceVersion": _NO_REVISION}
        return write({**formed, "metadata": metadata}) == record.undefaulted

    def is_defaulted(self, formed: JsonObject) -> bool:
        """Return True if an update stores this object as kube-apiserver will read it: no default is missing."""
        if not self._is_defaulted_when_read(create=False):
            return True
        read = copy(formed)
        self.resource.storage_codec.default(read)
        return read == formed

    def _is_defaulted_when_read(self, *, create: bool) -> bool:
        """Return True if kube-apiserver may fill in defaults when it reads from etcd what this write stores.

        They appear in what a write could not set: the status of a new custom resource or claim, a null that is not
        allowed, or the labels of a Job that has none.
        """
        if self.resource.custom or self.subresource:
            return True
        return create and self.resource.strategy.is_defaulted_when_read

    def _check_size(self, formed: JsonObject, data: bytes) -> None:
        """Raise if an object is too large for etcd; built-in kinds are stored there in protobuf."""
        types, gvk = self.core.types, self.resource.storage_codec.gvk
        size = len(data) if self.resource.custom else len(types.protobuf_message(gvk, formed))
        # The request also contains the key and the condition of the write.
        size += len(self.key) + _REQUEST_OVERHEAD
        if size > MAX_MESSAGE:
            text = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE})"
            raise StatusError.unknown(f"rpc error: code = ResourceExhausted desc = {text}")
        if size > MAX_STORED:
            raise StatusError.unknown("etcdserver: request is too large")

    async def put(
        self, formed: JsonObject, expected: Record | None, undefaulted: bytes | None = None
    ) -> bytes:
        """Store an object that already is in its storage version and field order.

        It is given as it is in etcd, too, if kube-apiserver fills in defaults when it reads it.
        """
        resource = self.resource
        storage = resource.storage_codec

        def encode(revision: int) -> bytes:
            meta(formed)["resourceVersion"] = str(revision)
            data = storage.write(formed)
            if len(data) > MAX_STORED:
                self._check_size(formed, data)
            return data

        record = self.core.store.put(
            resource.collection, self.key, expected, encode, storage.shape, labels_of(formed)
        )
        record.undefaulted = undefaulted
        await resource.prepare([record])
        return resource.render(record)
