"""The disruption controller: computes how many Pods of a PodDisruptionBudget may be evicted."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api import Condition, Object, controller_of, label_selector
from kubewright.api.builtin import apps_v1, core_v1, meta_v1, policy_v1
from kubewright.controller import Context, Controller, Index, Options, Result, watch
from kubewright.devcluster import clock
from kubewright.devcluster.rollouts import resolve
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devcluster.workloads import affects_pod_counts, is_pod_finished, is_ready

NAME = "controllermanager"
EVICTION_TIMEOUT = timedelta(minutes=2)
"""How long a disrupted Pod counts as being evicted."""

budgets_by_namespace: Index[policy_v1.PodDisruptionBudget] = Index(
    policy_v1.PodDisruptionBudget, lambda item: [item.metadata.namespace]
)


def desired_healthy(budget: policy_v1.PodDisruptionBudget, expected: int) -> int:
    """Return how many Pods must stay healthy."""
    most, least = budget.spec.max_unavailable, budget.spec.min_available
    if most is not None:
        return max(expected - resolve(most, expected, round_up=True), 0)
    return resolve(least, expected, round_up=True)


async def _expected(budget: policy_v1.PodDisruptionBudget, pods: Sequence[core_v1.Pod], ctx: Context) -> int:
    """Return the expected number of Pods: the replicas of their controllers, unless minAvailable is an absolute number."""
    if isinstance(budget.spec.min_available, int):
        return len(pods)
    owners = {owner.uid: owner for pod in pods if (owner := controller_of(pod.metadata)) is not None}
    total = 0
    for owner in owners.values():
        found: apps_v1.ReplicaSet | apps_v1.StatefulSet | core_v1.ReplicationController | None = None
        if owner.kind == "ReplicaSet":
            found = await ctx.find(apps_v1.ReplicaSet, owner.name)
        elif owner.kind == "StatefulSet":
            found = await ctx.find(apps_v1.StatefulSet, owner.name)
        elif owner.kind == "ReplicationController":
            found = await ctx.find(core_v1.ReplicationController, owner.name)
        if found is not None:
            total += 1 if found.spec.replicas is None else found.spec.replicas
        else:
            total += sum(owner.uid == item.uid for pod in pods for item in pod.metadata.owner_references)
    return total


def status_of(
    budget: policy_v1.PodDisruptionBudget, pods: Sequence[core_v1.Pod], expected: int, now: datetime
) -> policy_v1.PodDisruptionBudgetStatus:
    """Return the status with the number of allowed disruptions."""
    not_terminating = {pod.metadata.name: pod for pod in pods if pod.metadata.deletion_timestamp is None}
    disrupted: dict[str, datetime | None] = {
        name: since
        for name, since in budget.status.disrupted_pods.items()
        if name in not_terminating and since is not None and now - since < EVICTION_TIMEOUT
    }
    healthy = sum(is_ready(pod) and name not in disrupted for name, pod in not_terminating.items())
    least = desired_healthy(budget, expected)
    allowed = max(healthy - least, 0) if expected else 0
    condition = Condition(
        type="DisruptionAllowed",
        status="True" if allowed else "False",
        reason="SufficientPods" if allowed else "InsufficientPods",
        message="",
    )
    return policy_v1.PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        expected_pods=expected,
        current_healthy=healthy,
        desired_healthy=least,
        disruptions_allowed=allowed,
        disrupted_pods=disrupted,
        conditions=[condition],
    )


def _is_unmanaged(pod: core_v1.Pod) -> bool:
    return controller_of(pod.metadata) is None


def _unmanaged_message(selector: meta_v1.LabelSelector | None) -> str:
    """Return Kubernetes' warning about Pods without a controller, with the selector in Go's format."""
    labels = selector.match_labels if selector is not None else {}
    expressions = selector.match_expressions if selector is not None else []
    pairs = "".join(f"{key}: {value}," for key, value in sorted(labels.items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{item.key},Operator:{item.operator},Values:[{' '.join(item.values)}],}},"
        for item in expressions
    )
    shown = (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be unmanaged. As a result, the "
        "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
        'these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )


async def reconcile(budget: policy_v1.PodDisruptionBudget, ctx: Context) -> Result | None:
    """Count the Pods of a budget and update its status."""
    selector = label_selector(budget.spec.selector)
    found = await ctx.list(core_v1.Pod, namespace=budget.metadata.namespace)
    pods = [pod for pod in found if selector.matches(pod.metadata.labels) and not is_pod_finished(pod)]
    if not pods:
        ctx.event("NoPods", "No matching pods found")
    elif not isinstance(budget.spec.min_available, int) and any(_is_unmanaged(pod) for pod in pods):
        ctx.warn("UnmanagedPods", _unmanaged_message(budget.spec.selector))
    now = clock.now()
    status = status_of(budget, pods, await _expected(budget, pods, ctx), now)
    gone = budget.status.disrupted_pods.keys() - status.disrupted_pods.keys()
    if gone:
        # The API server recorded the evictions, and an apply cannot remove fields that it owns.
        patch = {"status": {"disruptedPods": dict.fromkeys(gone)}}
        budget = await ctx.patch(budget, patch, subresource="status")
    await ctx.patch_status(budget, status)
    return Result(after=EVICTION_TIMEOUT) if status.disrupted_pods else None


def _namespace(obj: Object) -> str:
    return obj.metadata.namespace


def controller() -> Controller[policy_v1.PodDisruptionBudget]:
    """Declare the disruption controller."""
    return Controller(
        policy_v1.PodDisruptionBudget,
        reconcile,
        name="disruption-controller",
        watches=[
            watch(core_v1.Pod, via=budgets_by_namespace, key=_namespace, when=affects_pod_counts),
            watch(apps_v1.ReplicaSet, via=budgets_by_namespace, key=_namespace),
            watch(apps_v1.StatefulSet, via=budgets_by_namespace, key=_namespace),
            watch(core_v1.ReplicationController, via=budgets_by_namespace, key=_namespace),
        ],
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER),
    )
