"""The registry of served resources, by path and group version."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kubewright.api import GroupVersionKind
from kubewright.api.identity import GroupVersionResource
from kubewright.devserver.objects import JsonObject, api_version, decode
from kubewright.devserver.objects.status import StatusError, group_resource
from kubewright.devserver.registry.codecs import Codec
from kubewright.devserver.registry.conversion import (
    MAX_FAILURES,
    Unconverted,
    UnconvertibleObjects,
    WebhookConverter,
)
from kubewright.devserver.storage import Collection, Record
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.wire import TypeTable


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object that has its own path."""

    name: str
    gvk: GroupVersionKind
    verbs: Sequence[str]


@dataclass(slots=True, eq=False)
class ServedResource:
    """One resource in one version: how it is named, read, written and stored."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    verbs: Sequence[str]
    codec: Codec
    storage_codec: Codec
    strategy: Strategy
    collection: Collection
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict[str, Subresource])
    custom: bool = False
    deprecation: str = ""
    """The warning in every response of this version."""
    terminating: bool = False
    """The CRD is being deleted: nothing new may be created."""
    versions: Mapping[str, Codec] = field(default_factory=dict[str, Codec])
    """The codecs of all versions of a custom kind, by apiVersion."""
    converter: WebhookConverter | None = None
    """What converts between versions when that takes more than another apiVersion."""
    undefined: frozenset[str] = frozenset()
    """Versions, as shapes have them, of stored objects that the CRD no longer defines: they cannot be read."""
    generation: int = 0
    """The generation of the CRD: objects are converted again when it changes."""
    ready_at: float = 0.0
    """The event loop's time from which requests are served; until then clients get 429."""

    @property
    def gvk(self) -> GroupVersionKind:
        """Return the kind."""
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def gvr(self) -> GroupVersionResource:
        """Return the resource as admission names it."""
        return GroupVersionResource(self.group, self.version, self.plural)

    @property
    def api_version(self) -> str:
        """Return the apiVersion of its objects."""
        return api_version(self.group, self.version)

    @property
    def group_resource(self) -> str:
        """Return the name messages use."""
        return group_resource(self.group, self.plural)

    @property
    def home_group(self) -> str:
        """Return the group that errors about its objects name: the group whose storage is used."""
        return self.strategy.stored_as[0] if self.strategy.stored_as else self.group

    @property
    def has_status(self) -> bool:
        """Return True if the status is written through its own path."""
        return "status" in self.subresources

    def key(self, namespace: str, name: str) -> str:
        """Return the storage key of an object."""
        return f"{namespace}/{name}" if self.namespaced else name

    def render(self, record: Record) -> bytes:
        """Return a record's bytes in this version; raise Unconverted when a converter has to help first."""
        if record.shape == self.codec.shape:
            return record.data
        if self.undefined and version_of_shape(record.shape) in self.undefined:
            raise self._undecodable([(record, undefined_version(record))])
        return record.form(self.form_key, self._convert)

    @property
    def form_key(self) -> str:
        """Return the key under which records keep their bytes in this version, as the present CRD converts them."""
        return f"{self.codec.shape}#{self.generation}" if self.custom else self.codec.shape

    def protobuf_message(self, types: TypeTable, record: Record) -> bytes:
        """Return a record's object in this version as a protobuf message, written once."""
        return record.form(
            f"{self.codec.shape}+protobuf",
            lambda found: types.protobuf_message(self.gvk, decode(self.render(found))),
        )

    def read(self, record: Record) -> JsonObject:
        """Return a record's object in this version, for the caller to change."""
        return decode(self.render(record))

    def _convert(self, record: Record) -> bytes:
        if self._foreign(record):
            raise Unconverted(lambda: self.prepare([record]))
        return self._fit(record, self.strategy.convert(self._complete(record), self.gvk))

    @property
    def initialization_failure(self) -> str:
        """Return why no list of the objects can be made, or an empty string: all of them must be readable."""
        if not self.undefined:
            return ""
        lost = (
            record
            for record in self.collection.records("")
            if version_of_shape(record.shape) in self.undefined
        )
        failures = [(record, undefined_version(record)) for record in itertools.islice(lost, MAX_FAILURES)]
        if not failures:
            # All that could not be read has been deleted since.
            return ""
        return f"failed to list <unspecified>: {self._undecodable(failures).of_list().message}"

    def _complete(self, record: Record) -> JsonObject:
        """Return a record's object as the present schema of the version it is stored in has it."""
        stored = decode(record.data)
        home = self.versions.get(stored.get("apiVersion", ""))
        return stored if home is None or home.shape == record.shape else home.from_storage(stored)

    def _fit(self, record: Record, converted: JsonObject) -> bytes:
        """Write a converted object; the defaults are those of the version it is stored in."""
        if self.custom and version_of_shape(record.shape) != version_of_shape(self.codec.shape):
            converted, _ = self.codec.decode(converted)
        return self.codec.encode(converted)

    def _foreign(self, record: Record) -> bool:
        """Return True if a record is in a version from which only the converter leads to this one."""
        if self.converter is None or record.shape == self.codec.shape:
            return False
        return version_of_shape(record.shape) != version_of_shape(self.codec.shape)

    async def prepare(self, records: Iterable[Record], *, refresh: bool = False) -> None:
        """Convert records to this version with one call of the conversion webhook; `refresh` those converted before, too."""
        if self.converter is None:
            return
        form = self.form_key
        due = [
            item for item in records if self._foreign(item) and (refresh or form not in (item.forms or ()))
        ]
        if not due:
            return
        try:
            converted = await self.converter.convert([self._complete(item) for item in due], self.gvk)
        except StatusError as error:
            if len(due) == 1:
                raise self._undecodable([(due[0], error.message)]) from None
            converted = await self._convert_each(due)
        for record, obj in zip(due, converted, strict=True):
            record.keep(form, self._fit(record, obj))

    async def _convert_each(self, records: Sequence[Record]) -> list[JsonObject]:
        """Convert records one by one, as kube-apiserver does, after they failed together; raise for those that fail."""
        converted: list[JsonObject] = []
        failures: list[tuple[Record, str]] = []
        for record in records:
            try:
                converted.append(await self.convert(self._complete(record)))
            except StatusError as error:
                failures.append((record, error.message))
                if len(failures) == MAX_FAILURES:
                    break
        if failures:
            raise self._undecodable(failures)
        return converted

    def _undecodable(self, failures: Sequence[tuple[Record, str]]) -> UnconvertibleObjects:
        texts = [
            (record.key, f"object not decodable revision={record.revision}: {why}")
            for record, why in failures
        ]
        return UnconvertibleObjects(self.group, self.plural, texts)

    async def convert(self, obj: JsonObject) -> JsonObject:
        """Return an object of another version of the kind in this one."""
        return await self.convert_to(obj, self.gvk)

    async def convert_to(self, obj: JsonObject, kind: GroupVersionKind) -> JsonObject:
        """Return an object of any version of the kind in another one."""
        if obj.get("apiVersion") == kind.api_version:
            return obj
        if self.converter is None:
            return self.strategy.convert(obj, kind)
        return (await self.converter.convert([obj], kind))[0]

    async def to_storage(self, obj: JsonObject) -> JsonObject:
        """Return an object in the version it is stored in, without fields that version does not have."""
        storage = self.storage_codec
        if storage is self.codec:
            return obj
        return storage.prune(await self.convert_to(obj, storage.gvk))


