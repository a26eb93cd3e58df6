"""One write as admission sees it, the base class of admission plugins, and the chain that runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from kubewright.api import GroupVersionKind
from kubewright.api.identity import GroupVersionResource
from kubewright.devserver.objects import JsonObject, meta
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.identity import UserInfo

AdmissionOperation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class ReinvocationState(Struct):
    """What one mutating plugin remembers of the first pass, to decide which hooks or policies to reinvoke."""

    invoked: set[str] = msgspec.field(default_factory=set[str])
    """Called so far, with `reinvocationPolicy: IfNeeded`, and the object has not changed since."""
    due: set[str] = msgspec.field(default_factory=set[str])
    """To be reinvoked in the second pass."""
    output: JsonObject | None = None
    """The object after the last call of the first pass."""

    def object_changed(self) -> None:
        """Mark all hooks that were invoked so far as due: the object is not what they saw."""
        self.due |= self.invoked
        self.invoked = set[str]()


class ReinvocationContext(Struct):
    """Whether mutating admission runs a second time, as kube-apiserver does once after a webhook changed the object."""

    requested: bool = False
    is_reinvoke: bool = False
    policies: ReinvocationState = msgspec.field(default_factory=ReinvocationState)
    webhooks: ReinvocationState = msgspec.field(default_factory=ReinvocationState)


@dataclass(slots=True)
class AdmissionAttributes:
    """One write before it happens; mutating admission changes `object` in place."""

    context: RequestContext
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    operation: AdmissionOperation
    name: str
    namespace: str
    object: JsonObject | None
    old_object: JsonObject | None
    options: JsonObject | None
    """CreateOptions, UpdateOptions, PatchOptions or DeleteOptions; None for connections."""
    dry_run: bool = False
    reinvocation: ReinvocationContext = field(default_factory=ReinvocationContext)

    @property
    def user(self) -> UserInfo:
        """Return the user that sent the request."""
        return self.context.user

    def is_write_of(self, group: str, resource: str, *operations: AdmissionOperation) -> bool:
        """Return True if this is one of `operations` on an object of a resource, not on a subresource."""
        found, _, plural = self.resource
        return (found, plural, self.subresource) == (group, resource, "") and self.operation in operations

    def forbidden(self, why: str, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
        """Return the Forbidden error that rejects the write, with the object's name or generateName."""
        metadata = {} if self.object is None else meta(self.object)
        name = self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
        return StatusError.forbidden(self.resource.group, self.resource.resource, name, why, causes=causes)


class AdmissionPlugin:
    """Base class of admission plugins: by default every write passes unchanged."""

    resources: frozenset[tuple[str, str]] = frozenset()
    """The (group, resource) whose writes the plugin sees; empty for all."""

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Change the object in place (mutating admission), or raise a StatusError to reject the write."""

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise a StatusError to reject the write (validating admission)."""


class AdmissionChain(AdmissionPlugin):
    """Run plugins one after the other.

    Mutating admission runs a second time if a policy or webhook of the first pass requires reinvocation;
    validating admission sees the object only after all plugins have changed it.
    """

    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()) -> None:
        self._plugins = plugins
        self._by_resource: dict[tuple[str, str], _ResourcePlugins] = {}

    def _plugins_for(self, attributes: AdmissionAttributes) -> "_ResourcePlugins":
        group, _, plural = attributes.resource
        found = self._by_resource.get((group, plural))
        if found is None:
            seeing = [
                item for item in self._plugins if not item.resources or (group, plural) in item.resources
            ]
            found = self._by_resource[group, plural] = _ResourcePlugins.of(seeing)
        return found

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Run mutating admission, at most twice."""
        plugins = self._plugins_for(attributes).mutating
        for plugin in plugins:
            await plugin.admit(attributes)
        state = attributes.reinvocation
        if state.requested and not state.is_reinvoke:
            state.is_reinvoke = True
            for plugin in plugins:
                await plugin.admit(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Run validating admission."""
        for plugin in self._plugins_for(attributes).validating:
            await plugin.validate(attributes)


class _ResourcePlugins(NamedTuple):
    """The plugins that see the writes of one resource, by what they do: most only change or only check objects."""

    mutating: Sequence[AdmissionPlugin]
    validating: Sequence[AdmissionPlugin]

    @classmethod
    def of(cls, plugins: Sequence[AdmissionPlugin]) -> "_ResourcePlugins":
        return cls(
            [item for item in plugins if type(item).admit is not AdmissionPlugin.admit],
            [item for item in plugins if type(item).validate is not AdmissionPlugin.validate],
        )
