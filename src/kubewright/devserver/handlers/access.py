"""The server's own reads and writes, through the write path that clients use."""

from collections.abc import Callable, Iterator

from kubewright.api import parse_labels
from kubewright.devserver.core import Core
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.handlers.pipeline import run_create, run_delete, run_update
from kubewright.devserver.objects import JsonObject, copy, decode, meta
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import SYSTEM, UserInfo
from kubewright.devserver.request.options import WriteParameters, read_delete_options


class StoreAccess:
    """Read from the store and write through the pipeline as a given user, without authorization."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def _resource(self, group: str, resource: str) -> ServedResource:
        found = self._core.registry.stored(group, resource)
        if found is None:
            raise StatusError.no_such_path()
        return found

    def find(self, group: str, resource: str, namespace: str, name: str) -> JsonObject | None:
        """Return an object, or None if it does not exist."""
        target = self._core.registry.stored(group, resource)
        record = target.collection.get(target.key(namespace, name)) if target is not None else None
        return None if target is None or record is None else target.read(record)

    def get(self, group: str, resource: str, namespace: str, name: str) -> JsonObject:
        """Return an object, or raise the API's NotFound."""
        found = self.find(group, resource, namespace, name)
        if found is None:
            raise StatusError.not_found(group, resource, name)
        return found

    def list(self, group: str, resource: str, namespace: str = "", labels: str = "") -> list[JsonObject]:
        """Read all objects of a resource, in all namespaces by default."""
        return list(self._matching(group, resource, namespace, labels))

    def _matching(self, group: str, resource: str, namespace: str, labels: str) -> Iterator[JsonObject]:
        target = self._core.registry.stored(group, resource)
        if target is None:
            return
        selector = parse_labels(labels) if labels else None
        prefix = f"{namespace}/" if namespace and target.namespaced else ""
        for record in target.collection.records(prefix):
            if selector is None or selector.matches(record.labels):
                yield target.read(record)

    def _write(
        self,
        target: ServedResource,
        namespace: str,
        name: str,
        user: UserInfo,
        *,
        dry_run: bool,
        subresource: str = "",
    ) -> ObjectWrite:
        options = WriteParameters(dry_run=dry_run, field_validation="Ignore")
        context = RequestContext.loopback(user)
        return ObjectWrite(self._core, context, target, namespace, name, options, subresource)

    async def create(
        self, group: str, resource: str, obj: JsonObject, *, user: UserInfo = SYSTEM, dry_run: bool = False
    ) -> JsonObject:
        """Create an object."""
        target = self._resource(group, resource)
        new, _ = target.codec.decode({"kind": target.kind, "apiVersion": target.api_version, **copy(obj)})
        target.codec.default(new)
        namespace = meta(new).get("namespace", "")
        write = self._write(target, namespace, meta(new).get("name", ""), user, dry_run=dry_run)
        return decode(await run_create(write, new))

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
        """Change an object; `change` may be called again after a race."""
        target = self._resource(group, resource)
        write = self._write(target, namespace, name, user, dry_run=dry_run, subresource=subresource)
        write.admitted = admitted

        def managed(old: JsonObject | None) -> JsonObject:
            if old is None:
                raise write.not_found()
            draft = copy(old)
            response = change(draft)
            new, _ = target.codec.decode(draft if response is None else response, old)
            target.codec.default(new)
            # What kube-apiserver writes to its storage as part of another request has no field manager.
            return new if admitted else write.manage_fields(old, new)

        body, _ = await run_update(write, managed)
        return decode(body)

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
        """Delete an object; return the response of the API."""
        target = self._resource(group, resource)
        parsed = read_delete_options(options or {})
        write = self._write(target, namespace, name, user, dry_run=parsed.dry_run)
        write.admitted = admitted
        return decode((await run_delete(write, parsed)).body)
