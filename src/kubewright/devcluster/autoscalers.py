"""The HorizontalPodAutoscaler controller of a cluster without metrics: it only enforces minReplicas and maxReplicas."""

from collections.abc import Callable
from datetime import datetime, timedelta

from kubewright.api import ApiError, Kind, Object, ObjectKey, parse_labels
from kubewright.api.builtin import apps_v1, autoscaling_v2, core_v1
from kubewright.client import Client
from kubewright.controller import Change, Context, Controller, Index, Options, Result, watch
from kubewright.devcluster import clock
from kubewright.devcluster.statuses import FIELD_MANAGER

NAME = "horizontal-pod-autoscaler"
RESYNC = timedelta(seconds=15)

Autoscaler = autoscaling_v2.HorizontalPodAutoscaler
AutoscalerCondition = autoscaling_v2.HorizontalPodAutoscalerCondition

autoscalers_by_target: Index[autoscaling_v2.HorizontalPodAutoscaler] = Index(
    Autoscaler,
    lambda item: [
        f"{item.metadata.namespace}/{item.spec.scale_target_ref.kind}/{item.spec.scale_target_ref.name}"
    ],
)


def clamp_replicas(current: int, least: int, most: int) -> tuple[int, str]:
    """Return the desired replicas without metrics, and the reason if they differ from the current ones."""
    if current == 0 and least != 0:
        return 0, ""
    if current > most:
        return most, "Current number of replicas above Spec.MaxReplicas"
    if current < least:
        return least, "Current number of replicas below Spec.MinReplicas"
    return current, ""


