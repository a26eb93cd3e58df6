"""Built-in resources, from the recorded discovery data and the strategies of their kinds."""

from collections.abc import Callable, Iterator

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects.status import group_resource
from kubewright.devserver.registry.codecs import BuiltinCodec
from kubewright.devserver.registry.resources import ServedResource, Subresource
from kubewright.devserver.storage import ObjectStore
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.wire import BuiltinResource, TypeTable

Strategies = Callable[[GroupVersionKind], Strategy]


def builtin_resources(
    types: TypeTable, store: ObjectStore, strategies: Strategies
) -> Iterator[ServedResource]:
    """Return every built-in resource."""
    for served in types.discovery():
        for entry in served.resources:
            yield _resource(types, store, strategies, served.group, served.version, entry)


def _resource(
    types: TypeTable,
    store: ObjectStore,
    strategies: Strategies,
    group: str,
    version: str,
    entry: BuiltinResource,
) -> ServedResource:
    gvk = GroupVersionKind(group, version, entry.kind)
    strategy = strategies(gvk)
    codec = BuiltinCodec(types, gvk, strategy)
    home_group, home_plural = strategy.stored_as or (group, entry.name)
    stored = GroupVersionKind(home_group, strategy.storage_version or version, entry.kind)
    subresources = {
        item.name: Subresource(item.name, GroupVersionKind(item.group, item.version, item.kind), item.verbs)
        for item in entry.subresources
    }
    return ServedResource(
        group=group,
        version=version,
        plural=entry.name,
        singular=entry.singular,
        kind=entry.kind,
        list_kind=f"{entry.kind}List",
        namespaced=entry.namespaced,
        verbs=entry.verbs,
        codec=codec,
        storage_codec=codec if stored == gvk else BuiltinCodec(types, stored, strategy),
        strategy=strategy,
        collection=store.collection(group_resource(home_group, home_plural)),
        short_names=entry.short_names,
        categories=entry.categories,
        subresources=subresources,
        deprecation=strategy.deprecation,
    )
