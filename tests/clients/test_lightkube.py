"""lightkube works with the embedded cluster."""

import asyncio
from typing import Any

import pytest
from clients_peers import LENIENT, definition, peer

from kubewright.testing import Cluster, eventually

peer("lightkube")
pytestmark = LENIENT


def test_creates_applies_patches_and_deletes(cluster: Cluster) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    client = Client(
        config=KubeConfig.from_file(cluster.kubeconfig),
        namespace=cluster.namespace,
        field_manager="lightkube",
    )
    config = ConfigMap(metadata=ObjectMeta(name="settings", labels={"a": "b"}), data={"colour": "green"})
    made = client.create(config)
    assert made.metadata is not None
    assert made.metadata.uid
    config.data = {"colour": "blue"}
    config.apiVersion, config.kind = "v1", "ConfigMap"
    assert client.apply(config, force=True).data == {"colour": "blue"}
    patched = client.patch(ConfigMap, "settings", {"data": {"size": "large"}}, patch_type=PatchType.MERGE)
    assert patched.data == {"colour": "blue", "size": "large"}
    assert [item.metadata.name for item in client.list(ConfigMap, labels={"a": "b"})] == ["settings"]
    client.delete(ConfigMap, "settings")
    with pytest.raises(ApiError) as missing:
        client.get(ConfigMap, "settings")
    assert missing.value.status.reason == "NotFound"


def test_waits_for_a_deployment_and_watches(cluster: Cluster) -> None:
    from lightkube import Client, KubeConfig
    from lightkube.models.apps_v1 import DeploymentSpec
    from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
    from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
    from lightkube.resources.apps_v1 import Deployment

    client = Client(config=KubeConfig.from_file(cluster.kubeconfig), namespace=cluster.namespace)
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}),
        spec=PodSpec(containers=[Container(name="main", image="nginx")]),
    )
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(matchLabels={"app": "web"}), template=template)
    client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
    ready = client.wait(Deployment, "web", for_conditions=["Available"])
    assert ready.status is not None
    for event, item in client.watch(Deployment, fields={"metadata.name": "web"}):
        assert (event, item.metadata.name) == ("ADDED", "web")
        break


def test_works_with_declared_kinds(cluster: Cluster) -> None:
    from lightkube import Client, KubeConfig
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.models.apiextensions_v1 import CustomResourceDefinitionSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
    from lightkube.types import PatchType

    client = Client(config=KubeConfig.from_file(cluster.kubeconfig), namespace=cluster.namespace)
    group = f"{cluster.namespace}.example"
    wanted = definition(group)
    spec = CustomResourceDefinitionSpec.from_dict(wanted["spec"])
    client.create(CustomResourceDefinition(metadata=ObjectMeta(name=f"widgets.{group}"), spec=spec))
    client.wait(CustomResourceDefinition, f"widgets.{group}", for_conditions=["Established"])
    widget = create_namespaced_resource(group, "v1", "Widget", "widgets")
    asyncio.run(eventually(lambda: _served(client, widget)))
    client.create(widget(metadata=ObjectMeta(name="w"), spec={"size": 2}))
    client.patch(widget.Status, "w", {"status": {"size": 2}}, patch_type=PatchType.MERGE)
    found = client.get(widget, "w")
    assert (found.spec, found.status) == ({"mode": "slow", "size": 2}, {"size": 2})
    client.delete(CustomResourceDefinition, f"widgets.{group}")
    asyncio.run(
        eventually(
            lambda: (
                not [item for item in client.list(CustomResourceDefinition) if group in item.metadata.name]
            )
        )
    )


def _served(client: Any, kind: Any) -> bool:
    """Return True if a new kind is served, which is some time after it is Established."""
    from lightkube import ApiError

    try:
        list(client.list(kind))
    except ApiError:
        return False
    return True
