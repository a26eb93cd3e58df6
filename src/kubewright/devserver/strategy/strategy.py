"""`Strategy`: what the server does for one kind beyond what it does for every kind, as data and functions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from kubewright.api import FieldError, GroupVersionKind, names
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import UserInfo
from kubewright.devserver.request.options import WriteParameters
from kubewright.devserver.strategy.access import Access
from kubewright.http.server import Request, ServerResponse

DefaultPropagation = Literal["Background", "Orphan", "Unsupported"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a Table."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def wire(self) -> JsonObject:
        """Build the column definition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(slots=True)
class EndpointRequest:
    """A request that a kind handles itself: a special subresource, or a kind that is never stored."""

    context: RequestContext
    api: Access
    clock: Clock
    gvk: GroupVersionKind
    body: JsonObject | None
    """The decoded body with defaults; None without one."""
    options: WriteParameters
    run_validating_admission: Callable[[JsonObject], Awaitable[None]]
    """Raise if admission rejects the complete object; connections were admitted before the endpoint is called."""
    authorize_create: Callable[[], None]
    """Raise Forbidden unless the user may create this subresource.

    A WebSocket starts with GET, which RBAC takes for a read; opening a connection takes the permission to create, too.
    """

    @property
    def request(self) -> Request:
        """Return the HTTP request."""
        return self.context.request

    @property
    def namespace(self) -> str:
        """Return the namespace in the path."""
        return self.context.info.namespace

    @property
    def name(self) -> str:
        """Return the name in the path."""
        return self.context.info.name

    @property
    def subresource(self) -> str:
        """Return the subresource in the path."""
        return self.context.info.subresource

    @property
    def user(self) -> UserInfo:
        """Return the user of the request."""
        return self.context.user


@dataclass(frozen=True, slots=True)
class EndpointResult:
    """An object to respond with and its HTTP status."""

    object: JsonObject
    status: int = 200


SubresourceEndpoint = Callable[[EndpointRequest], Awaitable[EndpointResult | ServerResponse]]


@dataclass(frozen=True, slots=True)
class ScaleAccess:
    """Where a kind keeps what its scale subresource shows."""

    read: Callable[[JsonObject], tuple[int, int, str]]
    """Return (desired replicas, present replicas, label selector text)."""
    write: Callable[[JsonObject, int], None]
    """Set the desired replicas."""
    path: tuple[str, ...] = ("spec", "replicas")
    """The fields that lead to the desired replicas."""


def _nothing(obj: JsonObject) -> None:
    pass


def _nothing_on_update(new: JsonObject, old: JsonObject) -> None:
    pass


def _fine(obj: JsonObject) -> list[FieldError]:
    return []


def _fine_on_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return []


def _no_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    return []


def only_status(new: JsonObject, old: JsonObject) -> None:
    """Take nothing but the status, and the metadata that tracks its owners, from a status write."""
    kept = {name: value for name, value in old.items() if name != "status"}
    kept["metadata"] = dict(old["metadata"])
    for name in ("managedFields", "resourceVersion"):
        value = new["metadata"].get(name)
        if value:
            kept["metadata"][name] = value
        else:
            kept["metadata"].pop(name, None)
    status = new.get("status")
    new.clear()
    new.update(kept)
    if status is not None:
        new["status"] = status


@dataclass(frozen=True, slots=True)
class PartialSubresource:
    """A subresource that is read and written like the status: the object's own kind, of which only a part counts."""

    prepare: Callable[[JsonObject, JsonObject], None] = _nothing_on_update
    """Keep (new, old) all that is not written through this part."""
    validate: Callable[[JsonObject, JsonObject], list[FieldError]] = _fine_on_update
    counts: bool = True
    """Changes add to the generation, as those of the object do."""


def _never_graceful(obj: JsonObject, requested: int | None) -> int | None:
    return None


def _same(obj: JsonObject, target: GroupVersionKind) -> JsonObject:
    return {**obj, "apiVersion": target.api_version, "kind": target.kind}


def _finished(obj: JsonObject) -> bool:
    return True


class Allocation(Protocol):
    """Allocate what must be unique in the cluster for an object, in place."""

    def __call__(
        self, api: Access, new: JsonObject, old: JsonObject | None, *, dry_run: bool
    ) -> Awaitable[None]:
        """Allocate for (new, old); `old` is None for a create."""
        ...


