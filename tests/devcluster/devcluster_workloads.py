"""Workloads for the tests, and helpers that wait for them."""

from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.testing import Cluster, eventually

REVISION = "deployment.kubernetes.io/revision"


def pod_spec(image: str = "nginx:1.25") -> core_v1.PodSpec:
    """Build the spec of a Pod with one container."""
    return core_v1.PodSpec(containers=[core_v1.Container(name="main", image=image)])


def pod(name: str, *, scenario: PodScenario | None = None, **spec: object) -> core_v1.Pod:
    """Build a Pod with a scenario."""
    annotations = {SCENARIO_ANNOTATION: str(scenario)} if scenario is not None else {}
    made = core_v1.Pod(Meta(name, annotations=annotations, labels={"app": name}), spec=pod_spec())
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


def template(app: str, image: str = "nginx:1.25") -> core_v1.PodTemplateSpec:
    """Build a Pod template labelled by its app."""
    return core_v1.PodTemplateSpec(metadata=Meta(labels={"app": app}), spec=pod_spec(image))


def selector(app: str) -> meta_v1.LabelSelector:
    """Build a selector for the Pods of an app."""
    return meta_v1.LabelSelector(match_labels={"app": app})


def deployment(name: str, replicas: int, image: str = "nginx:1.25") -> apps_v1.Deployment:
    """Build a Deployment of one container."""
    return apps_v1.Deployment(
        Meta(name, labels={"app": name}),
        spec=apps_v1.DeploymentSpec(
            replicas=replicas, selector=selector(name), template=template(name, image)
        ),
    )


def is_rolled_out(found: apps_v1.Deployment) -> bool:
    """Return True when `kubectl rollout status` would return."""
    status, desired = found.status, found.spec.replicas
    return (
        status.observed_generation == found.metadata.generation
        and status.updated_replicas == status.replicas == status.available_replicas == desired
    )


async def pods_of(cluster: Cluster, app: str) -> list[core_v1.Pod]:
    """Return the Pods of an app, ordered by name."""
    found = await cluster.client.list(core_v1.Pod, namespace=cluster.namespace, labels=f"app={app}")
    return sorted(found, key=lambda item: item.metadata.name)


async def sets_of(cluster: Cluster, app: str) -> list[apps_v1.ReplicaSet]:
    """Return the ReplicaSets of an app, oldest revision first."""
    found = await cluster.client.list(apps_v1.ReplicaSet, namespace=cluster.namespace, labels=f"app={app}")
    return sorted(found, key=lambda item: int(item.metadata.annotations[REVISION]))


async def wait_for_events(cluster: Cluster, *expected: tuple[str, str, str], namespace: str = "") -> None:
    """Wait for Events, each given as kind, reason and a part of the message."""
    missing = list(expected)

    async def look() -> bool:
        events = await cluster.client.list(core_v1.Event, namespace=namespace or cluster.namespace)
        missing[:] = [
            (kind, reason, text)
            for kind, reason, text in expected
            if not any(
                (item.involved_object.kind, item.reason) == (kind, reason) and text in item.message
                for item in events
            )
        ]
        return not missing

    await eventually(look)
