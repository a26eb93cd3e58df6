"""HorizontalPodAutoscalers, driven by kubectl."""

from collections.abc import Awaitable, Callable

import pytest
from devcluster_workloads import deployment, wait_for_events

import kubewright as kw
from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, autoscaling_v1, autoscaling_v2
from kubewright.devcluster.autoscalers import clamp_replicas
from kubewright.testing import Cluster

Kubectl = Callable[..., Awaitable[str]]
Scaler = autoscaling_v2.HorizontalPodAutoscaler


@pytest.mark.parametrize(
    ("current", "desired", "message"), [(0, 0, ""), (1, 2, "below"), (2, 2, ""), (4, 4, ""), (9, 4, "above")]
)
def test_replicas_stay_within_min_and_max(current: int, desired: int, message: str) -> None:
    found, why = clamp_replicas(current, 2, 4)
    assert found == desired
    assert message in why


def conditions_of(scaler: Scaler) -> dict[str, tuple[str, str]]:
    return {item.type: (item.status, item.reason) for item in scaler.status.conditions}


async def test_kubectl_autoscale_scales_a_deployment_up_to_its_minimum(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", lambda item: item.status.ready_replicas == 1)
    await kubectl("autoscale", "deployment", "web", "--min=2", "--max=4", "--cpu=50%")
    await cluster.eventually(apps_v1.Deployment, "web", lambda item: item.status.ready_replicas == 2)
    why = "Current number of replicas below Spec.MinReplicas"
    await wait_for_events(
        cluster, ("HorizontalPodAutoscaler", "SuccessfulRescale", f"New size: 2; reason: {why}")
    )
    # The real controller reconciles again after 15 s.
    found = await cluster.eventually(
        Scaler,
        "web",
        lambda item: item.status.current_replicas == 2 and "ScalingActive" in conditions_of(item),
        timeout=60,
    )
    assert conditions_of(found) == {
        "AbleToScale": ("True", "SucceededGetScale"),
        "ScaledToZero": ("False", "NotScaledToZero"),
        "ScalingActive": ("False", "FailedGetResourceMetric"),
    }
    assert "cpu: <unknown>/50%" in await kubectl("get", "hpa")
    assert [item.type for item in found.status.current_metrics] == [""]
    why = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from"
    )
    await wait_for_events(
        cluster,
        ("HorizontalPodAutoscaler", "FailedGetResourceMetric", why),
        (
            "HorizontalPodAutoscaler",
            "FailedComputeMetricsReplicas",
            "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: "
            + why,
        ),
    )


