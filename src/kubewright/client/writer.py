"""Writing verbs: create, apply, patch, replace, update, delete."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack, overload

from kubewright.api import (
    Conflict,
    GroupVersionKind,
    InvalidRequest,
    JsonObject,
    Kind,
    Object,
    decode,
    kind_of,
    parse,
    typed_diff,
)
from kubewright.api.meta import Propagation
from kubewright.client import requests
from kubewright.client.reader import ClientReader
from kubewright.client.requests import PatchType, WriteOptions

T = TypeVar("T", bound=Object)

UPDATE_ATTEMPTS = 5


class ClientWriter(ClientReader):
    """Write to one cluster; objects without a class are JSON objects, with their kind given or discovered."""

    @overload
    async def create(self, obj: T, *, kind: None = None, **options: Unpack[WriteOptions]) -> T: ...
    @overload
    async def create(
        self, obj: JsonObject, *, kind: Kind | None = None, **options: Unpack[WriteOptions]
    ) -> JsonObject: ...
    async def create(
        self, obj: Object | JsonObject, *, kind: Kind | None = None, **options: Unpack[WriteOptions]
    ) -> Any:
        """Create an object and return the server's version of it."""
        chosen = await self._kind_for(obj, kind)
        request = requests.create(obj, chosen, **self._managed(options))
        return await self._read(_shape(obj, chosen), request)

    @overload
    async def apply(
        self,
        obj: T,
        *,
        force: bool = True,
        subresource: str = "",
        kind: None = None,
        **options: Unpack[WriteOptions],
    ) -> T: ...
    @overload
    async def apply(
        self,
        obj: JsonObject,
        *,
        force: bool = True,
        subresource: str = "",
        kind: Kind | None = None,
        **options: Unpack[WriteOptions],
    ) -> JsonObject: ...
    async def apply(
        self,
        obj: Object | JsonObject,
        *,
        force: bool = True,
        subresource: str = "",
        kind: Kind | None = None,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """Apply an object (server-side apply); without force, `Conflict.fields` lists the conflicting managers."""
        chosen = await self._kind_for(obj, kind)
        request = requests.apply(obj, chosen, force=force, subresource=subresource, **self._managed(options))
        return await self._read(_shape(obj, chosen), request)

    @overload
    async def replace(
        self, obj: T, *, subresource: str = "", kind: None = None, **options: Unpack[WriteOptions]
    ) -> T: ...
    @overload
    async def replace(
        self,
        obj: JsonObject,
        *,
        subresource: str = "",
        kind: Kind | None = None,
        **options: Unpack[WriteOptions],
    ) -> JsonObject: ...
    async def replace(
        self,
        obj: Object | JsonObject,
        *,
        subresource: str = "",
        kind: Kind | None = None,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """Replace an object (PUT); prefer `update`, which keeps fields that the class does not know."""
        chosen = await self._kind_for(obj, kind)
        request = requests.replace(obj, chosen, subresource=subresource, **self._managed(options))
        return await self._read(_shape(obj, chosen), request)

    @overload
    async def patch(
        self,
        target: type[T] | T,
        patch: JsonObject | Sequence[JsonObject],
        *,
        name: str = "",
        namespace: str = "",
        type: PatchType = "merge",
        subresource: str = "",
        force: bool = False,
        **options: Unpack[WriteOptions],
    ) -> T: ...
    @overload
    async def patch(
        self,
        target: Kind,
        patch: JsonObject | Sequence[JsonObject],
        *,
        name: str = "",
        namespace: str = "",
        type: PatchType = "merge",
        subresource: str = "",
        force: bool = False,
        **options: Unpack[WriteOptions],
    ) -> JsonObject: ...
    async def patch(
        self,
        target: type[Object] | Object | Kind,
        patch: JsonObject | Sequence[JsonObject],
        *,
        name: str = "",
        namespace: str = "",
        type: PatchType = "merge",  # noqa: A002 (the word of the whole API)
        subresource: str = "",
        force: bool = False,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """Patch an object, given as an object or by kind and name, with one of the four patch types."""
        shape, name, namespace = _locate(target, name, namespace)
        request = requests.patch(
            kind_of(shape),
            name,
            namespace,
            patch,
            type=type,
            subresource=subresource,
            force=force,
            **self._managed(options),
        )
        return await self._read(shape, request)

    async def update(
        self, obj: T, change: Callable[[T], None], *, subresource: str = "", field_manager: str = ""
    ) -> T:
        """Read the object, change it, and write only the difference; retry on a conflict.

        The difference is sent as a JSON patch with the resourceVersion, so fields that the class does not declare
        are kept and no write is lost. `change` may run several times. An unchanged object is not written.
        """
        cls, kind = type(obj), kind_of(obj)
        for attempt in range(1, UPDATE_ATTEMPTS + 1):
            raw = (await self.send(requests.get(kind, obj.metadata.name, obj.metadata.namespace))).raw
            before, after = decode(cls, raw), decode(cls, raw)
            if obj.metadata.uid and before.metadata.uid != obj.metadata.uid:
                raise InvalidRequest(
                    f"update {kind.resource} {obj.key}: it was deleted, and another of the same name is there now"
                )
            change(after)
            operations = typed_diff(before, after, parse(raw))
            if not operations:
                return after
            version = {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": before.metadata.resource_version,
            }
            request = requests.patch(
                kind,
                obj.metadata.name,
                obj.metadata.namespace,
                [version, *operations],
                type="json",
                subresource=subresource,
                field_manager=field_manager or self.field_manager,
            )
            try:
                return await self._read(cls, request)
            except Conflict as conflict:
                # After a lost response the conflict may be with our own write: `change` must not be applied twice.
                if attempt == UPDATE_ATTEMPTS or conflict.after_lost_response:
                    raise
        raise AssertionError("the loop above returns or raises")

    async def delete(
        self,
        target: type[Object] | Object | Kind,
        name: str = "",
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete an object by kind and name, or the given object (with its uid as precondition).

        The object may exist until its finalizers are removed and its grace period is over.
        """
        if isinstance(target, Object):
            uid = uid or target.metadata.uid
        shape, name, namespace = _locate(target, name, namespace)
        await self.raw(
            requests.delete(
                kind_of(shape),
                name,
                namespace,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
                dry_run=dry_run,
            )
        )

    async def delete_collection(
        self,
        kind: type[Object] | Kind,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        propagation: Propagation = "",
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete the objects of a kind in a namespace that the selectors match."""
        await self.raw(
            requests.delete_collection(
                kind_of(kind),
                namespace=namespace,
                labels=labels,
                fields=fields,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
                dry_run=dry_run,
            )
        )

    def _managed(self, options: WriteOptions) -> WriteOptions:
        return {**options, "field_manager": options.get("field_manager") or self.field_manager}

    async def _kind_for(self, obj: Object | JsonObject, kind: Kind | None) -> Kind:
        if kind is not None:
            return kind
        if isinstance(obj, Object):
            return kind_of(obj)
        api_version, name = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version, str) or not isinstance(name, str):
            raise InvalidRequest("an object given as a dictionary needs apiVersion and kind")
        return await self.resolve(GroupVersionKind.parse(api_version, name))


def _shape(obj: Object | JsonObject, kind: Kind) -> type[Object] | Kind:
    return type(obj) if isinstance(obj, Object) else kind


def _locate(
    target: type[Object] | Object | Kind, name: str, namespace: str
) -> tuple[type[Object] | Kind, str, str]:
    if isinstance(target, Object):
        key = target.key
        return (
            type(target),
            name or key.name,
            namespace or (key.namespace if kind_of(target).namespaced else ""),
        )
    return target, name, namespace
