"""Deployments through kubectl and the API, on the embedded and on the real control plane."""

from typing import Any

from devcluster_workloads import (
    REVISION,
    deployment,
    is_rolled_out,
    pod,
    pods_of,
    selector,
    sets_of,
    wait_for_events,
)

from kubewright.api import Meta, Object
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.devcluster.deployments import REVISION_HISTORY
from kubewright.testing import Cluster, eventually


def condition(found: apps_v1.Deployment, name: str) -> apps_v1.DeploymentCondition:
    return next(item for item in found.status.conditions if item.type == name)


async def test_a_deployment_becomes_available(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 3))
    done = await cluster.eventually(
        apps_v1.Deployment,
        "web",
        lambda found: (
            is_rolled_out(found) and condition(found, "Progressing").reason == "NewReplicaSetAvailable"
        ),
    )
    (owned,) = await sets_of(cluster, "web")
    assert condition(done, "Available").reason == "MinimumReplicasAvailable"
    progressing = condition(done, "Progressing")
    assert progressing.message == f'ReplicaSet "{owned.metadata.name}" has successfully progressed.'
    assert done.metadata.annotations[REVISION] == "1"
    text = owned.metadata.labels["pod-template-hash"]
    assert owned.metadata.name == f"web-{text}"
    assert owned.spec.selector.match_labels == {"app": "web", "pod-template-hash": text}
    assert owned.metadata.annotations["deployment.kubernetes.io/desired-replicas"] == "3"
    assert owned.metadata.annotations["deployment.kubernetes.io/max-replicas"] == "4"
    (owner,) = owned.metadata.owner_references
    assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == (
        "Deployment",
        "web",
        True,
        True,
    )
    for found in await pods_of(cluster, "web"):
        assert found.metadata.name.startswith(f"{owned.metadata.name}-")
        assert found.metadata.labels["pod-template-hash"] == text
        assert found.metadata.generate_name == f"{owned.metadata.name}-"


async def test_the_events_of_a_rollout_come_from_their_controllers(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    (owned,) = await sets_of(cluster, "web")
    (made,) = await pods_of(cluster, "web")
    await wait_for_events(
        cluster,
        ("Deployment", "ScalingReplicaSet", f"Scaled up replica set {owned.metadata.name} from 0 to 1"),
        ("ReplicaSet", "SuccessfulCreate", f"Created pod: {made.metadata.name}"),
        ("Pod", "Scheduled", f"Successfully assigned {made.key} to kubewright"),
        ("Pod", "Started", "Container started"),
    )
    events = await cluster.client.list(core_v1.Event, namespace=cluster.namespace)
    assert {item.reporting_component for item in events} >= {
        "deployment-controller",
        "replicaset-controller",
        "default-scheduler",
        "kubelet",
    }


async def test_a_new_template_rolls_out_within_max_unavailable(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 4))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await set_image(cluster, made, "nginx:1.26")
    least = 4

    def done(found: apps_v1.Deployment) -> bool:
        nonlocal least
        least = min(least, found.status.available_replicas)
        return is_rolled_out(found)

    await cluster.eventually(apps_v1.Deployment, "web", done)
    assert least >= 3
    old, new = await sets_of(cluster, "web")
    assert (old.spec.replicas, new.spec.replicas) == (0, 4)
    await eventually(lambda: _images(cluster, {"nginx:1.26"}))


async def set_image(cluster: Cluster, made: apps_v1.Deployment, image: str) -> None:
    def change(found: apps_v1.Deployment) -> None:
        found.spec.template.spec.containers[0].image = image

    await cluster.client.update(made, change)


async def _images(cluster: Cluster, desired: set[str]) -> bool:
    return {found.spec.containers[0].image for found in await pods_of(cluster, "web")} == desired