def undefined_version(record: Record) -> str:
    """Return the message about an object that is stored in a version that its CRD does not define."""
    version = version_of_shape(record.shape).rpartition("/")[0]
    return f"request to convert CR from an invalid group/version: {version}"


def version_of_shape(shape: str) -> str:
    """Return the version of a shape, without its schema."""
    return shape.partition("@")[0]


class ResourceRegistry:
    """All served resources, indexed by path, by stored version and by storage."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], ServedResource] = {}
        self._versions: dict[tuple[str, str], dict[str, ServedResource]] = {}
        self._stored: dict[tuple[str, str], ServedResource] = {}
        self._by_collection: dict[Collection, list[ServedResource]] = {}
        self.generation: int = 0
        """Counts changes, so that documents made from the registry know when they are stale."""

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(self._resources.values())

    def add(self, resource: ServedResource) -> None:
        """Serve a resource, in place of an earlier one by the same name."""
        if (before := self.find(resource.group, resource.version, resource.plural)) is not None:
            self._unindex(before)
        self._resources[resource.group, resource.version, resource.plural] = resource
        self._versions.setdefault((resource.group, resource.version), {})[resource.plural] = resource
        self._by_collection.setdefault(resource.collection, []).append(resource)
        if resource.storage_codec is resource.codec:
            self._stored.setdefault((resource.group, resource.plural), resource)
        self.generation += 1

    def remove(self, resource: ServedResource) -> None:
        """Stop serving a resource."""
        place = (resource.group, resource.version)
        if (found := self._resources.pop((*place, resource.plural), None)) is not None:
            self._unindex(found)
            self.generation += 1
            del self._versions[place][resource.plural]
            if not self._versions[place]:
                del self._versions[place]

    def _unindex(self, resource: ServedResource) -> None:
        same = self._by_collection[resource.collection]
        same.remove(resource)
        if not same:
            del self._by_collection[resource.collection]
        if self._stored.get((resource.group, resource.plural)) is resource:
            del self._stored[resource.group, resource.plural]

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        """Find a resource by its path."""
        return self._resources.get((group, version, plural))

    def stored(self, group: str, plural: str) -> ServedResource | None:
        """Find the resource in the version it is stored in."""
        return self._stored.get((group, plural))

    def equivalents(self, resource: ServedResource) -> list[ServedResource]:
        """Return the resources that share a resource's storage: other versions, and other groups."""
        return [other for other in self._by_collection.get(resource.collection, ()) if other is not resource]

    def serves(self, group: str, version: str) -> bool:
        """Return True if a group version is served."""
        return (group, version) in self._versions

    def group_versions(self) -> list[tuple[str, str]]:
        """Return the served group versions in the order they came."""
        return list(self._versions)

    def resources(self, group: str, version: str) -> list[ServedResource]:
        """Return the resources of a group version, by name."""
        found = self._versions.get((group, version), {})
        return [found[name] for name in sorted(found)]

    def touch(self) -> None:
        """Mark the registry as changed after a resource was changed in place."""
        self.generation += 1
