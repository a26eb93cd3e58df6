"""Store the objects of a CRD in its storage version, and remove the other versions from `status.storedVersions`.

The API server encodes an object in the storage version when it writes it, and not before. So each object gets an empty
patch: the API server writes an object that is stored in another version, and does nothing for the others.

Invariants:

- `status.storedVersions` is reduced only after each object that existed at the start was written or deleted, and only
  if the CRD has not changed: if its storage version changed meanwhile, objects may be stored in that version.
- The progress is stored in an annotation of the CRD. It is valid only for the same CRD with the same spec.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    ApiError,
    Conflict,
    Expired,
    JsonObject,
    Kind,
    KubewrightError,
    NotFound,
    PartialMeta,
)
from kubewright.cli.progress import Progress
from kubewright.client import Client

PROGRESS_ANNOTATION = "kubewright.dev/storage-migration"
FIELD_MANAGER = "kubewright-migrate"
_PAGE = 500
_AT_ONCE = 16
_ATTEMPTS = 5
_SHOWN_FAILURES = 5


class MigrationError(KubewrightError):
    """Objects of a CRD could not be migrated."""


class MigrationProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress of a migration: all objects up to the key `after`, in the server's order, are done."""

    uid: str
    generation: int
    after: str


def storage_version(definition: JsonObject) -> str:
    """Return the version in which the API server stores objects of a CRD."""
    return next(version["name"] for version in definition["spec"]["versions"] if version["storage"])


def older_versions(definition: JsonObject) -> list[str]:
    """Return the other versions in which objects may be stored."""
    status: JsonObject = definition.get("status") or {}
    current = storage_version(definition)
    return [version for version in status.get("storedVersions") or () if version != current]


def kind_of_definition(definition: JsonObject) -> Kind:
    """Return the kind that a CRD defines, in its storage version."""
    spec = definition["spec"]
    return Kind(
        group=spec["group"],
        version=storage_version(definition),
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )


async def migrate_storage(client: Client, name: str, progress: Progress) -> None:
    """Migrate the objects of one CRD; raise MigrationError with the objects that failed."""
    definition = await client.find(CUSTOM_RESOURCE_DEFINITION, name)
    if definition is None:
        raise MigrationError(
            f"CustomResourceDefinition {name} is not installed: check the name, or install it first"
        )
    version, others = storage_version(definition), older_versions(definition)
    if not others:
        progress.done(f"{name}: all objects are stored in {version}")
        return
    if not next(each["served"] for each in definition["spec"]["versions"] if each["storage"]):
        raise MigrationError(
            f"{name}: objects cannot be written, because storage version {version} is not served: set served: true for it, "
            "then run the command again"
        )
    count = await _Migration(client, definition, progress).run()
    await _clean(client, definition)
    progress.done(
        f"{name}: {count} objects are stored in {version}; removed from storedVersions: {', '.join(others)}"
    )


