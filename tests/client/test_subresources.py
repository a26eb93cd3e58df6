"""Status, scale, eviction, tokens and logs, on a real API server or the embedded one (--server)."""

from datetime import UTC, datetime, timedelta

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import (
    AlreadyExists,
    Client,
    NotFound,
)

from .objects import config_map, deployment

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_status_is_written_through_its_subresource(client: Client, namespace: str) -> None:
    await client.create(deployment(namespace))
    live = await client.get(apps_v1.Deployment, "web", namespace)
    live.status.replicas = 1
    live.status.ready_replicas = 1
    written = await client.replace(live, subresource="status")
    assert written.status.ready_replicas == 1
    patched = await client.patch(live, {"status": {"readyReplicas": 0}}, subresource="status")
    assert patched.status.ready_replicas == 0
    wanted = apps_v1.Deployment(Meta("web", namespace=namespace), spec=live.spec)
    wanted.status.ready_replicas = 1
    applied = await client.apply(wanted, subresource="status", field_manager="kubelet")
    assert applied.status.ready_replicas == 1
    assert applied.spec.replicas == 1


async def test_scale_is_read_and_set(client: Client, namespace: str) -> None:
    await client.create(deployment(namespace))
    assert (await client.get_scale(apps_v1.Deployment, "web", namespace)).spec.replicas == 1
    scaled = await client.scale(apps_v1.Deployment, "web", namespace, replicas=0)
    assert scaled.spec.replicas == 0
    assert scaled.status.selector == "app=web"
    assert (await client.get(apps_v1.Deployment, "web", namespace)).spec.replicas == 0


async def test_a_kind_without_a_scale_subresource_is_an_error(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace))
    with pytest.raises(NotFound, match="the kind has no scale here, or its CRD is not installed"):
        await client.scale(core_v1.ConfigMap, "a", namespace, replicas=2)


async def test_a_pod_is_evicted(client: Client, namespace: str) -> None:
    try:
        await client.create(core_v1.ServiceAccount(Meta("default", namespace=namespace)))
    except AlreadyExists:
        pass  # a controller was quicker
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    await client.create(pod)
    await client.evict("web", namespace, dry_run=True)
    await client.evict("web", namespace, grace_period_seconds=0)
    with pytest.raises(NotFound):
        await client.get(core_v1.Pod, "web", namespace)


async def test_logs_of_an_unscheduled_pod_are_refused(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        async for _ in client.pod_logs("none", namespace, tail_lines=5):
            pass


async def test_a_token_is_created_for_a_service_account(client: Client, namespace: str) -> None:
    await client.create(core_v1.ServiceAccount(Meta("bot", namespace=namespace)))
    before = datetime.now(UTC)
    made = await client.token_request("bot", namespace, lifetime=timedelta(minutes=10))
    assert made.token.count(".") == 2
    assert made.token not in repr(made)
    # The server counts in whole seconds, by a clock of its own.
    leeway = timedelta(minutes=2)
    assert before + timedelta(minutes=10) - leeway < made.expires
    assert made.expires < datetime.now(UTC) + timedelta(minutes=10) + leeway