async def test_an_autoscaler_of_version_1_without_metrics_gets_its_status(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", lambda item: item.status.ready_replicas == 1)
    reference = autoscaling_v1.CrossVersionObjectReference(
        api_version="apps/v1", kind="Deployment", name="web"
    )
    spec = autoscaling_v1.HorizontalPodAutoscalerSpec(scale_target_ref=reference, max_replicas=4)
    await cluster.create(autoscaling_v1.HorizontalPodAutoscaler(Meta("web"), spec=spec))
    await cluster.eventually(Scaler, "web", lambda item: "ScalingActive" in conditions_of(item), timeout=60)
    found = await cluster.get(autoscaling_v1.HorizontalPodAutoscaler, "web")
    metrics = found.metadata.annotations["autoscaling.alpha.kubernetes.io/current-metrics"]
    assert metrics == '[{"type":""}]'


async def test_reports_an_autoscaler_without_a_target(cluster: Cluster) -> None:
    reference = autoscaling_v2.CrossVersionObjectReference(
        api_version="apps/v1", kind="Deployment", name="nothing"
    )
    spec = autoscaling_v2.HorizontalPodAutoscalerSpec(scale_target_ref=reference, max_replicas=2)
    condition = Scaler(spec=spec)
    condition.metadata.name = "lost"
    await cluster.create(condition)
    found = await cluster.eventually(
        Scaler, "lost", lambda item: conditions_of(item) == {"AbleToScale": ("False", "FailedGetScale")}
    )
    assert found.status.conditions[0].message.startswith(
        "the HPA controller was unable to get the target's current scale: "
    )


class FleetSpec(kw.Model):
    size: int = 2


class FleetStatus(kw.Model):
    size: int = 0


class Fleet(
    kw.Resource[FleetSpec, FleetStatus],
    group="autoscalers.example.com",
    version="v1",
    scale=kw.Scale(spec=".spec.size", status=".status.size"),
):
    """A kind whose scale has no selector."""


async def test_reports_a_scale_without_a_selector(cluster: Cluster) -> None:
    await cluster.install(Fleet)
    fleet = await cluster.create(Fleet(kw.Meta("trucks"), spec=FleetSpec()))
    await cluster.client.patch(fleet, {"status": {"size": 2}}, subresource="status")
    target = autoscaling_v2.CrossVersionObjectReference(
        api_version="autoscalers.example.com/v1", kind="Fleet", name="trucks"
    )
    spec = autoscaling_v2.HorizontalPodAutoscalerSpec(scale_target_ref=target, max_replicas=4)
    await cluster.create(Scaler(kw.Meta("trucks"), spec=spec))
    found = await cluster.eventually(
        Scaler, "trucks", lambda item: "ScalingActive" in conditions_of(item), timeout=60
    )
    assert conditions_of(found) == {
        "AbleToScale": ("True", "SucceededGetScale"),
        "ScalingActive": ("False", "InvalidSelector"),
    }
    assert found.status.conditions[-1].message == "the HPA target's scale is missing a selector"
    assert found.status.current_metrics == []
    assert (found.status.current_replicas, found.status.desired_replicas) == (2, 0)
    await wait_for_events(
        cluster,
        ("HorizontalPodAutoscaler", "SelectorRequired", "selector is required"),
        ("HorizontalPodAutoscaler", "FailedComputeMetricsReplicas", "selector is required"),
    )


async def test_autoscalers_desire_no_change_without_metrics(cluster: Cluster) -> None:
    await cluster.create(deployment("api", 2))
    await cluster.eventually(apps_v1.Deployment, "api", lambda item: item.status.ready_replicas == 2)
    target = autoscaling_v2.CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="api")
    spec = autoscaling_v2.HorizontalPodAutoscalerSpec(scale_target_ref=target, max_replicas=4)
    await cluster.create(Scaler(kw.Meta("api"), spec=spec))
    found = await cluster.eventually(
        Scaler, "api", lambda item: "ScalingActive" in conditions_of(item), timeout=60
    )
    assert (found.status.current_replicas, found.status.desired_replicas) == (2, 0)


async def test_two_autoscalers_of_the_same_pods_are_reported(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 1))
    await cluster.eventually(apps_v1.Deployment, "web", lambda item: item.status.ready_replicas == 1)
    for name in ("first", "second"):
        target = autoscaling_v2.CrossVersionObjectReference(
            api_version="apps/v1", kind="Deployment", name="web"
        )
        spec = autoscaling_v2.HorizontalPodAutoscalerSpec(scale_target_ref=target, max_replicas=3)
        await cluster.create(Scaler(Meta(name), spec=spec))
    for name in ("first", "second"):
        found = await cluster.eventually(
            Scaler,
            name,
            lambda item: conditions_of(item).get("ScalingActive") == ("False", "AmbiguousSelector"),
            timeout=90,
        )
        (message,) = [item.message for item in found.status.conditions if item.type == "ScalingActive"]
        start = "pods by selector app=web are controlled by more than one HPA (e.g. ["
        assert message.startswith(start)
        both = {f"{cluster.namespace}/first", f"{cluster.namespace}/second"}
        # The order is random on the real server.
        assert message.removeprefix(start) in {f"{a} {b}])" for a in both for b in both - {a}}
    await wait_for_events(cluster, ("HorizontalPodAutoscaler", "AmbiguousSelector", start))
