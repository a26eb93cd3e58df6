"""Custom resources: the resources and the strategy of a CustomResourceDefinition."""

from collections.abc import Callable, Iterator
from typing import Any, cast

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects import JsonObject, api_version, items, meta, section
from kubewright.devserver.objects.jsonpath import compile_path
from kubewright.devserver.objects.metadata import finalizer_warnings
from kubewright.devserver.objects.status import group_resource
from kubewright.devserver.registry.codecs import CustomCodec
from kubewright.devserver.registry.conversion import WebhookConverter
from kubewright.devserver.registry.resources import ServedResource, Subresource, version_of_shape
from kubewright.devserver.storage import ObjectStore
from kubewright.devserver.strategy import ScaleAccess, Strategy
from kubewright.devserver.strategy.tables import CustomColumns
from kubewright.devserver.wire import TypeTable
from kubewright.schema import version_priority

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
PART_VERBS = ("get", "patch", "update")
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


def custom_resources(
    types: TypeTable, store: ObjectStore, crd: JsonObject, converter: WebhookConverter | None
) -> Iterator[ServedResource]:
    """Return the resources of a definition, one for each served version."""
    spec = crd["spec"]
    names = crd["status"]["acceptedNames"]
    kind = names["kind"]
    versions: list[JsonObject] = spec["versions"]
    codecs = {item["name"]: _codec(types, spec["group"], kind, item) for item in versions}
    stored = next(item["name"] for item in versions if item.get("storage"))
    for item in versions:
        if item.get("served"):
            resource = _resource(store, spec, names, item, codecs[item["name"]], codecs[stored])
            resource.versions = {codec.gvk.api_version: codec for codec in codecs.values()}
            resource.converter = converter
            resource.generation = meta(crd).get("generation", 0)
            resource.undefined = _undefined(resource)
            yield resource


def _undefined(resource: ServedResource) -> frozenset[str]:
    """Return the versions of stored objects that a definition does not have; no request can write such objects."""
    stored = {version_of_shape(record.shape) for record in resource.collection.records()}
    return frozenset(stored - {version_of_shape(codec.shape) for codec in resource.versions.values()})


def _codec(types: TypeTable, group: str, kind: str, version: JsonObject) -> CustomCodec:
    schema = section(version, "schema", "openAPIV3Schema") or {"type": "object"}
    scale = section(version, "subresources", "scale")
    return CustomCodec(types, GroupVersionKind(group, version["name"], kind), schema, scale)


def _resource(
    store: ObjectStore,
    spec: JsonObject,
    names: JsonObject,
    version: JsonObject,
    codec: CustomCodec,
    stored: CustomCodec,
) -> ServedResource:
    group, name, kind = spec["group"], version["name"], names["kind"]
    parts = section(version, "subresources")
    subresources: dict[str, Subresource] = {}
    if "status" in parts:
        subresources["status"] = Subresource("status", codec.gvk, PART_VERBS)
    if parts.get("scale"):
        subresources["scale"] = Subresource("scale", SCALE, PART_VERBS)
    return ServedResource(
        group=group,
        version=name,
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=kind,
        list_kind=names.get("listKind") or f"{kind}List",
        namespaced=spec["scope"] == "Namespaced",
        verbs=VERBS,
        codec=codec,
        storage_codec=codec if codec.gvk == stored.gvk else stored,
        strategy=_strategy(version, parts),
        collection=store.collection(group_resource(group, names["plural"])),
        short_names=names.get("shortNames") or (),
        categories=names.get("categories") or (),
        subresources=subresources,
        custom=True,
        deprecation=_deprecation(spec, kind, version),
    )


def _deprecation(spec: JsonObject, kind: str, version: JsonObject) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return version["deprecationWarning"]
    group, name = spec["group"], version["name"]
    text = f"{api_version(group, name)} {kind} is deprecated"
    better = [
        other["name"]
        for other in items(spec, "versions")
        if other.get("served")
        and not other.get("deprecated")
        and version_priority(other["name"]) > version_priority(name)
    ]
    if not better:
        return text
    return f"{text}; use {api_version(group, max(better, key=version_priority))} {kind}"


def _strategy(version: JsonObject, parts: JsonObject) -> Strategy:
    columns = CustomColumns(items(version, "additionalPrinterColumns"))
    scale = section(parts, "scale")
    selectable = {
        item["jsonPath"].removeprefix("."): _selectable(item["jsonPath"])
        for item in items(version, "selectableFields")
    }
    return Strategy(
        repeats_errors=True,
        warnings=finalizer_warnings,
        has_generation=True,
        allow_unconditional_update=False,
        selectable_fields=selectable,
        columns=columns.columns,
        row=columns.row,
        scale=_scale_access(scale) if scale else None,
    )


def _one(path: str) -> Callable[[JsonObject], Any]:
    find = compile_path(path)

    def first(obj: JsonObject) -> Any:
        values = find(obj)
        return values[0] if values else None

    return first


def _selectable(path: str) -> Callable[[JsonObject], str]:
    find = _one(path)

    def read(obj: JsonObject) -> str:
        value = find(obj)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


def _scale_access(scale: JsonObject) -> ScaleAccess:
    desired, present = _one(scale["specReplicasPath"]), _one(scale["statusReplicasPath"])
    path = tuple(scale["specReplicasPath"].removeprefix(".").split("."))
    selector = _one(scale["labelSelectorPath"]) if scale.get("labelSelectorPath") else None

    def read(obj: JsonObject) -> tuple[int, int, str]:
        text = selector(obj) if selector is not None else ""
        return int(desired(obj) or 0), int(present(obj) or 0), str(text or "")

    def write(obj: JsonObject, replicas: int) -> None:
        *parents, last = path
        place = obj
        for name in parents:
            place = cast(JsonObject, place.setdefault(name, {}))
        place[last] = replicas

    return ScaleAccess(read, write, path)
