"""PodDisruptionBudgets and ResourceQuotas, on the embedded and on the real control plane."""

from collections.abc import Callable

import pytest
from devcluster_workloads import deployment, is_rolled_out, pod, pods_of, selector, wait_for_events

from kubewright.api import Forbidden, Kind, Meta, Quantity
from kubewright.api.builtin import apps_v1, core_v1, policy_v1
from kubewright.testing import Cluster, eventually

DEVICE_CLAIM = Kind(group="resource.k8s.io", version="v1", kind="ResourceClaim", plural="resourceclaims")


def budget(name: str, **spec: int | str) -> policy_v1.PodDisruptionBudget:
    made = policy_v1.PodDisruptionBudget(
        Meta(name), spec=policy_v1.PodDisruptionBudgetSpec(selector=selector(name))
    )
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


async def test_a_budget_reports_the_allowed_disruptions(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 3))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.create(budget("web", min_available=2))
    found = await cluster.eventually(
        policy_v1.PodDisruptionBudget, "web", lambda item: item.status.current_healthy == 3
    )
    status = found.status
    assert (status.expected_pods, status.desired_healthy, status.disruptions_allowed) == (3, 2, 1)
    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )


async def test_an_evicted_pod_is_listed_as_disrupted_until_it_is_gone(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 3))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.create(budget("web", min_available=2))
    kind = policy_v1.PodDisruptionBudget
    await cluster.eventually(kind, "web", lambda item: item.status.disruptions_allowed == 1)
    evicted = (await pods_of(cluster, "web"))[0]
    await cluster.client.evict(evicted.metadata.name, cluster.namespace)
    await cluster.eventually_gone(core_v1.Pod, evicted.metadata.name)
    found = await cluster.eventually(
        kind, "web", lambda item: item.status.disruptions_allowed == 1 and not item.status.disrupted_pods
    )
    assert found.status.current_healthy == 3


async def test_an_evicted_pod_has_the_condition_disruption_target(cluster: Cluster) -> None:
    held = pod("held")
    held.metadata.finalizers = ["example.com/hold"]
    await cluster.create(held)
    await cluster.eventually(core_v1.Pod, "held", lambda found: found.status.phase == "Running")
    await cluster.client.evict("held", cluster.namespace)
    evicted = await cluster.eventually(
        core_v1.Pod, "held", lambda found: found.metadata.deletion_timestamp is not None
    )
    (condition,) = [item for item in evicted.status.conditions if item.type == "DisruptionTarget"]
    assert (condition.status, condition.reason) == ("True", "EvictionByEvictionAPI")
    assert condition.message == "Eviction API: evicting"
    assert condition.last_transition_time is not None
    await cluster.client.patch(evicted, {"metadata": {"finalizers": None}})


async def test_a_percentage_applies_to_the_desired_replicas(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 3))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.create(budget("web", max_unavailable="30%"))
    found = await cluster.eventually(
        policy_v1.PodDisruptionBudget, "web", lambda item: item.status.current_healthy == 3
    )
    assert (found.status.expected_pods, found.status.desired_healthy) == (3, 2)


async def test_unmanaged_pods_allow_no_disruptions(cluster: Cluster) -> None:
    await cluster.create(budget("web", max_unavailable=1))
    await wait_for_events(cluster, ("PodDisruptionBudget", "NoPods", "No matching pods found"))
    await cluster.create(pod("web"))
    found = await cluster.eventually(
        policy_v1.PodDisruptionBudget, "web", lambda item: item.status.current_healthy == 1
    )
    assert (found.status.expected_pods, found.status.disruptions_allowed) == (0, 0)
    shown = "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]"
    await wait_for_events(cluster, ("PodDisruptionBudget", "UnmanagedPods", shown))


async def test_a_quota_reports_the_usage(cluster: Cluster) -> None:
    await _quota(cluster, pods="5", requests_cpu="2", configmaps="10")
    small = pod("small")
    small.spec.containers[0].resources.requests = {"cpu": Quantity("500m")}
    await cluster.create(small)
    found = await cluster.eventually(
        core_v1.ResourceQuota, "all", lambda item: item.status.used.get("pods") == Quantity("1")
    )
    assert found.status.used["requests.cpu"] == Quantity("500m")
    assert found.status.used["configmaps"] >= Quantity("1")


