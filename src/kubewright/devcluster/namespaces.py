"""Namespaces: what every one is given, and the removal of what is in one that goes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kubewright.api import ApiError, Kind, Meta, MethodNotAllowed, NotFound, Object, ObjectKey
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.controller import Context, Controller, Result, Scope, Tuning, needs, watch
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
    """What is still in a namespace that goes: how many of each resource, and how many wait for which finalizer."""

    instances: Counter[str] = field(default_factory=Counter[str])
    finalizers: Counter[str] = field(default_factory=Counter[str])


def conditions_of(left: Remainder) -> list[core_v1.NamespaceCondition]:
    """Tell how far the removal has come."""
    remaining = ", ".join(
        # A kind of the core group has a group too, the empty one.
        f"{name if '.' in name else f'{name}.'} has {count} resource instances"
        for name, count in sorted(left.instances.items())
    )
    held = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(left.finalizers.items())
    )
    told = {
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
        told["NamespaceContentRemaining"] = (
            "SomeResourcesRemain",
            f"Some resources are remaining: {remaining}",
        )
    if held:
        told["NamespaceFinalizersRemaining"] = (
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {held}",
        )
    return [
        core_v1.NamespaceCondition(
            type=name, status="True" if reason.startswith("Some") else "False", reason=reason, message=message
        )
        for name, (reason, message) in told.items()
    ]


def look_again_after(age: timedelta) -> timedelta:
    """Say when to look again at what is left: the longer it has stayed, the longer it will."""
    return min(max(age / 4, LOOK_AGAIN), LOOK_AGAIN_AT_MOST)


class Namespaces:
    """Furnish new namespaces and empty those that are being deleted."""

    def __init__(self, client: Client, ca_pem: str) -> None:
        self._client = client
        self._ca = ca_pem
        self._held: dict[str, list[Kind]] = {}
        """By the uid of a namespace that goes: the kinds of which something was left the last time."""

    async def reconcile(self, namespace: core_v1.Namespace, ctx: Context) -> Result | None:
        """Make the default ServiceAccount and the root certificate, or take everything away."""
        name = namespace.metadata.name
        if namespace.metadata.deletion_timestamp is not None:
            return await self._empty(namespace, namespace.metadata.deletion_timestamp, ctx)
        try:
            await ctx.apply(core_v1.ServiceAccount(Meta("default", namespace=name)), owned=False)
            about = Meta(ROOT_CA, namespace=name, annotations={DESCRIPTION: _ABOUT_CA})
            await ctx.apply(core_v1.ConfigMap(about, data={"ca.crt": self._ca}), owned=False)
        except ApiError as error:
            if error.status.code in (403, 404):
                # The namespace is on its way out, which the next change tells.
                return None
            raise
        return None

    async def _empty(self, namespace: core_v1.Namespace, since: datetime, ctx: Context) -> Result | None:
        if FINALIZER not in namespace.spec.finalizers:
            return None
        name, uid = namespace.metadata.name, namespace.metadata.uid
        left = Remainder()
        # Until what held the namespace is gone there is no need to look at everything else again.
        if held := await self._remove(self._held.get(uid, []), name, left):
            self._held[uid] = held
        else:
            self._held[uid] = await self._remove(await self._namespaced_kinds(), name, left)
        await ctx.patch_status(namespace, core_v1.NamespaceStatus(conditions=conditions_of(left)))
        if left.instances:
            return Result(after=look_again_after(clock.now() - since))
        del self._held[uid]
        try:
            live = await self._client.get(core_v1.Namespace, name)
            live.spec.finalizers = [text for text in live.spec.finalizers if text != FINALIZER]
            await self._client.replace(live, subresource="finalize")
        except NotFound:
            return None
        return None

    async def _namespaced_kinds(self) -> list[Kind]:
        kinds = [kind for kind in await deletable_kinds(self._client) if kind.namespaced]
        # Pods end last, so that what watches over them does not put new ones in their place.
        return sorted(kinds, key=lambda kind: kind.plural == "pods" and not kind.group)

    async def _remove(self, kinds: Sequence[Kind], namespace: str, left: Remainder) -> list[Kind]:
        """Delete what can be deleted; gives the kinds of which something is left."""
        for kind in kinds:
            await self._remove_all(kind, namespace, left)
        return [kind for kind in kinds if left.instances[kind.resource]]

    async def _remove_all(self, kind: Kind, namespace: str, left: Remainder) -> None:
        """Delete what can be deleted of a kind; notes what is still there."""
        try:
            if not await self._client.list(kind, namespace=namespace):
                return
            await self._client.delete_collection(kind, namespace=namespace, propagation="Background")
            for obj in await self._client.list(kind, namespace=namespace):
                left.instances[kind.resource] += 1
                left.finalizers.update(obj["metadata"].get("finalizers", ()))
        except (NotFound, MethodNotAllowed):
            return


def _home(obj: Object) -> list[ObjectKey]:
    return [ObjectKey("", obj.metadata.namespace)]


def controller(client: Client, ca_pem: str) -> Controller[core_v1.Namespace]:
    """Declare the namespace controller."""
    return Controller(
        core_v1.Namespace,
        Namespaces(client, ca_pem),
        name=NAME,
        watches=[
            watch(core_v1.ServiceAccount, map=_home, scope=Scope(fields="metadata.name=default")),
            watch(core_v1.ConfigMap, map=_home, scope=Scope(fields=f"metadata.name={ROOT_CA}")),
        ],
        needs=[needs(core_v1.ServiceAccount, "create", "patch"), needs(core_v1.ConfigMap, "create", "patch")],
        concurrency=4,
        tuning=Tuning(reporter=NAME, terminating=True),
    )
