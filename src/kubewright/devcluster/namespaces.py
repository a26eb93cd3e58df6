"""Namespaces: what every one is given, and the removal of what is in one that goes."""

from datetime import timedelta

from kubewright.api import ApiError, Kind, Meta, NotFound, Object, ObjectKey
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.controller import Context, Controller, Result, Scope, Tuning, needs, watch
from kubewright.devcluster.kinds import deletable_kinds

NAME = "namespace-controller"
ROOT_CA = "kube-root-ca.crt"
FINALIZER = "kubernetes"
DESCRIPTION = "kubernetes.io/description"
LOOK_AGAIN = timedelta(milliseconds=200)
_ABOUT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
    "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions "
    "of Kubernetes clusters."
)


class Namespaces:
    """Furnish new namespaces and empty those that are being deleted."""

    def __init__(self, client: Client, ca_pem: str) -> None:
        self._client = client
        self._ca = ca_pem

    async def reconcile(self, namespace: core_v1.Namespace, ctx: Context) -> Result | None:
        """Make the default ServiceAccount and the root certificate, or take everything away."""
        name = namespace.metadata.name
        if namespace.metadata.deletion_timestamp is not None:
            return await self._empty(namespace)
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

    async def _empty(self, namespace: core_v1.Namespace) -> Result | None:
        if FINALIZER not in namespace.spec.finalizers:
            return None
        name = namespace.metadata.name
        kinds = [kind for kind in await deletable_kinds(self._client) if kind.namespaced]
        left = 0
        # Pods end last, so that what watches over them does not put new ones in their place.
        for kind in sorted(kinds, key=lambda kind: kind.plural == "pods" and not kind.group):
            left += await self._remove_all(kind, name)
        if left:
            return Result(after=LOOK_AGAIN)
        try:
            live = await self._client.get(core_v1.Namespace, name)
            live.spec.finalizers = [text for text in live.spec.finalizers if text != FINALIZER]
            await self._client.replace(live, subresource="finalize")
        except NotFound:
            return None
        return None

    async def _remove_all(self, kind: Kind, namespace: str) -> int:
        """Delete what can be deleted of a kind; gives how many are still there."""
        try:
            if not await self._client.list(kind, namespace=namespace):
                return 0
            await self._client.delete_collection(kind, namespace=namespace, propagation="Background")
            return len(await self._client.list(kind, namespace=namespace))
        except NotFound:
            return 0


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
