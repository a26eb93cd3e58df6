"""Why a Deployment does not become available; an annotation selects how its Pods fail."""

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.cli.deployment.diagnosis import explain, hindrance, pods_of
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.testing import Cluster


def deployment(scenario: PodScenario) -> apps_v1.Deployment:
    labels = {"app": "web"}
    container = core_v1.Container(name="web", image="registry.example/web:1")
    template = core_v1.PodTemplateSpec(
        metadata=Meta(labels=labels, annotations={SCENARIO_ANNOTATION: scenario}),
        spec=core_v1.PodSpec(containers=[container]),
    )
    selector = meta_v1.LabelSelector(match_labels=labels)
    return apps_v1.Deployment(
        Meta("web"), spec=apps_v1.DeploymentSpec(replicas=1, selector=selector, template=template)
    )


async def wait_for_trouble(cluster: Cluster, reason: str) -> apps_v1.Deployment:
    found = await cluster.eventually(apps_v1.Deployment, "web", lambda it: it.status.replicas == 1)
    (pod,) = await cluster.client.list(core_v1.Pod, namespace=cluster.namespace, labels="app=web")
    await cluster.eventually(
        core_v1.Pod,
        pod.metadata.name,
        lambda it: any(
            item.state.waiting is not None and item.state.waiting.reason == reason
            for item in it.status.container_statuses
        ),
    )
    return found


@pytest.mark.parametrize(
    ("scenario", "reason", "printed"),
    [
        (PodScenario.CRASH_LOOP, "CrashLoopBackOff", "exited with 1"),
        (PodScenario.IMAGE_MISSING, "ImagePullBackOff", "ImagePullBackOff"),
    ],
)
async def test_reports_why_a_deployment_is_not_available(
    cluster: Cluster, scenario: PodScenario, reason: str, printed: str
) -> None:
    await cluster.create(deployment(scenario))
    found = await wait_for_trouble(cluster, reason)
    assert reason in hindrance(found, await pods_of(cluster.client, found))
    story = await explain(cluster.client, found)
    assert "container web of pod web-" in story
    assert printed in story
    if scenario is PodScenario.CRASH_LOOP:
        # A simulated Pod has no container, so its log cannot be read; that is reported, too.
        assert "log" in story
