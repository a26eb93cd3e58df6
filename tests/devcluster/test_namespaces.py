"""Default objects and deletion of namespaces."""

import secrets
from datetime import timedelta
from typing import Any

from devcluster_workloads import deployment, is_rolled_out, pod

from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.devcluster.namespaces import requeue_delay
from kubewright.testing import Cluster, eventually


async def test_a_namespace_is_given_a_service_account_and_the_root_certificate(cluster: Cluster) -> None:
    await cluster.eventually(core_v1.ServiceAccount, "default")
    certificate = await cluster.eventually(core_v1.ConfigMap, "kube-root-ca.crt")
    assert certificate.data["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert "kubernetes.io/description" in certificate.metadata.annotations


async def test_default_objects_are_restored(cluster: Cluster) -> None:
    await cluster.client.delete(core_v1.ServiceAccount, "default", cluster.namespace)
    await cluster.eventually(core_v1.ServiceAccount, "default")
    made = await cluster.eventually(core_v1.ConfigMap, "kube-root-ca.crt")
    await cluster.client.patch(made, {"data": {"ca.crt": "forged"}})
    await cluster.eventually(
        core_v1.ConfigMap, "kube-root-ca.crt", lambda found: found.data["ca.crt"] == made.data["ca.crt"]
    )


async def test_a_deleted_namespace_is_removed_with_its_content(cluster: Cluster, kubectl: Any) -> None:
    name = f"doomed-{secrets.token_hex(3)}"
    await cluster.client.create(core_v1.Namespace(Meta(name)))
    await cluster.client.create(core_v1.ConfigMap(Meta("note", namespace=name)))
    web = deployment("web", 2)
    web.metadata.namespace = name
    await cluster.client.create(web)
    await kubectl("-n", name, "rollout", "status", "deploy/web", "--timeout=120s")
    assert is_rolled_out(await cluster.client.get(apps_v1.Deployment, "web", name))
    await kubectl("delete", "namespace", name, "--timeout=120s")
    assert not await cluster.client.list(core_v1.Pod, namespace=name)


async def test_a_namespace_waits_for_a_finalizer_inside(cluster: Cluster) -> None:
    name = f"held-{secrets.token_hex(3)}"
    await cluster.client.create(core_v1.Namespace(Meta(name)))
    held = core_v1.ConfigMap(Meta("held", namespace=name, finalizers=["example.com/wait"]))
    made = await cluster.client.create(held)
    await cluster.client.delete(core_v1.Namespace, name)
    found = await cluster.eventually(
        core_v1.Namespace,
        name,
        lambda found: any(
            item.type == "NamespaceFinalizersRemaining" and item.status == "True"
            for item in found.status.conditions
        ),
    )
    messages = {item.type: item.message for item in found.status.conditions}
    assert "configmaps. has 1 resource instances" in messages["NamespaceContentRemaining"]
    await cluster.client.patch(made, {"metadata": {"finalizers": None}})
    await cluster.eventually_gone(core_v1.Namespace, name)


async def test_the_other_content_of_a_namespace_stays_while_pods_are_left(cluster: Cluster) -> None:
    name = f"held-{secrets.token_hex(3)}"
    await cluster.client.create(core_v1.Namespace(Meta(name)))
    await cluster.client.create(core_v1.ConfigMap(Meta("settings", namespace=name)))

    async def has_account() -> bool:
        return await cluster.client.find(core_v1.ServiceAccount, "default", name) is not None

    await eventually(has_account)
    held = pod("held")
    held.metadata.namespace, held.metadata.finalizers = name, ["example.com/wait"]
    made = await cluster.client.create(held)
    await cluster.client.delete(core_v1.Namespace, name)
    found = await cluster.eventually(core_v1.Namespace, name, lambda found: found.status.conditions)
    states = {item.type: (item.status, item.reason) for item in found.status.conditions}
    assert states["NamespaceContentRemaining"] == ("False", "ContentRemoved")
    assert (await cluster.client.get(core_v1.Pod, "held", name)).metadata.deletion_timestamp is not None
    kept = await cluster.client.get(core_v1.ConfigMap, "settings", name)
    assert kept.metadata.deletion_timestamp is None
    await cluster.client.patch(made, {"metadata": {"finalizers": None}})
    await cluster.eventually_gone(core_v1.Namespace, name, timeout=120)


def test_the_requeue_delay_grows_with_the_age_of_the_deletion() -> None:
    waits = [requeue_delay(timedelta(seconds=age)).total_seconds() for age in (0, 1, 8, 3600)]
    assert waits == [0.2, 0.25, 2, 15]
