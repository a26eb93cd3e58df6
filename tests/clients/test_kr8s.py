"""kr8s works with the embedded cluster."""

import asyncio

import pytest
from acceptance_waits import served
from clients_peers import LENIENT, definition, peer

from kubewright.api import Kind
from kubewright.testing import Cluster, eventually

peer("kr8s")
pytestmark = [
    *LENIENT,
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning"),
    pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"),
]


async def test_creates_waits_scales_and_deletes(cluster: Cluster) -> None:
    from kr8s.asyncio import api as connect
    from kr8s.asyncio.objects import Deployment, Pod

    api = await connect(kubeconfig=str(cluster.kubeconfig), namespace=cluster.namespace)
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }
    web = await Deployment(
        {
            "metadata": {"name": "web", "namespace": cluster.namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
        api=api,
    )
    await web.create()
    await web.wait("condition=Available", timeout=60)
    await web.scale(2)

    async def two_pods() -> list[Pod] | None:
        pods = [pod async for pod in Pod.list(api=api, label_selector="app=web")]
        return pods if len(pods) == 2 else None

    pods = await eventually(two_pods)
    assert {pod.raw["spec"]["nodeName"] for pod in pods if pod.raw["spec"].get("nodeName")} <= {"kubewright"}
    await web.label({"tier": "front"})
    assert web.labels["tier"] == "front"
    await web.delete(propagation_policy="Foreground")
    await web.wait("delete", timeout=60)


async def test_finds_custom_kinds_by_itself(cluster: Cluster) -> None:
    import kr8s
    from kr8s.asyncio import api as connect
    from kr8s.asyncio.objects import CustomResourceDefinition, object_from_spec

    api = await connect(kubeconfig=str(cluster.kubeconfig), namespace=cluster.namespace)
    group = f"{cluster.namespace}.example"
    crd = await CustomResourceDefinition(definition(group), api=api)
    await crd.create()
    async with asyncio.timeout(60):
        # kr8s takes conditions for a list, and a server that has not looked at the CRD yet says null.
        while crd.raw["status"]["conditions"] is None:
            await crd.refresh()
    await crd.wait("condition=Established", timeout=60)
    widgets = Kind(group=group, version="v1", kind="Widget", plural="widgets")
    await served(cluster.client, widgets, cluster.namespace)
    widget = await object_from_spec(
        {
            "apiVersion": f"{group}/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": cluster.namespace},
            "spec": {"size": 1},
        },
        api=api,
        allow_unknown_type=True,
    )
    await widget.create()
    await widget.patch({"status": {"size": 1}}, subresource="status")
    assert widget.raw["status"] == {"size": 1}
    with pytest.raises(kr8s.ServerError, match="should be greater than or equal to 0"):
        await widget.patch({"spec": {"size": -1}})
    await crd.delete()
