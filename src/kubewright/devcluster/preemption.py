"""Preemption: which Pods of lower priority must go so that a Pod fits a node (pure functions).

As in kube-scheduler, all Pods of lower priority are taken off a node first; if the Pod then fits, as many of them as
possible are put back, those that a PodDisruptionBudget protects and those of high priority before the others. What
cannot be put back are the victims. Of several nodes, the one is chosen whose victims matter least.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kubewright.api import Quantity, label_selector
from kubewright.api.builtin import core_v1, policy_v1
from kubewright.devcluster.node_filters import AssignedPod, NodeInfo, unschedulable_reason

_LOWEST_PRIORITY = -(2**31)
_ZERO = Quantity("0")


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A node, and the Pods to delete there."""

    node: str
    victims: tuple[AssignedPod, ...]
    violations: int
    """How many victims a PodDisruptionBudget protects."""

    @property
    def rank(self) -> tuple[int, int, int, int, float, str]:
        """The sort key: fewest violations, lowest priorities, fewest victims, and the ones that started last."""
        highest = self.victims[0].priority
        started = min(victim.started for victim in self.victims if victim.priority == highest)
        total = sum(victim.priority - _LOWEST_PRIORITY for victim in self.victims)
        return self.violations, highest, total, len(self.victims), -started, self.node


def preemption_candidate(
    pod: core_v1.Pod,
    candidates: Sequence[NodeInfo],
    nodes: Sequence[NodeInfo],
    budgets: Sequence[policy_v1.PodDisruptionBudget],
) -> PreemptionCandidate | None:
    """Return the node, one of the candidates, and the victims that make room for a Pod; None if nothing helps."""
    found = [_candidate(pod, info, nodes, budgets) for info in candidates]
    return min((item for item in found if item is not None), key=lambda item: item.rank, default=None)


def _candidate(
    pod: core_v1.Pod,
    info: NodeInfo,
    nodes: Sequence[NodeInfo],
    budgets: Sequence[policy_v1.PodDisruptionBudget],
) -> PreemptionCandidate | None:
    priority = pod.spec.priority or 0
    kept = {other.uid: other for other in info.pods}
    lower = sorted((other for other in info.pods if other.priority < priority), key=_importance)
    for other in lower:
        del kept[other.uid]

    def fits() -> bool:
        here = _with_pods(info, kept)
        every = [here if item.node.metadata.name == info.node.metadata.name else item for item in nodes]
        return not unschedulable_reason(pod, here, every)

    if not lower or not fits():
        return None
    protected = _protected(lower, budgets)
    victims: list[AssignedPod] = []
    for other in sorted(lower, key=lambda other: other.uid not in protected):
        kept[other.uid] = other
        if not fits():
            del kept[other.uid]
            victims.append(other)
    victims.sort(key=_importance)
    violations = sum(victim.uid in protected for victim in victims)
    return PreemptionCandidate(info.node.metadata.name, tuple(victims), violations) if victims else None


def _importance(pod: AssignedPod) -> tuple[int, float]:
    """Return a sort key: Pods of high priority first, then those that started first."""
    return -pod.priority, pod.started


def _with_pods(info: NodeInfo, pods: Mapping[str, AssignedPod]) -> NodeInfo:
    used: dict[str, Quantity] = {}
    for pod in pods.values():
        for name, amount in pod.requests.items():
            used[name] = used.get(name, _ZERO) + amount
    repelling = [pod for pod in pods.values() if pod.anti_affinity]
    return replace(info, pods=list(pods.values()), used=used, repelling=repelling)


def _protected(pods: Sequence[AssignedPod], budgets: Sequence[policy_v1.PodDisruptionBudget]) -> set[str]:
    """Return the uids of the Pods whose deletion would violate a budget, if all are deleted in this order."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    selectors = [label_selector(budget.spec.selector) for budget in budgets]
    found: set[str] = set()
    for pod in pods:
        for number, budget in enumerate(budgets):
            same = budget.metadata.namespace == pod.namespace and budget.spec.selector is not None
            if not same or not pod.labels or not selectors[number].matches(pod.labels):
                continue
            if pod.name in budget.status.disrupted_pods:
                continue
            allowed[number] -= 1
            if allowed[number] < 0:
                found.add(pod.uid)
    return found
