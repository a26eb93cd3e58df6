"""The objects of a cluster: every kind that can be listed and watched and that the user may read.

Kinds are watched in order of importance, a few at a time until each has been listed once: CRDs first, since they define
the sensitive fields of custom kinds, then workloads, then the rest. A custom kind whose schema cannot be read is not
shown, because its sensitive fields are unknown. New kinds are discovered when a CRD changes, and every 30 seconds.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    ApiError,
    ConnectionFailed,
    JsonObject,
    Kind,
    KubewrightError,
)
from kubewright.cache import Applied, Deleted, Failed, Restarted, Resumed, Selection, Synced, watch_forever
from kubewright.cache.watcher import Event
from kubewright.client import ApiResource, Client
from kubewright.client.requests import get_path
from kubewright.journal import sensitive_schema_paths
from kubewright.metrics import Registry
from kubewright.ui.state import PageState, parse_object

MAX_KINDS = 200
"""Maximum number of kinds that are watched: each watch is a connection."""
DISCOVERY_SECONDS = 30.0
_AT_ONCE = 8
_START_TIMEOUT = 10.0

EVENTS = Kind(group="", version="v1", kind="Event", plural="events", builtin=True)
# Leases change every few seconds and are of no interest here; Endpoints repeat EndpointSlices; Events are shown with objects.
_SKIPPED = frozenset(
    {("", "events"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases"), ("", "endpoints")}
)
_FIRST_GROUPS = ("apiextensions.k8s.io", "", "apps", "batch", "networking.k8s.io")
_BUILT_IN_GROUPS = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "policy", "admissionregistration.k8s.io"),
        *("apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"),
        *("certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io"),
        *("rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
        *("storagemigration.k8s.io", "metrics.k8s.io"),
    }
)
_YIELD_AFTER = 50
"""Number of objects after which other tasks may run: a page of a list has hundreds."""


def choose_resources(resources: Iterable[ApiResource]) -> list[ApiResource]:
    """Return one version of each kind that can be watched, the most important kinds first."""
    found: dict[tuple[str, str], ApiResource] = {}
    for resource in resources:
        name = (resource.kind.group, resource.kind.plural)
        if {"list", "watch"} <= set(resource.verbs) and name not in _SKIPPED:
            found.setdefault(name, resource)
    return sorted(found.values(), key=_importance)


def _importance(resource: ApiResource) -> tuple[int, str]:
    group = resource.kind.group
    if group in _FIRST_GROUPS:
        return _FIRST_GROUPS.index(group), resource.kind.plural
    # Custom kinds come before the remaining built-in kinds, which mostly administrators use.
    return (len(_FIRST_GROUPS) + (not is_custom(resource.kind))), resource.kind.resource


def is_custom(kind: Kind) -> bool:
    """Return True if a kind may be defined by a CRD."""
    return kind.group not in _BUILT_IN_GROUPS


class ClusterSource:
    """Watch the objects of a cluster, and report them to the page."""

    def __init__(self, client: Client, state: PageState) -> None:
        self._client = client
        self._state = state
        self._metrics = Registry()
        self._watched: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._failures: dict[str, Failed] = {}
        self._refused: dict[str, str] = {}
        self._too_many: list[str] = []
        self._discovery_error = ""
        self._definitions_changed = asyncio.Event()
        self._schemas: set[tuple[str, str]] = set()
        """Kinds whose sensitive fields have been declared to the page's state."""

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(ApiResource(EVENTS), asyncio.Event()))
            while True:
                self._definitions_changed.clear()
                try:
                    resources = choose_resources(await self._client.api_resources())
                    self._discovery_error = ""
                except KubewrightError as error:
                    self._discovery_error = f"the cluster cannot be read: {error}"
                else:
                    await self._follow(group, resources)
                self._report()
                try:
                    async with asyncio.timeout(DISCOVERY_SECONDS if not self._discovery_error else 2.0):
                        await self._definitions_changed.wait()
                    # CRDs are often installed several at a time, and the server needs a moment to serve them.
                    await asyncio.sleep(0.3)
                except TimeoutError:
                    pass

    async def _follow(self, group: asyncio.TaskGroup, resources: Sequence[ApiResource]) -> None:
        served = {_name(resource.kind): resource for resource in resources[:MAX_KINDS]}
        self._too_many = [resource.kind.resource for resource in resources[MAX_KINDS:]]
        for name in [name for name in self._watched if name not in served]:
            self._watched.pop(name).cancel()
        new = [(name, resource) for name, resource in served.items() if name not in self._watched]
        definitions = [each for each in new if each[1].kind.gvk == CUSTOM_RESOURCE_DEFINITION.gvk]
        others = [each for each in new if each not in definitions]
        for start in (definitions, *(others[n : n + _AT_ONCE] for n in range(0, len(others), _AT_ONCE))):
            begun = list[asyncio.Event]()
            for name, resource in start:
                if is_custom(resource.kind) and not await self._know_schema(resource.kind):
                    continue
                if "scale" in resource.subresources:
                    self._state.set_scalable(resource.kind)
                started = asyncio.Event()
                begun.append(started)
                self._watched[name] = group.create_task(self._watch(resource, started))
            try:
                async with asyncio.timeout(_START_TIMEOUT):
                    for started in begun:
                        await started.wait()
            except TimeoutError:
                pass  # a slow kind does not hold up the others
            self._report()

    async def _watch(self, resource: ApiResource, started: asyncio.Event) -> None:
        kind = resource.kind
        present = _PresentObjects(self._remover(kind))
        events = watch_forever(self._client, Selection(kind), metrics=self._metrics)
        try:
            async with aclosing(events):
                async for arrived in events:
                    for number, event in enumerate(arrived, 1):
                        self._handle(kind, event, present)
                        if isinstance(event, Synced | Failed):
                            started.set()
                        if number % _YIELD_AFTER == 0:
                            await asyncio.sleep(0)
        finally:
            # The kind is no longer served, or the page ends.
            present.clear()
            self._failures.pop(kind.resource, None)

    def _handle(self, kind: Kind, event: Event, present: "_PresentObjects") -> None:
        match event:
            case Restarted():
                present.begin_list()
            case Applied(found):
                document = parse_object(found.raw)
                if kind is EVENTS:
                    self._state.put_event(document)
                else:
                    self._learn(kind, document)
                    # Objects of the first list may have existed before the page was opened.
                    created = found.meta.creation_timestamp if not present.complete else None
                    self._state.put(kind, document, None if created is None else created.timestamp())
                present.add(found.meta.uid)
            case Deleted(found):
                present.remove(found.meta.uid)
                if kind.gvk == CUSTOM_RESOURCE_DEFINITION.gvk:
                    self._definitions_changed.set()
            case Synced():
                present.end_list()
                self._recovered(kind)
            case Resumed():
                self._recovered(kind)
            case Failed():
                self._failed(kind, event)
            case _:
                pass

    def _remover(self, kind: Kind) -> Callable[[str], None]:
        return self._state.remove_event if kind is EVENTS else self._state.remove

    def _learn(self, kind: Kind, document: JsonObject) -> None:
        """If the object is a CRD, declare the sensitive fields of its kind and trigger a discovery."""
        if kind.gvk != CUSTOM_RESOURCE_DEFINITION.gvk:
            return
        spec = _object(document.get("spec"))
        group, name = spec.get("group"), _object(spec.get("names")).get("kind")
        if isinstance(group, str) and isinstance(name, str):
            versions = cast("list[Any]", spec.get("versions") or [])
            paths = [
                path
                for version in versions
                for path in sensitive_schema_paths(
                    _object(_object(version).get("schema")).get("openAPIV3Schema")
                )
            ]
            self._state.declare_sensitive(group, name, paths)
            self._schemas.add((group, name))
        self._definitions_changed.set()

    async def _know_schema(self, kind: Kind) -> bool:
        """Return True if the sensitive fields of a custom kind are declared; read the OpenAPI schema if they are not."""
        about = (kind.group, kind.kind)
        if about in self._schemas:
            return True
        path = f"/openapi/v3{kind.path}"
        try:
            response = await self._client.raw(get_path(path))
            schemas = _object(_object(msgspec.json.decode(response.body).get("components")).get("schemas"))
        except (ApiError, ConnectionFailed, msgspec.DecodeError, AttributeError) as error:
            self._refused[kind.resource] = f"its schema cannot be read ({error})"
            return False
        identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        for schema in schemas.values():
            found = _object(schema)
            if identity in (found.get("x-kubernetes-group-version-kind") or ()):
                self._state.declare_sensitive(kind.group, kind.kind, sensitive_schema_paths(found))
                self._schemas.add(about)
                self._refused.pop(kind.resource, None)
                return True
        self._refused[kind.resource] = "its schema is not published"
        return False

    def _failed(self, kind: Kind, failed: Failed) -> None:
        if not failed.ordinary:
            self._failures[kind.resource] = failed
            self._report()

    def _recovered(self, kind: Kind) -> None:
        if self._failures.pop(kind.resource, None) is not None:
            self._report()

    def _report(self) -> None:
        """Report which kinds are not shown or out of date, in few lines: an unreachable cluster fails for every kind."""
        problems = [self._discovery_error] if self._discovery_error else []
        refused = sorted(name for name, failed in self._failures.items() if failed.refused)
        if refused:
            first = self._failures[refused[0]].error
            problems.append(
                f"not shown, because you may not list or watch them: {', '.join(refused)} ({first})"
            )
        failing = sorted(name for name, failed in self._failures.items() if not failed.refused)
        if failing:
            first = self._failures[failing[0]].error
            problems.append(f"out of date: {_shortened(failing)} cannot be read now: {first}")
        problems += [f"{name} is not shown: {reason}" for name, reason in sorted(self._refused.items())]
        if self._too_many:
            problems.append(
                f"{len(self._too_many)} kinds are not shown, because the page watches at most {MAX_KINDS}: "
                f"{_shortened(self._too_many)}"
            )
        self._state.set_problems("cluster", problems)


class _PresentObjects:
    """The uids of one kind's objects. Objects that are missing in a new list were deleted while the watch was down."""

    def __init__(self, remove: Callable[[str], None]) -> None:
        self._remove = remove
        self._present: set[str] = set()
        self._listed: set[str] | None = None
        self.complete: bool = False
        """True once a whole list has been read."""

    def begin_list(self) -> None:
        self._listed = set()

    def add(self, uid: str) -> None:
        self._present.add(uid)
        if self._listed is not None:
            self._listed.add(uid)

    def remove(self, uid: str) -> None:
        self._present.discard(uid)
        if self._listed is not None:
            self._listed.discard(uid)
        self._remove(uid)

    def end_list(self) -> None:
        if self._listed is None:
            return
        for uid in self._present - self._listed:
            self._remove(uid)
        self._present, self._listed, self.complete = self._listed, None, True

    def clear(self) -> None:
        for uid in self._present:
            self._remove(uid)
        self._present = set()


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _name(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.plural


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}
