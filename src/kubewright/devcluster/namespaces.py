"""The namespace controller: default objects of each namespace, and the deletion of a terminating one's content."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kubewright.api import ApiError, Conflict, Kind, Meta, MethodNotAllowed, NotFound, Object, ObjectKey
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.controller import Context, Controller, Options, Result, Selector, needs, watch
from kubewright.devcluster import clock
from kubewright.devcluster.kinds import deletable_kinds

NAME = "namespace-controller"
ROOT_CA = "kube-root-ca.crt"
FINALIZER = "kubernetes"
DESCRIPTION = "kubernetes.io/description"
LOOK_AGAIN = timedelta(milliseconds=200)
LOOK_AGAIN_AT_MOST = timedelta(seconds=15)
_ABOUT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
    "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions "
    "of Kubernetes clusters."
)


@dataclass(slots=True)
class Remainder:
    """What is left in a terminating namespace: objects by resource, and objects by the finalizer they wait for."""

    instances: Counter[str] = field(default_factory=Counter[str])
    finalizers: Counter[str] = field(default_factory=Counter[str])


def conditions_of(left: Remainder) -> list[core_v1.NamespaceCondition]:
    """Return the conditions that report how far the deletion of the content has come."""
    remaining = ", ".join(
        # A kind of the core group has a group too, the empty one.
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


def look_again_after(age: timedelta) -> timedelta:
    """Return when to look again at what is left: less often the longer it has stayed."""
    return min(max(age / 4, LOOK_AGAIN), LOOK_AGAIN_AT_MOST)


class _NamespaceGone(Exception):
    """The namespace that the cache shows is gone from the server, or no longer waits for its content."""


class Namespaces:
    """Provide new namespaces with their default objects, and delete the content of terminating ones."""

    def __init__(self, client: Client, ca_pem: str) -> None:
        self._client = client
        self._ca = ca_pem
        self._held: dict[str, list[Kind]] = {}
        """By the uid of a terminating namespace: the kinds of which something was left the last time."""

    async def reconcile(self, namespace: core_v1.Namespace, ctx: Context) -> Result | None:
        """Create the default ServiceAccount and the root certificate, or delete everything if it is terminating."""
        name = namespace.metadata.name
        if namespace.metadata.deletion_timestamp is not None:
            return await self._empty(namespace, namespace.metadata.deletion_timestamp, ctx)
        try:
            await ctx.apply(core_v1.ServiceAccount(Meta("default", namespace=name)), owned=False)
            about = Meta(ROOT_CA, namespace=name, annotations={DESCRIPTION: _ABOUT_CA})
            await ctx.apply(core_v1.ConfigMap(about, data={"ca.crt": self._ca}), owned=False)
        except ApiError as error:
            if error.status.code in (403, 404):
                # The namespace is terminating: its next event brings it here again.
                return None
            raise
        return None

    async def _empty(self, namespace: core_v1.Namespace, since: datetime, ctx: Context) -> Result | None:
        if FINALIZER not in namespace.spec.finalizers:
            return None
        uid, left = namespace.metadata.uid, Remainder()
        try:
            await self._require_terminating(namespace)
            # Until what held the namespace is gone there is no need to look at everything else again.
            if held := await self._remove(self._held.get(uid, []), namespace, left):
                self._held[uid] = held
            else:
                self._held[uid] = await self._remove(await self._namespaced_kinds(), namespace, left)
            await ctx.patch_status(namespace, core_v1.NamespaceStatus(conditions=conditions_of(left)))
            if left.instances:
                return Result(after=look_again_after(clock.now() - since))
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
        kinds = [kind for kind in await deletable_kinds(self._client) if kind.namespaced]
        # Pods end last, so that the controllers of workloads do not replace them.
        return sorted(kinds, key=lambda kind: kind.plural == "pods" and not kind.group)

    async def _remove(
        self, kinds: Sequence[Kind], namespace: core_v1.Namespace, left: Remainder
    ) -> list[Kind]:
        """Delete the namespace's objects of these kinds, and return the kinds of which something is left."""
        for kind in kinds:
            await self._remove_all(kind, namespace, left)
        return [kind for kind in kinds if left.instances[kind.resource]]

    async def _remove_all(self, kind: Kind, namespace: core_v1.Namespace, left: Remainder) -> None:
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


def _home(obj: Object) -> list[ObjectKey]:
    return [ObjectKey("", obj.metadata.namespace)]


def controller(client: Client, ca_pem: str) -> Controller[core_v1.Namespace]:
    """Declare the namespace controller."""
    return Controller(
        core_v1.Namespace,
        Namespaces(client, ca_pem),
        name=NAME,
        watches=[
            watch(core_v1.ServiceAccount, map=_home, selector=Selector(fields="metadata.name=default")),
            watch(core_v1.ConfigMap, map=_home, selector=Selector(fields=f"metadata.name={ROOT_CA}")),
        ],
        needs=[needs(core_v1.ServiceAccount, "create", "patch"), needs(core_v1.ConfigMap, "create", "patch")],
        concurrency=4,
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
