"""The namespace controller: default objects of each namespace, and the deletion of a terminating one's content."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar

from kubewright.api import (
    ApiError,
    Conflict,
    Forbidden,
    Kind,
    Meta,
    MethodNotAllowed,
    NotFound,
    Object,
    ObjectKey,
    kind_of,
)
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.controller import Context, Controller, Options, Result, Selector, needs, watch
from kubewright.devcluster import clock
from kubewright.devcluster.garbage import deletable_kinds
from kubewright.devcluster.statuses import FIELD_MANAGER

T = TypeVar("T", bound=Object)
TERMINATING_CAUSE = "NamespaceTerminating"
NAME = "namespace-controller"
ROOT_CA = "kube-root-ca.crt"
FINALIZER = "kubernetes"
DESCRIPTION = "kubernetes.io/description"
MIN_REQUEUE_DELAY = timedelta(milliseconds=200)
MAX_REQUEUE_DELAY = timedelta(seconds=15)
_CA_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
    "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions "
    "of Kubernetes clusters."
)


def is_namespace_terminating(error: Exception) -> bool:
    """Return True if a write failed because its namespace is terminating or gone."""
    if isinstance(error, Forbidden):
        return any(cause.reason == TERMINATING_CAUSE for cause in error.status.details.causes)
    return isinstance(error, NotFound) and error.status.message.startswith("namespaces ")


def ignore_terminating_namespace(
    reconcile: Callable[[T, Context], Awaitable[Result | None]],
) -> Callable[[T, Context], Awaitable[Result | None]]:
    """Decorate a reconciler so that writes into a terminating namespace are not errors."""

    @wraps(reconcile)
    async def wrapper(subject: T, ctx: Context) -> Result | None:
        try:
            return await reconcile(subject, ctx)
        except (Forbidden, NotFound) as error:
            if is_namespace_terminating(error):
                return None
            raise

    return wrapper


@dataclass(slots=True)
class RemainingContent:
    """The objects left in a terminating namespace, counted by resource and by finalizer."""

    instances: Counter[str] = field(default_factory=Counter[str])
    finalizers: Counter[str] = field(default_factory=Counter[str])


def conditions_of(left: RemainingContent) -> list[core_v1.NamespaceCondition]:
    """Return the conditions that report the progress of the deletion."""
    remaining = ", ".join(
        # Resources of the core group are written with a trailing dot.
        f"{name if '.' in name else f'{name}.'} has {count} resource instances"
        for name, count in sorted(left.instances.items())
    )
    held = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(left.finalizers.items())
    )
    reported = {
        "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
        "NamespaceFinalizersRemaining": (
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    }
    if remaining:
        reported["NamespaceContentRemaining"] = (
            "SomeResourcesRemain",
            f"Some resources are remaining: {remaining}",
        )
    if held:
        reported["NamespaceFinalizersRemaining"] = (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {held}",
        )
    return [
        core_v1.NamespaceCondition(
            type=name, status="True" if reason.startswith("Some") else "False", reason=reason, message=message
        )
        for name, (reason, message) in reported.items()
    ]


def requeue_delay(age: timedelta) -> timedelta:
    """Return the delay until the next attempt, which grows with the time since the deletion."""
    return min(max(age / 4, MIN_REQUEUE_DELAY), MAX_REQUEUE_DELAY)


class _NamespaceGone(Exception):
    """The namespace is gone from the server, or no longer has the kubernetes finalizer."""


class Namespaces:
    """Create the default objects of namespaces, and delete the content of terminating ones."""

    def __init__(self, client: Client, ca_pem: str) -> None:
        self._client = client
        self._ca = ca_pem
        self._held: dict[str, list[Kind]] = {}
        """Kinds that had remaining objects in the last attempt, by the uid of the namespace."""

    async def reconcile(self, namespace: core_v1.Namespace, ctx: Context) -> Result | None:
        """Create the default ServiceAccount and the root certificate, or delete everything if it is terminating."""
        name = namespace.metadata.name
        if namespace.metadata.deletion_timestamp is not None:
            return await self._delete_content(namespace, namespace.metadata.deletion_timestamp, ctx)
        try:
            await ctx.apply(core_v1.ServiceAccount(Meta("default", namespace=name)), owned=False)
            metadata = Meta(ROOT_CA, namespace=name, annotations={DESCRIPTION: _CA_DESCRIPTION})
            await ctx.apply(core_v1.ConfigMap(metadata, data={"ca.crt": self._ca}), owned=False)
        except ApiError as error:
            if error.status.code in (403, 404):
                # The namespace is terminating: its next event enqueues it again.
                return None
            raise
        return None

    async def _delete_content(
        self, namespace: core_v1.Namespace, since: datetime, ctx: Context
    ) -> Result | None:
        if FINALIZER not in namespace.spec.finalizers:
            return None
        uid, left = namespace.metadata.uid, RemainingContent()
        try:
            await self._require_terminating(namespace)
            if await self._remove([kind_of(core_v1.Pod)], namespace, left):
                # As long as Pods are left, nothing else is deleted: they may need it to stop. The conditions do
                # not mention them.
                conditions = conditions_of(RemainingContent())
                await ctx.patch_status(namespace, core_v1.NamespaceStatus(conditions=conditions))
                return Result(after=requeue_delay(clock.now() - since))
            # First retry only the kinds that had remaining objects; check all kinds once those are gone.
            if held := await self._remove(self._held.get(uid, []), namespace, left):
                self._held[uid] = held
            else:
                self._held[uid] = await self._remove(await self._namespaced_kinds(), namespace, left)
            await ctx.patch_status(namespace, core_v1.NamespaceStatus(conditions=conditions_of(left)))
            if left.instances:
                return Result(after=requeue_delay(clock.now() - since))
            live = await self._require_terminating(namespace)
            live.spec.finalizers = [text for text in live.spec.finalizers if text != FINALIZER]
            await self._client.replace(live, subresource="finalize")
        except _NamespaceGone:
            pass
        self._held.pop(uid, None)
        return None

    async def _require_terminating(self, namespace: core_v1.Namespace) -> core_v1.Namespace:
        """Read the namespace from the server; raise _NamespaceGone if this very one is no longer terminating there.

        The cache may still show a namespace that is gone while another of the same name, with live objects, exists.
        """
        try:
            live = await self._client.get(core_v1.Namespace, namespace.metadata.name)
        except NotFound:
            raise _NamespaceGone from None
        if live.metadata.uid != namespace.metadata.uid or FINALIZER not in live.spec.finalizers:
            raise _NamespaceGone
        return live

    async def _namespaced_kinds(self) -> list[Kind]:
        return [kind for kind in await deletable_kinds(self._client) if kind.namespaced]

    async def _remove(
        self, kinds: Sequence[Kind], namespace: core_v1.Namespace, left: RemainingContent
    ) -> list[Kind]:
        """Delete the namespace's objects of these kinds, and return the kinds of which something is left."""
        for kind in kinds:
            await self._remove_all(kind, namespace, left)
        return [kind for kind in kinds if left.instances[kind.resource]]

    async def _remove_all(self, kind: Kind, namespace: core_v1.Namespace, left: RemainingContent) -> None:
        """Delete the namespace's objects of a kind, and count in `left` what is still there.

        Each object is deleted by its uid, and only after this very namespace was seen terminating later than the
        list: then what the list showed cannot belong to another namespace of the same name.
        """
        name = namespace.metadata.name
        try:
            found = await self._client.list(kind, namespace=name)
            if not found:
                return
            await self._require_terminating(namespace)
            for obj in found:
                await self._delete(kind, obj["metadata"])
            for obj in await self._client.list(kind, namespace=name):
                left.instances[kind.resource] += 1
                left.finalizers.update(obj["metadata"].get("finalizers", ()))
        except (NotFound, MethodNotAllowed):
            return

    async def _delete(self, kind: Kind, metadata: Mapping[str, Any]) -> None:
        try:
            await self._client.delete(
                kind,
                metadata["name"],
                metadata["namespace"],
                uid=metadata["uid"],
                propagation="Background",
            )
        except NotFound:
            return
        except Conflict as conflict:
            if not conflict.replaced:
                raise


def _namespace_key(obj: Object) -> list[ObjectKey]:
    return [ObjectKey("", obj.metadata.namespace)]


def controller(client: Client, ca_pem: str) -> Controller[core_v1.Namespace]:
    """Declare the namespace controller."""
    return Controller(
        core_v1.Namespace,
        Namespaces(client, ca_pem),
        name=NAME,
        watches=[
            watch(
                core_v1.ServiceAccount, map=_namespace_key, selector=Selector(fields="metadata.name=default")
            ),
            watch(
                core_v1.ConfigMap, map=_namespace_key, selector=Selector(fields=f"metadata.name={ROOT_CA}")
            ),
        ],
        needs=[needs(core_v1.ServiceAccount, "create", "patch"), needs(core_v1.ConfigMap, "create", "patch")],
        concurrency=4,
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER, reconcile_terminating=True),
    )
