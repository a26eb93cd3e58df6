"""The scheduler's filters: whether a Pod fits a node by resources, taints, node selectors and affinity.

The reasons are those of kube-scheduler, word for word.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from kubewright.api import LabelMatcher, Quantity, label_selector
from kubewright.api.builtin import core_v1

UNTOLERATED_TAINT = "node(s) had untolerated taint(s)"
UNRESOLVABLE = frozenset(
    {
        UNTOLERATED_TAINT,
        "node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't match the requested node name",
    }
)
"""Reasons that deleting other Pods would not resolve."""
_COUNTED = ("cpu", "memory", "pods")
_ZERO = Quantity("0")
_UNSCHEDULABLE = core_v1.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class AssignedPod:
    """The properties of a Pod on a node that matter for scheduling other Pods."""

    uid: str
    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    requests: Mapping[str, Quantity]
    host_ports: frozenset[tuple[str, int]]
    priority: int
    started: float
    """When it started, in seconds; later than any other if it has not."""
    terminating: bool
    anti_affinity: Sequence[core_v1.PodAffinityTerm]
    """The required terms, which also keep other Pods away from it."""

    @classmethod
    def of(cls, pod: core_v1.Pod, node: str = "") -> Self:
        """Extract these properties from a Pod."""
        affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None
        started = pod.status.start_time
        return cls(
            uid=pod.metadata.uid,
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            node=node or pod.spec.node_name,
            labels=pod.metadata.labels,
            requests=requests_of(pod),
            host_ports=frozenset(_host_ports(pod)),
            priority=pod.spec.priority or 0,
            started=started.timestamp() if started is not None else math.inf,
            terminating=pod.metadata.deletion_timestamp is not None,
            anti_affinity=affinity.required_during_scheduling_ignored_during_execution if affinity else (),
        )


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node, the Pods on it, the sum of their requests, and those of them with required anti-affinity."""

    node: core_v1.Node
    pods: Collection[AssignedPod] = ()
    used: Mapping[str, Quantity] = field(default_factory=dict[str, Quantity])
    repelling: Collection[AssignedPod] = ()


def requests_of(pod: core_v1.Pod) -> dict[str, Quantity]:
    """Return the resource requests of a Pod: the sum of its containers, or the maximum of its init containers if higher."""
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        _add(total, container.resources.requests)
    start: dict[str, Quantity] = {}
    along: dict[str, Quantity] = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            _add(along, container.resources.requests)
            _add(total, container.resources.requests)
            continue
        step = dict(along)
        _add(step, container.resources.requests)
        for name, amount in step.items():
            start[name] = max(start.get(name, _ZERO), amount)
    for name, amount in start.items():
        total[name] = max(total.get(name, _ZERO), amount)
    _add(total, pod.spec.overhead)
    return {**total, "pods": Quantity("1")}


def _add(total: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def tolerates(pod: core_v1.Pod, taint: core_v1.Taint) -> bool:
    """Return True if the Pod tolerates the taint."""
    return any(toleration_matches(toleration, taint) for toleration in pod.spec.tolerations)


def toleration_matches(toleration: core_v1.Toleration, taint: core_v1.Taint) -> bool:
    """Return True if the toleration matches the taint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def matches_term(term: core_v1.NodeSelectorTerm, node: core_v1.Node) -> bool:
    """Return True if the node matches a selector term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_matches_requirement(item, node.metadata.labels) for item in term.match_expressions) and all(
        _matches_requirement(item, fields) for item in term.match_fields
    )


