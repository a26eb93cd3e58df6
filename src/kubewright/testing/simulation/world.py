"""The state of the simulated cluster as the API server stores it, updated with each write.

Reading it sends no request and has no side effects, so invariants can check it after every write.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubewright.api import JsonObject, Kind, Object, kind_of
from kubewright.devserver.storage import ObjectStore, StoreEvent
from kubewright.testing.simulation.network import WRITER
from kubewright.testing.simulation.trace import Trace

_IGNORED = frozenset(
    {
        "leases.coordination.k8s.io",
        "events",
        "events.events.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
"""Resources whose writes do not count as work: heartbeats, Events, and the registrations of webhooks."""


class HotLoop(AssertionError):
    """An operator keeps writing."""


class Write(msgspec.Struct, frozen=True):
    """One write of one object; `before` is None if it was created, `after` is None if it was deleted."""

    time: float
    writer: str
    resource: str
    key: str
    revision: int
    before: JsonObject | None
    after: JsonObject | None

    @property
    def verb(self) -> str:
        """Return create, update or delete."""
        return "created" if self.before is None else "deleted" if self.after is None else "changed"

    @property
    def object(self) -> JsonObject:
        """The object after the write, or before it if it was deleted."""
        found = self.after if self.after is not None else self.before
        assert found is not None
        return found

    def __str__(self) -> str:
        return f"{self.time:12.4f} s  {self.writer:<14} {self.verb} {self.resource} {self.key}"


@dataclass(eq=False)
class World:
    """All objects by resource and key; see the module."""

    store: ObjectStore
    trace: Trace
    now: Callable[[], float]
    operators: set[str] = field(default_factory=set[str])
    """Names of the replicas of operators."""
    invariants: list[Callable[["World", Write], None]] = field(
        default_factory=list[Callable[["World", Write], None]]
    )
    on_violation: Callable[[AssertionError], None] = lambda _: None
    writes_per_minute: int = 1000
    """Maximum number of writes of one replica in a minute; more are a hot loop, and the run fails."""
    last_work: float = 0.0
    """When an operator wrote last, apart from leases and events."""
    _minutes: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    _objects: dict[str, dict[str, JsonObject]] = field(default_factory=dict[str, dict[str, JsonObject]])
    _specs: dict[str, dict[int, Any]] = field(default_factory=dict[str, dict[int, Any]])
    _creators: dict[str, str] = field(default_factory=dict[str, str])
    writes: list[Write] = field(default_factory=list[Write])
    """All writes, in order."""

    def follow(self) -> None:
        """Read the current state and record all writes from now on."""
        self.reread()
        self.store.observers.append(self._observe)

    def reread(self) -> None:
        """Read the whole state again, as after a restored backup."""
        self._objects = {}
        for collection in self.store.collections():
            found = self._objects[collection.name] = {}
            for record in collection.records():
                found[record.key] = _decoder.decode(record.data)

    def objects(self, kind: type[Object] | Kind | str, namespace: str = "") -> list[JsonObject]:
        """Return the objects of a kind, or of a resource like `deployments.apps`, in the order of their names."""
        found = self._objects.get(resource_of(kind), {})
        return [
            found[key]
            for key in sorted(found)
            if namespace in ("", found[key]["metadata"].get("namespace", ""))
        ]

    def find(self, kind: type[Object] | Kind | str, name: str, namespace: str = "") -> JsonObject | None:
        """Return one object, or None."""
        return next(
            (item for item in self.objects(kind, namespace) if item["metadata"]["name"] == name), None
        )

    def everything(self) -> Iterator[tuple[str, str, JsonObject]]:
        """Yield the resource, the key and the content of each object."""
        for resource in sorted(self._objects):
            for key in sorted(self._objects[resource]):
                yield resource, key, self._objects[resource][key]

    def children(self, uid: str, kind: type[Object] | Kind | str | None = None) -> list[JsonObject]:
        """Return the objects that name an owner with this uid."""
        resources: Iterable[str] = sorted(self._objects) if kind is None else [resource_of(kind)]
        return [
            item
            for resource in resources
            for item in self._objects.get(resource, {}).values()
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or ())
        ]

    def spec_at(self, uid: str, generation: int) -> Any:
        """Return the spec that an object had at a generation; None if it never had that generation."""
        return self._specs.get(uid, {}).get(generation)

    def creator(self, uid: str) -> str:
        """Return the process that created an object; an empty string for what existed before the run."""
        return self._creators.get(uid, "")

    def work(self) -> list[Write]:
        """Return the writes of operators, apart from leases and events."""
        return [
            write
            for write in self.writes
            if write.writer in self.operators and write.resource not in _IGNORED
        ]

    def last_writes(self, count: int = 20) -> str:
        """Return the last writes of operators as text."""
        return "\n".join(str(write) for write in self.work()[-count:]) or "no operator wrote anything"

    def _observe(self, resource: str, event: StoreEvent) -> None:
        objects = self._objects.setdefault(resource, {})
        before = objects.get(event.key)
        after: JsonObject | None = None if event.new is None else _decoder.decode(event.new.data)
        if after is None:
            objects.pop(event.key, None)
        else:
            objects[event.key] = after
            metadata = after["metadata"]
            if "generation" in metadata and "spec" in after:
                self._specs.setdefault(metadata["uid"], {})[metadata["generation"]] = after["spec"]
        write = Write(self.now(), WRITER.get(), resource, event.key, event.revision, before, after)
        self.writes.append(write)
        if before is None and after is not None:
            self._creators[after["metadata"]["uid"]] = write.writer
        data = event.new.data if event.new is not None else b""
        self.trace.add(write.time, write.writer, "write", f"{write.verb} {resource} {event.key}", data)
        if write.writer in self.operators and resource not in _IGNORED:
            self.last_work = write.time
            self._count(write)
        for invariant in self.invariants:
            try:
                invariant(self, write)
            except AssertionError as error:
                error.add_note(f"after the write of {write.verb} {resource} {event.key} by {write.writer}")
                self.on_violation(error)

    def _count(self, write: Write) -> None:
        minute, count = self._minutes.get(write.writer, (-1, 0))
        now = int(write.time // 60)
        count = count + 1 if minute == now else 1
        self._minutes[write.writer] = now, count
        if count > self.writes_per_minute:
            self.on_violation(
                HotLoop(
                    f"{write.writer} made {count} writes within a minute: a hot loop\n{self.last_writes()}"
                )
            )


_decoder = msgspec.json.Decoder(dict[str, Any])


def resource_of(kind: type[Object] | Kind | str) -> str:
    """Return the name by which the objects of a kind are found, such as `deployments.apps`."""
    if isinstance(kind, str):
        return kind
    described = kind_of(kind)
    return f"{described.plural}.{described.group}" if described.group else described.plural