def missing_metric(scaler: Autoscaler) -> tuple[str, str, str]:
    """Return the reason, the message and the name of the first metric that cannot be read, worded as Kubernetes does."""
    first = scaler.spec.metrics[0] if scaler.spec.metrics else None
    if first is None or first.resource is None:
        kind = "object" if first is None else first.type
        reason, of = f"FailedGet{kind}Metric", f"{kind.lower()} metric value"
        why = f"unable to get {kind.lower()} metric: no custom metrics API is registered"
    else:
        reason, name = "FailedGetResourceMetric", first.resource.name
        of = f"{name} resource metric value"
        what = (
            f"{name} utilization"
            if first.resource.target.type == "Utilization"
            else f"{name} resource metric value"
        )
        why = (
            f"failed to get {what}: unable to get metrics for resource {name}: unable to fetch metrics from resource "
            "metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
    return reason, why, of


class Autoscalers:
    """Scale the targets of autoscalers to within their bounds."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._selectors: dict[ObjectKey, str] = {}
        """The selectors of the targets, by the key of the autoscaler."""

    def observe(self, change: Change[Autoscaler]) -> bool:
        """Drop the selector of a deleted autoscaler; return True."""
        if change.after is None:
            self._selectors.pop(change.key, None)
        return True

    async def _autoscalers_of_pods(self, scaler: Autoscaler, selector: str) -> list[ObjectKey]:
        """Return the autoscalers whose targets select the Pods of this one's target."""
        self._selectors[scaler.key] = selector
        near = {
            key: parse_labels(text)
            for key, text in self._selectors.items()
            if key.namespace == scaler.metadata.namespace
        }
        if len(near) == 1:
            return [scaler.key]
        pods = await self._client.list(core_v1.Pod, namespace=scaler.metadata.namespace, labels=selector)
        return sorted(
            key for key, found in near.items() if any(found.matches(pod.metadata.labels) for pod in pods)
        )

    async def reconcile(self, scaler: Autoscaler, ctx: Context) -> Result | None:
        """Read the scale of the target, correct it if it is out of bounds, and update the status."""
        now = clock.now().replace(microsecond=0)
        status = autoscaling_v2.HorizontalPodAutoscalerStatus(
            observed_generation=scaler.metadata.generation or None,
            last_scale_time=scaler.status.last_scale_time,
            current_replicas=scaler.status.current_replicas,
            desired_replicas=scaler.status.desired_replicas,
            current_metrics=scaler.status.current_metrics,
            conditions=list(scaler.status.conditions),
        )
        target = scaler.spec.scale_target_ref
        problem = f'no matches for kind "{target.kind}" in group "{target.api_version.rpartition("/")[0]}"'
        try:
            kind = await self._kind(target)
            if kind is not None:
                problem = ""
                await self._scale(scaler, status, kind, ctx, now)
        except ApiError as error:
            problem = error.status.message
        if problem:
            message = f"the HPA controller was unable to get the target's current scale: {problem}"
            if _set(status, "AbleToScale", "False", "FailedGetScale", message, now):
                ctx.warn("FailedGetScale", problem)
        await ctx.patch_status(scaler, status)
        return Result(after=RESYNC)

    async def _kind(self, target: autoscaling_v2.CrossVersionObjectReference) -> Kind | None:
        for resource in await self._client.api_resources():
            kind = resource.kind
            if (kind.api_version, kind.kind) == (target.api_version, target.kind):
                return kind
        return None

    async def _scale(
        self,
        scaler: Autoscaler,
        status: autoscaling_v2.HorizontalPodAutoscalerStatus,
        kind: Kind,
        ctx: Context,
        now: datetime,
    ) -> None:
        name, namespace = scaler.spec.scale_target_ref.name, scaler.metadata.namespace
        scale = await self._client.get_scale(kind, name, namespace)
        current = scale.spec.replicas
        least = 1 if scaler.spec.min_replicas is None else scaler.spec.min_replicas
        desired, why = clamp_replicas(current, least, scaler.spec.max_replicas)
        status.current_replicas, status.desired_replicas = scale.status.replicas, desired
        message = "the HPA controller was able to get the target's current scale"
        _set(status, "AbleToScale", "True", "SucceededGetScale", message, now)
        if why:
            await self._client.scale(kind, name, namespace, replicas=desired)
            message = f"the HPA controller was able to update the target scale to {desired}"
            _set(status, "AbleToScale", "True", "SucceededRescale", message, now)
            # A scale to zero needs a metric of an object or of an external system, and no metrics are served here.
            message = "the HPA controller did not scale the workload to zero"
            _set(status, "ScaledToZero", "False", "NotScaledToZero", message, now)
            status.last_scale_time = now
            ctx.event("SuccessfulRescale", f"New size: {desired}; reason: {why}")
        elif desired == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            _set(status, "ScalingActive", "False", "ScalingDisabled", message, now)
        elif not scale.status.selector:
            # Without a result, the number of the last one stays.
            status.desired_replicas = scaler.status.desired_replicas
            status.current_metrics = []
            message = "the HPA target's scale is missing a selector"
            if _set(status, "ScalingActive", "False", "InvalidSelector", message, now):
                ctx.warn("SelectorRequired", "selector is required")
                ctx.warn("FailedComputeMetricsReplicas", "selector is required")
        elif len(others := await self._autoscalers_of_pods(scaler, scale.status.selector)) > 1:
            status.desired_replicas = scaler.status.desired_replicas
            status.current_metrics = []
            shown = " ".join(map(str, others[:2]))
            message = f"pods by selector {scale.status.selector} are controlled by more than one HPA (e.g. [{shown}])"
            if _set(status, "ScalingActive", "False", "AmbiguousSelector", message, now):
                ctx.warn("AmbiguousSelector", message)
                ctx.warn("FailedComputeMetricsReplicas", message)
        else:
            status.desired_replicas = scaler.status.desired_replicas
            reason, why, of = missing_metric(scaler)
            message = f"the HPA was unable to compute the replica count: {why}"
            total = len(scaler.spec.metrics)
            # The real controller writes an empty result for each metric that it cannot read.
            status.current_metrics = [autoscaling_v2.MetricStatus(type="") for _ in scaler.spec.metrics]
            if _set(status, "ScalingActive", "False", reason, message, now):
                ctx.warn(reason, why)
                first = f"first error is: failed to get {of}: {why}"
                ctx.warn(
                    "FailedComputeMetricsReplicas",
                    f"invalid metrics ({total} invalid out of {total}), {first}",
                )


def _set(
    status: autoscaling_v2.HorizontalPodAutoscalerStatus,
    type: str,  # noqa: A002 (the field's name)
    value: str,
    reason: str,
    message: str,
    now: datetime,
) -> bool:
    before = next((item for item in status.conditions if item.type == type), None)
    same = before is not None and before.status == value
    since = before.last_transition_time if before is not None and same else now
    condition = AutoscalerCondition(
        type=type, status=value, reason=reason, message=message, last_transition_time=since
    )
    status.conditions = [item for item in status.conditions if item.type != type] + [condition]
    return before != condition


def _as_target(kind: str) -> Callable[[Object], str]:
    return lambda item: f"{item.metadata.namespace}/{kind}/{item.metadata.name}"


def controller(client: Client) -> Controller[Autoscaler]:
    """Declare the HorizontalPodAutoscaler controller."""
    scalers = Autoscalers(client)
    kinds = (apps_v1.Deployment, apps_v1.StatefulSet, apps_v1.ReplicaSet)
    return Controller(
        Autoscaler,
        scalers,
        name=NAME,
        when=scalers.observe,
        watches=[watch(kind, via=autoscalers_by_target, key=_as_target(kind.__name__)) for kind in kinds],
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER),
    )