async def test_a_quota_counts_the_devices_of_a_class(cluster: Cluster) -> None:
    await _quota(cluster, gpu_deviceclass_resource_k8s_io__devices="2")

    async def claim(name: str) -> None:
        exactly = {"deviceClassName": "gpu", "count": 2}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": cluster.namespace},
            "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
        }
        await cluster.client.create(body, kind=DEVICE_CLAIM)

    await claim("first")
    with pytest.raises(Forbidden, match="exceeded quota: all, requested: gpu"):
        await claim("second")
    await cluster.client.delete(DEVICE_CLAIM, "first", cluster.namespace)
    await cluster.eventually(
        core_v1.ResourceQuota,
        "all",
        lambda item: item.status.used["gpu.deviceclass.resource.k8s.io/devices"] == Quantity("0"),
    )


async def _quota(cluster: Cluster, **hard: str) -> None:
    """Create a quota and wait until the server enforces it."""
    limits = {name.replace("__", "/").replace("_", "."): Quantity(text) for name, text in hard.items()}
    limits["secrets"] = Quantity("0")
    await cluster.create(core_v1.ResourceQuota(Meta("all"), spec=core_v1.ResourceQuotaSpec(hard=limits)))
    await cluster.eventually(core_v1.ResourceQuota, "all", lambda item: item.status.hard == limits)

    async def counted() -> bool:
        try:
            await cluster.client.create(
                core_v1.Secret(Meta("one-too-many", namespace=cluster.namespace)), dry_run=True
            )
        except Forbidden:
            return True
        return False

    await eventually(counted)


async def test_a_replica_set_creates_no_more_pods_than_the_quota_allows(cluster: Cluster) -> None:
    await _quota(cluster, pods="2")
    await cluster.create(deployment("web", 4))
    await cluster.eventually(
        apps_v1.Deployment,
        "web",
        lambda item: (
            item.status.available_replicas >= 2
            and any(found.type == "ReplicaFailure" for found in item.status.conditions)
        ),
    )
    assert len(await pods_of(cluster, "web")) == 2
    quota = await cluster.client.get(core_v1.ResourceQuota, "all", cluster.namespace)
    assert quota.status.used == {"pods": Quantity("2"), "secrets": Quantity("0")}


async def test_a_deleted_object_releases_its_quota(cluster: Cluster) -> None:
    await _quota(cluster, count__deployments_apps="1")
    await cluster.create(deployment("web", 0))
    quota = await cluster.client.get(core_v1.ResourceQuota, "all", cluster.namespace)
    assert quota.status.used["count/deployments.apps"] == Quantity("1")
    await cluster.client.delete(apps_v1.Deployment, "web", cluster.namespace)
    await cluster.eventually(
        core_v1.ResourceQuota,
        "all",
        lambda item: item.status.used["count/deployments.apps"] == Quantity("0"),
    )


async def test_a_pod_that_changes_scope_is_counted_in_the_other_quota(cluster: Cluster) -> None:
    for name, scope in (("lasting", "NotTerminating"), ("limited", "Terminating")):
        spec = core_v1.ResourceQuotaSpec(hard={"pods": Quantity("5")}, scopes=[scope])
        await cluster.create(core_v1.ResourceQuota(Meta(name), spec=spec))
        await cluster.eventually(core_v1.ResourceQuota, name, lambda item: item.status.hard)

    def counts(number: int) -> Callable[[core_v1.ResourceQuota], bool]:
        return lambda item: item.status.used.get("pods") == Quantity(str(number))

    made = await cluster.create(pod("task", scheduler_name="none"))
    await cluster.eventually(core_v1.ResourceQuota, "lasting", counts(1))
    await cluster.eventually(core_v1.ResourceQuota, "limited", counts(0))
    await cluster.client.patch(made, {"spec": {"activeDeadlineSeconds": 3600}})
    await cluster.eventually(core_v1.ResourceQuota, "limited", counts(1))
    await cluster.eventually(core_v1.ResourceQuota, "lasting", counts(0))