async def test_recreate_deletes_old_pods_before_it_creates_new_ones(cluster: Cluster) -> None:
    desired = deployment("web", 2)
    desired.spec.strategy = apps_v1.DeploymentStrategy(type="Recreate")
    made = await cluster.create(desired)
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await set_image(cluster, made, "nginx:1.26")
    mixed = False

    async def rolled() -> bool:
        nonlocal mixed
        found = await pods_of(cluster, "web")
        # kube-controller-manager does not wait for Pods that have ended, though they still exist.
        present = [item for item in found if item.status.phase not in ("Succeeded", "Failed")]
        mixed |= len({item.spec.containers[0].image for item in present}) > 1
        return is_rolled_out(await cluster.get(apps_v1.Deployment, "web")) and len(found) == 2

    await eventually(rolled)
    assert not mixed


async def test_a_stuck_rollout_keeps_the_old_pods_and_reports_its_deadline(cluster: Cluster) -> None:
    desired = deployment("web", 2)
    desired.spec.progress_deadline_seconds = 2
    made = await cluster.create(desired)
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)

    def doom(found: apps_v1.Deployment) -> None:
        found.spec.template.metadata.annotations[SCENARIO_ANNOTATION] = PodScenario.NEVER_READY

    await cluster.client.update(made, doom)
    late = await cluster.eventually(
        apps_v1.Deployment,
        "web",
        # The first rollout may have exceeded its deadline too.
        lambda found: (
            found.status.observed_generation == found.metadata.generation
            and found.status.replicas == 3
            and condition(found, "Progressing").reason == "ProgressDeadlineExceeded"
        ),
    )
    assert condition(late, "Progressing").status == "False"
    assert (late.status.available_replicas, late.status.updated_replicas) == (2, 1)
    assert condition(late, "Available").status == "True"


async def test_a_paused_deployment_scales_but_does_not_roll_out(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)

    def pause(found: apps_v1.Deployment) -> None:
        found.spec.paused = True
        found.spec.replicas = 2
        found.spec.template.spec.containers[0].image = "nginx:1.26"

    await cluster.client.update(made, pause)
    held = await cluster.eventually(
        apps_v1.Deployment, "web", lambda found: found.status.available_replicas == 2
    )
    assert condition(held, "Progressing").reason == "DeploymentPaused"
    assert await _images(cluster, {"nginx:1.25"})

    def resume(found: apps_v1.Deployment) -> None:
        found.spec.paused = False

    await cluster.client.update(made, resume)
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await eventually(lambda: _images(cluster, {"nginx:1.26"}))


async def test_kubectl_rolls_out_rolls_back_and_deletes(cluster: Cluster, kubectl: Any) -> None:
    await kubectl("create", "deployment", "web", "--image=nginx:1.25", "--replicas=3")
    done = 'deployment "web" successfully rolled out'
    assert done in await kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    await kubectl("set", "image", "deploy/web", "nginx=nginx:1.26")
    assert done in await kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    history = await kubectl("rollout", "history", "deploy/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    assert "rolled back" in await kubectl("rollout", "undo", "deploy/web")
    assert done in await kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    assert "nginx:1.25" in await kubectl("get", "deploy", "web", "-o", "wide")
    history = await kubectl("rollout", "history", "deploy/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    sets = await cluster.client.list(apps_v1.ReplicaSet, namespace=cluster.namespace)
    revisions = {
        item.metadata.annotations[REVISION]: item.metadata.annotations.get(REVISION_HISTORY) for item in sets
    }
    assert revisions == {"2": None, "3": "1"}
    await kubectl("rollout", "pause", "deploy/web")
    await kubectl("rollout", "resume", "deploy/web")
    await kubectl("scale", "deploy/web", "--replicas=1")
    await kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deploy/web", "--timeout=120s")
    await kubectl("rollout", "restart", "deploy/web")
    assert done in await kubectl("rollout", "status", "deploy/web", "--timeout=120s")
    await kubectl("delete", "deploy/web", "--cascade=foreground", "--timeout=120s")
    assert "No resources found" in await kubectl("get", "replicasets,pods")


async def test_only_the_latest_revisions_are_kept(cluster: Cluster) -> None:
    desired = deployment("web", 1)
    desired.spec.revision_history_limit = 1
    made = await cluster.create(desired)
    for minor in (26, 27, 28):
        await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
        await set_image(cluster, made, f"nginx:1.{minor}")
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)

    async def kept() -> bool:
        return [item.metadata.annotations[REVISION] for item in await sets_of(cluster, "web")] == ["3", "4"]

    await eventually(kept)


async def test_a_complete_deployment_is_not_written_again(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 2))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    await cluster.settled(apps_v1.Deployment, apps_v1.ReplicaSet, core_v1.Pod)


