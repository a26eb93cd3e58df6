"""Budgets and quotas, on either control plane."""

from devcluster_workloads import deployment, is_rolled_out, pod, pods_of, selector, until, until_told

from kubewright.api import Forbidden, Meta, Quantity
from kubewright.api.builtin import apps_v1, core_v1, policy_v1
from kubewright.testing.cluster import Cluster


def budget(name: str, **spec: int | str) -> policy_v1.PodDisruptionBudget:
    made = policy_v1.PodDisruptionBudget(
        Meta(name), spec=policy_v1.PodDisruptionBudgetSpec(selector=selector(name))
    )
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


async def test_a_budget_says_how_many_pods_may_go(cluster: Cluster) -> None:
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


async def test_an_eviction_is_noted_until_the_pod_has_gone(cluster: Cluster) -> None:
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


async def test_a_share_is_one_of_what_is_wanted(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 3))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.create(budget("web", max_unavailable="30%"))
    found = await cluster.eventually(
        policy_v1.PodDisruptionBudget, "web", lambda item: item.status.current_healthy == 3
    )
    assert (found.status.expected_pods, found.status.desired_healthy) == (3, 2)


async def test_pods_that_nobody_counts_let_nothing_go(cluster: Cluster) -> None:
    await cluster.create(budget("web", max_unavailable=1))
    await until_told(cluster, ("PodDisruptionBudget", "NoPods", "No matching pods found"))
    await cluster.create(pod("web"))
    found = await cluster.eventually(
        policy_v1.PodDisruptionBudget, "web", lambda item: item.status.current_healthy == 1
    )
    assert (found.status.expected_pods, found.status.disruptions_allowed) == (0, 0)
    shown = "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]"
    await until_told(cluster, ("PodDisruptionBudget", "UnmanagedPods", shown))


async def test_a_quota_says_what_is_used(cluster: Cluster) -> None:
    await _quota(cluster, pods="5", requests_cpu="2", configmaps="10")
    small = pod("small")
    small.spec.containers[0].resources.requests = {"cpu": Quantity("500m")}
    await cluster.create(small)
    found = await cluster.eventually(
        core_v1.ResourceQuota, "all", lambda item: item.status.used.get("pods") == Quantity("1")
    )
    assert found.status.used["requests.cpu"] == Quantity("500m")
    assert found.status.used["configmaps"] >= Quantity("1")


async def _quota(cluster: Cluster, **hard: str) -> None:
    """Limit the namespace, and wait until the server counts: it learns what is stored in its own time."""
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

    await until(counted)


async def test_a_replica_set_gets_no_more_pods_than_the_quota_leaves(cluster: Cluster) -> None:
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


async def test_what_a_deleted_object_used_is_free_again(cluster: Cluster) -> None:
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
