"""DaemonSets, on the embedded and on the real control plane."""

import json
from typing import Any

from devcluster_workloads import pods_of, selector, template

from kubewright.api import Meta, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.devcluster import NODE, SCENARIO_ANNOTATION, PodScenario
from kubewright.testing import Cluster, eventually


def daemon_set(name: str) -> apps_v1.DaemonSet:
    return apps_v1.DaemonSet(
        Meta(name), spec=apps_v1.DaemonSetSpec(selector=selector(name), template=template(name))
    )


def is_whole(found: apps_v1.DaemonSet) -> bool:
    status = found.status
    return (
        status.observed_generation == found.metadata.generation
        and status.desired_number_scheduled == status.number_available == status.updated_number_scheduled == 1
    )


async def test_each_node_runs_one_pod(cluster: Cluster, kubectl: Any) -> None:
    await cluster.create(daemon_set("agent"))
    done = await cluster.eventually(apps_v1.DaemonSet, "agent", is_whole)
    assert done.status.number_misscheduled == 0
    (pod,) = await pods_of(cluster, "agent")
    assert pod.spec.node_name == NODE
    assert pod.metadata.labels["pod-template-generation"] == "1"
    (revision,) = await cluster.client.list(apps_v1.ControllerRevision, namespace=cluster.namespace)
    assert revision.metadata.name == f"agent-{pod.metadata.labels['controller-revision-hash']}"
    assert revision.metadata.labels == {
        "app": "agent",
        "controller-revision-hash": pod.metadata.labels["controller-revision-hash"],
    }
    assert revision.metadata.annotations["deprecated.daemonset.template.generation"] == "1"
    assert any(item.key == "node.kubernetes.io/unschedulable" for item in pod.spec.tolerations)
    assert "successfully rolled out" in await kubectl(
        "rollout", "status", "daemonset/agent", "--timeout=120s"
    )
    await cluster.settled(core_v1.Pod, apps_v1.DaemonSet)


async def test_a_new_template_replaces_the_pods(cluster: Cluster) -> None:
    made = await cluster.create(daemon_set("agent"))
    await cluster.eventually(apps_v1.DaemonSet, "agent", is_whole)

    def newer(found: apps_v1.DaemonSet) -> None:
        found.spec.template.spec.containers[0].image = "nginx:1.26"

    await cluster.client.update(made, newer)
    await cluster.eventually(apps_v1.DaemonSet, "agent", is_whole)
    (pod,) = [item for item in await pods_of(cluster, "agent") if item.metadata.deletion_timestamp is None]
    assert pod.spec.containers[0].image == "nginx:1.26"


async def test_nodes_that_are_not_eligible_run_no_pod(cluster: Cluster) -> None:
    picky = daemon_set("agent")
    picky.spec.template.spec.node_selector = {"example.com/no-such": "node"}
    await cluster.create(picky)
    found = await cluster.eventually(
        apps_v1.DaemonSet, "agent", lambda item: item.status.observed_generation == item.metadata.generation
    )
    assert found.status.desired_number_scheduled == 0
    assert await pods_of(cluster, "agent") == []


async def test_old_pods_stay_until_new_ones_are_available_with_max_surge(cluster: Cluster) -> None:
    careful = daemon_set("agent")
    rolling = apps_v1.RollingUpdateDaemonSet(max_surge=1, max_unavailable=0)
    careful.spec.update_strategy = apps_v1.DaemonSetUpdateStrategy(
        type="RollingUpdate", rolling_update=rolling
    )
    made = await cluster.create(careful)
    await cluster.eventually(apps_v1.DaemonSet, "agent", is_whole)
    (old,) = await pods_of(cluster, "agent")
    broken = {"metadata": {"annotations": {SCENARIO_ANNOTATION: str(PodScenario.NEVER_READY)}}}
    await cluster.client.patch(made, {"spec": {"template": broken}})

    async def both_run() -> bool:
        return [pod.status.phase for pod in await pods_of(cluster, "agent")] == ["Running", "Running"]

    await eventually(both_run)
    await cluster.settled(core_v1.Pod, apps_v1.DaemonSet)
    assert (await cluster.get(core_v1.Pod, old.metadata.name)).metadata.deletion_timestamp is None
    healthy = {"metadata": {"annotations": {SCENARIO_ANNOTATION: None}}}
    await cluster.client.patch(made, {"spec": {"template": healthy}})
    await cluster.eventually(apps_v1.DaemonSet, "agent", is_whole)

    async def the_old_serves() -> bool:
        return [pod.metadata.name for pod in await pods_of(cluster, "agent")] == [old.metadata.name]

    # The template equals the first one, of which a Pod still exists.
    await eventually(the_old_serves)


async def test_a_revision_holds_the_template_as_the_server_stores_it_with_sorted_keys(
    cluster: Cluster,
) -> None:
    await cluster.create(daemon_set("agent"))

    async def revisions() -> list[Any]:
        found = await cluster.client.list(kind_of(apps_v1.ControllerRevision), namespace=cluster.namespace)
        return [item for item in found if item["metadata"]["labels"].get("app") == "agent"]

    await eventually(revisions)
    (revision,) = await revisions()
    owner = await cluster.client.get(kind_of(apps_v1.DaemonSet), "agent", cluster.namespace)
    template = owner["spec"]["template"]
    assert revision["data"] == {"spec": {"template": {"$patch": "replace", **template}}}
    assert template["spec"]["containers"][0]["resources"] == {}
    assert json.dumps(revision["data"]) == json.dumps(revision["data"], sort_keys=True)