class _Migration:
    """Write all objects of a CRD, and store the progress in the CRD."""

    def __init__(self, client: Client, definition: JsonObject, progress: Progress) -> None:
        self._client = client
        self._definition = definition
        self._name: str = definition["metadata"]["name"]
        self._kind = kind_of_definition(definition)
        self._progress = progress
        self._failures: list[str] = []
        self._failed = 0
        self._done = 0

    async def run(self) -> int:
        """Write the objects; return their number, including those of an interrupted migration."""
        done_before = _earlier_progress(self._definition)
        with self._progress.waiting(f"migrating {self._kind.plural}") as update:
            async for page in self._pages():
                keys = [_key(meta) for meta in page]
                await self._write([meta for meta, key in zip(page, keys, strict=True) if key > done_before])
                self._done += len(page)
                update(f"migrating {self._kind.plural}: {self._done} objects")
                if not self._failed and keys and keys[-1] > done_before:
                    await self._note(keys[-1])
        if self._failed:
            raise MigrationError(
                f"{self._name}: {self._failed} of {self._done} objects could not be written, so storedVersions is not "
                f"changed; fix them and run the command again:\n"
                + "\n".join(f"  {each}" for each in self._failures)
            )
        return self._done

    async def _pages(self) -> AsyncIterator[Sequence[PartialMeta]]:
        """Yield the objects in the order of the server's keys, each once.

        A continue token is valid for some minutes. When it has expired, the list starts again and skips what was yielded.
        """
        last = ""
        while True:
            try:
                async for page in self._client.list_raw(self._kind, limit=_PAGE, metadata_only=True):
                    metas = [item.meta for item in page.items if _key(item.meta) > last]
                    keys = [last, *map(_key, metas)]
                    if keys != sorted(keys):
                        raise MigrationError(
                            f"{self._name}: the API server does not list objects in the order of their keys, which "
                            "`kubewright migrate` relies on"
                        )
                    if metas:
                        last = keys[-1]
                        yield metas
                return
            except Expired:
                continue

    async def _write(self, metas: Sequence[PartialMeta]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def write(meta: PartialMeta) -> None:
            async with limit:
                try:
                    await self._touch(meta)
                except ApiError as error:
                    self._failed += 1
                    if len(self._failures) < _SHOWN_FAILURES:
                        self._failures.append(str(error))

        async with asyncio.TaskGroup() as group:
            for meta in metas:
                group.create_task(write(meta))

    async def _touch(self, meta: PartialMeta) -> None:
        """Send an empty patch; an object that no longer exists needs no migration."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._client.patch(
                    self._kind, {}, name=meta.name, namespace=meta.namespace, field_manager=FIELD_MANAGER
                )
                return
            except NotFound as missing:
                if missing.kind_missing:
                    raise
                return
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise

    async def _note(self, key: str) -> None:
        metadata = self._definition["metadata"]
        reached = MigrationProgress(uid=metadata["uid"], generation=metadata["generation"], after=key)
        text = msgspec.json.encode(reached).decode()
        await _annotate(self._client, self._name, text)


async def _clean(client: Client, migrated: JsonObject) -> None:
    """Reduce storedVersions to the storage version; raise MigrationError if the CRD has changed since the start."""
    name = migrated["metadata"]["name"]
    for attempt in range(1, _ATTEMPTS + 1):
        live = await client.get(CUSTOM_RESOURCE_DEFINITION, name)
        if _identity(live) != _identity(migrated):
            raise MigrationError(
                f"{name}: the CRD was changed during the migration, so objects may be stored in another version: run the "
                "command again"
            )
        patch: JsonObject = {
            "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
            "status": {"storedVersions": [storage_version(live)]},
        }
        try:
            await client.patch(
                CUSTOM_RESOURCE_DEFINITION,
                patch,
                name=name,
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
            break
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
    await _annotate(client, name, None)


async def _annotate(client: Client, name: str, value: str | None) -> None:
    patch: JsonObject = {"metadata": {"annotations": {PROGRESS_ANNOTATION: value}}}
    await client.patch(CUSTOM_RESOURCE_DEFINITION, patch, name=name, field_manager=FIELD_MANAGER)


def _earlier_progress(definition: JsonObject) -> str:
    """Return the last migrated key of an interrupted migration to this storage version; empty if there was none."""
    metadata: JsonObject = definition["metadata"]
    annotations: JsonObject = metadata.get("annotations") or {}
    try:
        reached = msgspec.json.decode(annotations.get(PROGRESS_ANNOTATION, ""), type=MigrationProgress)
    except msgspec.DecodeError:
        return ""
    same = (reached.uid, reached.generation) == _identity(definition)
    return reached.after if same else ""


def _identity(definition: JsonObject) -> tuple[str, int]:
    """Return the uid and generation, which change if the CRD is created again or its spec changes."""
    return definition["metadata"]["uid"], definition["metadata"]["generation"]


def _key(meta: PartialMeta) -> str:
    """Return the object's part of the storage key, by which the server sorts lists."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