class MetaChecks(msgspec.Struct, frozen=True):
    """How kube-apiserver checks the metadata of an update for a kind, after the checks for all kinds."""

    whole: bool = False
    """As if the object were new."""
    changes: bool = True
    """For what changed."""
    qualified: bool = True
    """Finalizers must be qualified by a domain, or be standard ones."""
    status: bool = True
    """A write of the status checks what changed, too."""
    created: bool = True
    """The metadata of a new object is checked with its other fields, and not only if those are valid."""


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind differs from a plain one."""

    default: Callable[[JsonObject], None] = _nothing
    """Fill in defaults, in place; runs on every decoded object."""
    sign: Callable[[JsonObject, UserInfo], None] | None = None
    """Record the user that creates the object, just before `prepare_create`."""
    prepare_create: Callable[[JsonObject], None] = _nothing
    """Set what clients may not set, before validation of a new object."""
    prepare_update: Callable[[JsonObject, JsonObject], None] = _nothing_on_update
    """Keep (new, old) what clients may not change; the server restores the status where it is a subresource."""
    prepare_status_update: Callable[[JsonObject, JsonObject], None] = only_status
    restore_stored: Callable[[JsonObject, JsonObject, str], None] | None = None
    """Keep (new, old, subresource) in the storage version what another version does not show in full."""
    date: Callable[[JsonObject, JsonObject, str], None] | None = None
    """Write into (new, old), through a subresource, when what changed, where its author does not; given is the time."""
    validate: Callable[[JsonObject], list[FieldError]] = _fine
    validate_update: Callable[[JsonObject, JsonObject], list[FieldError]] = _fine_on_update
    """Check (new, old); the server does not run `validate` on updates."""
    validate_status_update: Callable[[JsonObject, JsonObject], list[FieldError]] = _fine_on_update
    warnings: Callable[[JsonObject, JsonObject | None], list[str]] = _no_warnings
    """Return warnings about (new, old) for the client."""
    status_warnings: Callable[[JsonObject, JsonObject | None], list[str]] = _no_warnings
    """Return warnings about (new, old) for a client that writes the status."""
    name_check: Callable[[str], list[str]] = names.dns1123_subdomain
    generates_names: bool = True
    """Without it, `generateName` is taken as the name."""
    has_generation: bool = False
    """Start at 1 and count changes of the spec."""
    generation_sees_dropped_fields: bool = False
    """A field that is dropped because its feature gate is off increments the generation, though it is not stored."""
    generation_sees_annotations: bool = False
    is_defaulted_when_read: bool = False
    """A new object is stored without some defaults, such as a status; they are filled in when it is read."""
    status_on_create: bool = False
    """Take the status of a new object from the client, as nodes do."""
    allow_unconditional_update: bool = True
    allow_create_on_update: bool = False
    grace_period: Callable[[JsonObject, int | None], int | None] = _never_graceful
    """Return the grace period of a deletion that requested so many seconds, or None to delete at once."""
    default_propagation: DefaultPropagation = "Background"
    orphan_warning: str = ""
    """The warning for clients that set no propagation policy."""
    returns_deleted: bool = False
    """Respond to a deletion with the object instead of a Status."""
    begin_delete: Callable[[JsonObject], None] | None = None
    """Mark an object whose deletion waits for `deletable`, as a namespace does."""
    deletable: Callable[[JsonObject], bool] = _finished
    """Return True if an object that is being deleted and has no finalizers may go."""
    selectable_fields: Mapping[str, Callable[[JsonObject], str]] = msgspec.field(
        default_factory=dict[str, Callable[[JsonObject], str]]
    )
    """Field selectors beyond metadata.name and metadata.namespace."""
    indexed_field: str = ""
    """The selectable field by which kube-apiserver's cache finds objects."""
    optional_keys: bool = False
    """Elements of lists may lack their keys, which validation does not report; an apply fails then."""
    unselectable: str = "field label not supported: {}"
    """How the kind, if it has such selectors, refuses others."""
    meta_checks: MetaChecks = MetaChecks()
    """How the kind checks metadata, after the checks for all kinds."""
    repeats_errors: bool = False
    """Report an error as often as it is found; kinds whose Go types declare validation report it once."""
    columns: Sequence[TableColumn] = ()
    row: Callable[[JsonObject, float], list[Any]] | None = None
    """Return an object's cells at a time (seconds since the epoch)."""
    default_in_list: Callable[[Sequence[JsonObject]], str] | None = None
    """Return the name of the object that the Table of a list marks as the default, or an empty text."""
    reset_fields: Mapping[str, frozenset[tuple[str, ...]]] = msgspec.field(
        default_factory=dict[str, frozenset[tuple[str, ...]]]
    )
    """By subresource ("" the object itself): paths that writers through it never own."""
    scale: ScaleAccess | None = None
    parts: Mapping[str, PartialSubresource] = msgspec.field(default_factory=dict[str, PartialSubresource])
    """Subresources like the status, by name; `endpoints` win over them."""
    endpoints: Mapping[str, SubresourceEndpoint] = msgspec.field(
        default_factory=dict[str, SubresourceEndpoint]
    )
    """Subresources that the kind handles itself; under "" the kind itself, when it is never stored."""
    convert: Callable[[JsonObject, GroupVersionKind], JsonObject] = _same
    """Rewrite an object in another version of its kind."""
    deprecation: str = ""
    """The warning in every response of the kind."""
    stored_as: tuple[str, str] | None = None
    """The (group, resource) whose storage this kind shares."""
    storage_version: str = ""
    """The version in which objects are stored, when the kind has several."""
    before_commit: Allocation | None = None
    """Allocate what must be unique, such as cluster IPs and ports, before validation."""
