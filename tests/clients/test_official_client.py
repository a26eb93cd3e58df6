"""The official `kubernetes` client works with the embedded cluster: typed, dynamic, watching, electing a leader."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from clients_peers import LENIENT, definition, peer

from kubewright.testing import Cluster, eventually

peer("kubernetes")
pytestmark = LENIENT


@pytest.fixture
def api_client(cluster: Cluster) -> Iterator[Any]:
    from kubernetes import client, config

    settings = client.Configuration()
    config.load_kube_config(str(cluster.kubeconfig), client_configuration=settings)
    with client.ApiClient(settings) as made:
        yield made


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod},
    }


def test_reads_and_writes_typed_objects(api_client: Any, cluster: Cluster) -> None:
    from kubernetes import client

    apps, core = client.AppsV1Api(api_client), client.CoreV1Api(api_client)
    made = apps.create_namespaced_deployment(cluster.namespace, deployment("web"))
    assert made.spec.strategy.type == "RollingUpdate"
    assert made.metadata.creation_timestamp.tzinfo is not None

    def available() -> bool:
        return apps.read_namespaced_deployment("web", cluster.namespace).status.available_replicas == 2

    asyncio.run(eventually(available))
    pods = core.list_namespaced_pod(cluster.namespace, label_selector="app=web").items
    assert {pod.status.phase for pod in pods} == {"Running"}
    scaled = apps.patch_namespaced_deployment_scale("web", cluster.namespace, {"spec": {"replicas": 1}})
    assert scaled.spec.replicas == 1
    with pytest.raises(client.ApiException) as refused:
        apps.create_namespaced_deployment(cluster.namespace, deployment("web"))
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    apps.delete_namespaced_deployment("web", cluster.namespace, propagation_policy="Foreground")
    asyncio.run(eventually(lambda: not apps.list_namespaced_deployment(cluster.namespace).items))


def test_evicts_reviews_and_asks_for_tokens(api_client: Any, cluster: Cluster) -> None:
    from kubernetes import client

    core = client.CoreV1Api(api_client)
    pod = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    core.create_namespaced_pod(cluster.namespace, pod)
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="one", namespace=cluster.namespace))
    core.create_namespaced_pod_eviction("one", cluster.namespace, eviction)
    spec = client.V1TokenRequestSpec(audiences=["here"], expiration_seconds=600)
    request = client.AuthenticationV1TokenRequest(spec=spec)
    token = core.create_namespaced_service_account_token("default", cluster.namespace, request).status.token
    review = client.AuthenticationV1Api(api_client).create_token_review(
        client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token, audiences=["here"]))
    )
    assert review.status.user.username == f"system:serviceaccount:{cluster.namespace}:default"
    attributes = client.V1ResourceAttributes(verb="list", resource="pods", namespace=cluster.namespace)
    access = client.AuthorizationV1Api(api_client).create_self_subject_access_review(
        client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
        )
    )
    assert access.status.allowed


def test_works_with_kinds_it_discovers(api_client: Any, cluster: Cluster) -> None:
    from kubernetes import dynamic

    found = dynamic.DynamicClient(api_client)
    crds = found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    group = f"{cluster.namespace}.example"
    crds.create(body=definition(group))
    asyncio.run(eventually(lambda: _established(crds.get(name=f"widgets.{group}"))))
    asyncio.run(eventually(lambda: _listed(found, group, cluster.namespace)))
    widgets = found.resources.get(api_version=f"{group}/v1", kind="Widget")
    body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    made = widgets.create(body=body, namespace=cluster.namespace)
    assert made.spec.mode == "slow"
    applied = widgets.server_side_apply(
        body={**body, "spec": {"size": 5}},
        namespace=cluster.namespace,
        field_manager="me",
        force_conflicts=True,
    )
    assert applied.spec.size == 5
    assert [item.metadata.name for item in widgets.get(namespace=cluster.namespace).items] == ["w"]
    widgets.status.patch(
        name="w",
        namespace=cluster.namespace,
        body={"status": {"size": 5}},
        content_type="application/merge-patch+json",
    )
    assert widgets.get(name="w", namespace=cluster.namespace).status.size == 5
    crds.delete(name=f"widgets.{group}")


def _listed(found: Any, group: str, namespace: str) -> bool:
    """Return True if a new kind is discovered and served; both happen some time after it is Established."""
    from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError

    try:
        found.resources.get(api_version=f"{group}/v1", kind="Widget").get(namespace=namespace)
    except (NotFoundError, ResourceNotFoundError):
        return False
    return True


def _established(crd: Any) -> bool:
    conditions = (crd.status or {}).get("conditions") or []
    return any(item.type == "Established" and item.status == "True" for item in conditions)


def test_watches_from_a_revision_on(api_client: Any, cluster: Cluster) -> None:
    from kubernetes import client, watch

    core = client.CoreV1Api(api_client)
    listed = core.list_namespaced_config_map(cluster.namespace)
    for name in ("a", "b"):
        core.create_namespaced_config_map(
            cluster.namespace, {"metadata": {"name": name, "labels": {"of": "watch"}}}
        )
    core.delete_namespaced_config_map("a", cluster.namespace)
    watching = watch.Watch()
    events = watching.stream(
        core.list_namespaced_config_map,
        cluster.namespace,
        label_selector="of=watch",  # the namespace's kube-root-ca.crt comes at a time of its own
        resource_version=listed.metadata.resource_version,
        timeout_seconds=60,
    )
    seen: list[tuple[str, str]] = []
    for event in events:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watching.stop()
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


def test_elects_a_leader(api_client: Any, cluster: Cluster) -> None:
    from kubernetes import client

    lease = {
        "metadata": {"name": "leader"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000001Z",
        },
    }
    leases = client.CoordinationV1Api(api_client)
    made = leases.create_namespaced_lease(cluster.namespace, lease)
    won: list[str] = []
    refused: list[int] = []

    def take(name: str) -> None:
        made.spec.holder_identity = name
        try:
            leases.replace_namespaced_lease("leader", cluster.namespace, made)
            won.append(name)
        except client.ApiException as error:
            refused.append(error.status)

    threads = [threading.Thread(target=take, args=(name,)) for name in ("b", "c", "d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert refused == [409, 409]
