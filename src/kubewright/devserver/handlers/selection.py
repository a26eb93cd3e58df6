"""Which objects a list or watch selects: namespace, name, labels, fields and shards."""

from collections.abc import Callable
from dataclasses import dataclass

from kubewright.api import FieldSelector, LabelMatcher, SelectorError, parse_fields, parse_labels
from kubewright.devserver.handlers.shard_selector import ShardSelector, parse_shard_selector
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.storage import Record


@dataclass(slots=True)
class ObjectSelection:
    """The objects of a resource that a request selects."""

    resource: ServedResource
    prefix: str
    name: str = ""
    """The selected name, if there is one."""
    labels: LabelMatcher | None = None
    fields: FieldSelector | None = None
    shards: ShardSelector | None = None

    @property
    def whole(self) -> bool:
        """Return True if every object under the prefix belongs to it."""
        return self.labels is None and self.fields is None and self.shards is None

    @property
    def is_single(self) -> bool:
        """Return True if at most one object, whose key is known, belongs to it: such lists have no pages."""
        return bool(self.name) and (bool(self.prefix) or not self.resource.namespaced)

    def covers(self, key: str) -> bool:
        """Return True if a key may belong to it."""
        return not self.prefix or key.startswith(self.prefix)

    def matches(self, record: Record) -> bool:
        """Return True if a record belongs to it."""
        if self.shards is not None and not self.shards.matches(record):
            return False
        if self.labels is not None and not self.labels.matches(record.labels):
            return False
        return self.fields is None or self.fields.matches(_field_reader(self.resource, record))

    def indexed(self, records: list[Record]) -> list[Record]:
        """Return the records that kube-apiserver's index of the kind finds: only these count for a full page."""
        field = self.resource.strategy.indexed_field
        value = self.fields.exact(field) if field and self.fields is not None else None
        if value is None:
            return records
        return [record for record in records if _field_reader(self.resource, record)(field) == value]


def select_objects(
    resource: ServedResource, namespace: str, name: str, labels: str, fields: str, shards: str = ""
) -> ObjectSelection:
    """Read the selectors of a request."""
    prefix = f"{namespace}/" if namespace and resource.namespaced else ""
    found = ObjectSelection(resource, prefix)
    try:
        if labels:
            found.labels = parse_labels(labels)
        if fields:
            found.fields = parse_fields(fields)
    except SelectorError as error:
        raise StatusError.bad_request(str(error)) from None
    if found.fields is not None:
        _check_fields(resource, found.fields)
        found.name = found.fields.exact("metadata.name") or ""
        only = found.fields.exact("metadata.namespace")
        if only and resource.namespaced and not prefix:
            found.prefix = f"{only}/"
    if name:
        if found.fields is not None and found.name != name:
            raise StatusError.bad_request("fieldSelector metadata.name doesn't match requested name")
        found.name = name
        found.fields = parse_fields(f"metadata.name={name}")
    if shards:
        found.shards = parse_shard_selector(shards)
    return found


def _check_fields(resource: ServedResource, fields: FieldSelector) -> None:
    known = resource.strategy.selectable_fields
    for requirement in fields.requirements:
        label = requirement.field
        particular = bool(known) or resource.custom
        if label == "metadata.name" or label in known:
            continue
        if label == "metadata.namespace" and (resource.namespaced or not particular):
            continue
        if particular:
            raise StatusError.bad_request(resource.strategy.unselectable.replace("{}", label))
        raise StatusError.bad_request(
            f'{quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"'
        )


def _field_reader(resource: ServedResource, record: Record) -> Callable[[str], str]:
    namespace, slash, name = record.key.rpartition("/")
    document: JsonObject | None = None

    def read(label: str) -> str:
        nonlocal document
        if label == "metadata.name":
            return name
        if label == "metadata.namespace":
            return namespace if slash else ""
        if document is None:
            document = resource.read(record)
        return resource.strategy.selectable_fields[label](document)

    return read