def _matches_requirement(requirement: core_v1.NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compare_integers(value, operator, requirement.values)
        case _:
            return False


def _compare_integers(value: str | None, operator: str, bounds: Sequence[str]) -> bool:
    try:
        number, bound = int(value or ""), int(bounds[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def matches_node(pod: core_v1.Pod, node: core_v1.Node) -> bool:
    """Return True if the node matches the Pod's node selector and required node affinity."""
    if not pod.spec.node_selector.items() <= node.metadata.labels.items():
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or any(matches_term(term, node) for term in required.node_selector_terms)


def unschedulable_reason(pod: core_v1.Pod, info: NodeInfo, all_nodes: Sequence[NodeInfo] = ()) -> str:
    """Return why the Pod cannot run on a node, or an empty string if it can."""
    node = info.node
    if node.spec.unschedulable and not tolerates(pod, _UNSCHEDULABLE):
        return "node(s) were unschedulable"
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return UNTOLERATED_TAINT
    if not matches_node(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    ports = _host_ports(pod)
    if ports and any(ports & other.host_ports for other in info.pods):
        return "node(s) didn't have free ports for the requested pod ports"
    return _insufficient_resource(pod, info) or _affinity_conflict(pod, node, all_nodes or (info,))


def _host_ports(pod: core_v1.Pod) -> set[tuple[str, int]]:
    return {
        (port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    }


def _insufficient_resource(pod: core_v1.Pod, info: NodeInfo) -> str:
    room = info.node.status.allocatable or info.node.status.capacity
    for name, amount in requests_of(pod).items():
        short = info.used.get(name, _ZERO) + amount > room.get(name, _ZERO)
        if short and (name in room or name in _COUNTED or "/" in name) and amount > _ZERO:
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return ""


def _affinity_conflict(pod: core_v1.Pod, node: core_v1.Node, all_nodes: Sequence[NodeInfo]) -> str:
    """Return the reason if required Pod affinity or anti-affinity, also of other Pods, excludes the node."""
    affinity = pod.spec.affinity
    if affinity is None:
        return _existing_anti_affinity(pod, node, all_nodes)
    if affinity.pod_affinity is not None:
        for term in affinity.pod_affinity.required_during_scheduling_ignored_during_execution:
            alone = _selector(term).matches(pod.metadata.labels) and not _any_pod_matches(
                pod, term, all_nodes
            )
            if not _matches_topology(pod, term, node, all_nodes) and not alone:
                return "node(s) didn't match pod affinity rules"
    if affinity.pod_anti_affinity is not None:
        for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
            if _matches_topology(pod, term, node, all_nodes):
                return "node(s) didn't match pod anti-affinity rules"
    return _existing_anti_affinity(pod, node, all_nodes)


def _existing_anti_affinity(pod: core_v1.Pod, node: core_v1.Node, all_nodes: Sequence[NodeInfo]) -> str:
    for info in all_nodes:
        for other in info.repelling:
            for term in other.anti_affinity:
                topology = info.node.metadata.labels.get(term.topology_key)
                if topology is None or node.metadata.labels.get(term.topology_key) != topology:
                    continue
                namespaces = term.namespaces or [other.namespace]
                if pod.metadata.namespace in namespaces and _selector(term).matches(pod.metadata.labels):
                    return "node(s) didn't satisfy existing pods anti-affinity rules"
    return ""


def _selector(term: core_v1.PodAffinityTerm) -> LabelMatcher:
    return label_selector(term.label_selector)


def _any_pod_matches(pod: core_v1.Pod, term: core_v1.PodAffinityTerm, all_nodes: Sequence[NodeInfo]) -> bool:
    return any(_term_selects(pod, term, other) for info in all_nodes for other in info.pods)


def _matches_topology(
    pod: core_v1.Pod, term: core_v1.PodAffinityTerm, node: core_v1.Node, all_nodes: Sequence[NodeInfo]
) -> bool:
    topology = node.metadata.labels.get(term.topology_key)
    if topology is None:
        return False
    return any(
        _term_selects(pod, term, other)
        for info in all_nodes
        if info.node.metadata.labels.get(term.topology_key) == topology
        for other in info.pods
    )


def _term_selects(pod: core_v1.Pod, term: core_v1.PodAffinityTerm, other: AssignedPod) -> bool:
    namespaces = term.namespaces or [pod.metadata.namespace]
    return (
        other.namespace in namespaces
        and other.uid != pod.metadata.uid
        and _selector(term).matches(other.labels)
    )


def is_unresolvable(pod: core_v1.Pod, info: NodeInfo, reason: str) -> bool:
    """Return True if the reason would remain even without any other Pod on the node."""
    return reason in UNRESOLVABLE or bool(_insufficient_resource(pod, NodeInfo(info.node)))


def fit_error_message(nodes: int, reasons: Mapping[str, int], preemption: str = "") -> str:
    """Return kube-scheduler's message for a Pod that fits no node; `preemption` says why preemption does not help."""
    if not nodes:
        return "no nodes available to schedule pods"
    details = ", ".join(sorted(f"{count} {text}" for text, count in reasons.items()))
    ending = f" no new claims to deallocate, preemption: {preemption}" if preemption else ""
    return f"0/{nodes} nodes are available: {details}.{ending}"


def preemption_error(nodes: int, unresolvable: int) -> str:
    """Return why preemption does not help; `unresolvable` is the number of nodes on which it never can."""
    ends: list[str] = []
    if nodes - unresolvable:
        ends.append(f"{nodes - unresolvable} No preemption victims found for incoming pod")
    if unresolvable:
        ends.append(f"{unresolvable} Preemption is not helpful for scheduling")
    return f"0/{nodes} nodes are available: {', '.join(sorted(ends))}."