async def test_a_deleted_pod_is_replaced(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 2))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    lost, _ = await pods_of(cluster, "web")
    await cluster.client.delete(lost)
    await cluster.eventually_gone(core_v1.Pod, lost.metadata.name)

    async def whole() -> bool:
        return len(await pods_of(cluster, "web")) == 2

    await eventually(whole)


async def test_matching_orphans_are_adopted_and_pods_that_no_longer_match_are_released(
    cluster: Cluster,
) -> None:
    orphan = await cluster.create(pod("lone"))
    owner = await cluster.create(
        apps_v1.ReplicaSet(
            Meta("lone"),
            spec=apps_v1.ReplicaSetSpec(
                replicas=1, selector=selector("lone"), template=deployment("lone", 1).spec.template
            ),
        )
    )
    await cluster.eventually(
        core_v1.Pod,
        "lone",
        lambda found: [item.uid for item in found.metadata.owner_references] == [owner.metadata.uid],
    )
    await cluster.client.patch(orphan, {"metadata": {"labels": {"app": "free"}}})
    await cluster.eventually(core_v1.Pod, "lone", lambda found: not found.metadata.owner_references)

    async def replaced() -> bool:
        return len(await pods_of(cluster, "lone")) == 1

    await eventually(replaced)


async def test_rejected_pods_are_reported_in_the_status(cluster: Cluster) -> None:
    desired = deployment("web", 1)
    desired.spec.template.spec.service_account_name = "missing"
    await cluster.create(desired)
    failing = await cluster.eventually(
        apps_v1.Deployment,
        "web",
        lambda found: any(item.type == "ReplicaFailure" for item in found.status.conditions),
    )
    reported = condition(failing, "ReplicaFailure")
    assert (reported.status, reported.reason) == ("True", "FailedCreate")
    assert [item.type for item in failing.status.conditions] == ["Progressing", "Available", "ReplicaFailure"]
    progress, (made,) = (
        condition(failing, "Progressing"),
        await cluster.client.list(apps_v1.ReplicaSet, namespace=cluster.namespace),
    )
    assert (progress.status, progress.reason) == ("True", "NewReplicaSetCreated")
    assert progress.message == f'Created new replica set "{made.metadata.name}"'
    assert 'serviceaccount "missing" not found' in reported.message
    await wait_for_events(cluster, ("ReplicaSet", "FailedCreate", "Error creating: pods "))


async def test_missing_pods_of_a_rollout_count_as_unavailable(cluster: Cluster) -> None:
    made = await cluster.create(deployment("web", 3))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)

    def refused(found: apps_v1.Deployment) -> None:
        found.spec.template.spec.service_account_name = "missing"

    await cluster.client.update(made, refused)
    found = await cluster.eventually(
        apps_v1.Deployment, "web", lambda item: item.status.unavailable_replicas == 1
    )
    assert (found.status.replicas, found.status.available_replicas) == (3, 3)


async def test_fields_belong_to_the_managers_of_a_real_cluster(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)

    def managers(obj: Object) -> set[tuple[str, str, str]]:
        return {(item.manager, item.operation, item.subresource) for item in obj.metadata.managed_fields}

    (replica_set,), (pod,) = await sets_of(cluster, "web"), await pods_of(cluster, "web")
    found = await cluster.get(apps_v1.Deployment, "web")
    controllers = ("kube-controller-manager", "Update")
    assert managers(found) == {("kubewright-testing", "Update", ""), (*controllers, "status")}
    assert managers(replica_set) == {(*controllers, ""), (*controllers, "status")}
    assert managers(pod) == {(*controllers, ""), ("kubelet", "Update", "status")}
