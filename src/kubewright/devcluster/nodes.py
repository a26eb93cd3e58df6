"""Which node a Pod may run on: room, taints, selectors and affinities, in the scheduler's words."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from kubewright.api import LabelMatcher, Quantity, label_selector
from kubewright.api.builtin import core_v1

UNRESOLVABLE = frozenset(
    {
        "node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't match the requested node name",
    }
)
"""Obstacles that taking other Pods away would not remove."""
_COUNTED = ("cpu", "memory", "pods")
_ZERO = Quantity("0")
_UNSCHEDULABLE = core_v1.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A Pod on a node, as far as others must get along with it."""

    uid: str
    namespace: str
    node: str
    labels: Mapping[str, str]
    requests: Mapping[str, Quantity]
    host_ports: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, pod: core_v1.Pod, node: str = "") -> Self:
        """Take down what counts of a Pod."""
        return cls(
            uid=pod.metadata.uid,
            namespace=pod.metadata.namespace,
            node=node or pod.spec.node_name,
            labels=pod.metadata.labels,
            requests=requests_of(pod),
            host_ports=frozenset(_host_ports(pod)),
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A node, the Pods on it, and what they use together."""

    node: core_v1.Node
    tenants: Collection[Tenant] = ()
    used: Mapping[str, Quantity] = field(default_factory=dict[str, Quantity])


def requests_of(pod: core_v1.Pod) -> dict[str, Quantity]:
    """Sum up what a Pod asks for: its containers together, or the greediest step of its start."""
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
    """Tell whether a Pod may run in spite of a taint."""
    return any(covers(toleration, taint) for toleration in pod.spec.tolerations)


def covers(toleration: core_v1.Toleration, taint: core_v1.Taint) -> bool:
    """Tell whether a toleration is about a taint."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def matches_term(term: core_v1.NodeSelectorTerm, node: core_v1.Node) -> bool:
    """Tell whether a node is among those that a selector term means; an empty term means none."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_meets(item, node.metadata.labels) for item in term.match_expressions) and all(
        _meets(item, fields) for item in term.match_fields
    )


def _meets(requirement: core_v1.NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
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
            return _compares(value, operator, requirement.values)
        case _:
            return False


def _compares(value: str | None, operator: str, bounds: Sequence[str]) -> bool:
    try:
        number, bound = int(value or ""), int(bounds[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def matches_node(pod: core_v1.Pod, node: core_v1.Node) -> bool:
    """Tell whether the Pod's node selector and required node affinity mean this node."""
    if not pod.spec.node_selector.items() <= node.metadata.labels.items():
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or any(matches_term(term, node) for term in required.node_selector_terms)


def obstacle(pod: core_v1.Pod, here: Place, everywhere: Sequence[Place] = ()) -> str:
    """Say why a Pod cannot run on a node, or nothing when it can."""
    node = here.node
    if node.spec.unschedulable and not tolerates(pod, _UNSCHEDULABLE):
        return "node(s) were unschedulable"
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not matches_node(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    ports = _host_ports(pod)
    if ports and any(ports & other.host_ports for other in here.tenants):
        return "node(s) didn't have free ports for the requested pod ports"
    return _shortage(pod, here) or _quarrel(pod, node, everywhere or (here,))


def _host_ports(pod: core_v1.Pod) -> set[tuple[str, int]]:
    return {
        (port.protocol or "TCP", port.host_port)
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    }


def _shortage(pod: core_v1.Pod, here: Place) -> str:
    room = here.node.status.allocatable or here.node.status.capacity
    for name, amount in requests_of(pod).items():
        short = here.used.get(name, _ZERO) + amount > room.get(name, _ZERO)
        if short and (name in room or name in _COUNTED or "/" in name) and amount > _ZERO:
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return ""


def _quarrel(pod: core_v1.Pod, node: core_v1.Node, everywhere: Sequence[Place]) -> str:
    """Say which Pods of the same place the Pod must be with, or must not be with."""
    affinity = pod.spec.affinity
    if affinity is None:
        return ""
    if affinity.pod_affinity is not None:
        for term in affinity.pod_affinity.required_during_scheduling_ignored_during_execution:
            alone = _selector(term).matches(pod.metadata.labels) and not _any(pod, term, everywhere)
            if not _near(pod, term, node, everywhere) and not alone:
                return "node(s) didn't match pod affinity rules"
    if affinity.pod_anti_affinity is not None:
        for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
            if _near(pod, term, node, everywhere):
                return "node(s) didn't match pod anti-affinity rules"
    return ""


def _selector(term: core_v1.PodAffinityTerm) -> LabelMatcher:
    return label_selector(term.label_selector)


def _any(pod: core_v1.Pod, term: core_v1.PodAffinityTerm, everywhere: Sequence[Place]) -> bool:
    return any(_means(pod, term, other) for place in everywhere for other in place.tenants)


def _near(
    pod: core_v1.Pod, term: core_v1.PodAffinityTerm, node: core_v1.Node, everywhere: Sequence[Place]
) -> bool:
    here = node.metadata.labels.get(term.topology_key)
    if here is None:
        return False
    return any(
        _means(pod, term, other)
        for place in everywhere
        if place.node.metadata.labels.get(term.topology_key) == here
        for other in place.tenants
    )


def _means(pod: core_v1.Pod, term: core_v1.PodAffinityTerm, other: Tenant) -> bool:
    namespaces = term.namespaces or [pod.metadata.namespace]
    return (
        other.namespace in namespaces
        and other.uid != pod.metadata.uid
        and _selector(term).matches(other.labels)
    )


def is_hopeless(pod: core_v1.Pod, here: Place, reason: str) -> bool:
    """Tell whether an obstacle would stay though all other Pods were taken away."""
    tainted = reason.startswith("node(s) had untolerated taint")
    return reason in UNRESOLVABLE or tainted or bool(_shortage(pod, Place(here.node)))


def explanation(nodes: int, obstacles: Mapping[str, int], hopeless: int) -> str:
    """Put into words why no node will do; on so many of them it would not help to take other Pods away."""
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = ", ".join(sorted(f"{count} {text}" for text, count in obstacles.items()))
    ends: list[str] = []
    if nodes - hopeless:
        ends.append(f"{nodes - hopeless} No preemption victims found for incoming pod")
    if hopeless:
        ends.append(f"{hopeless} Preemption is not helpful for scheduling")
    ending = f"preemption: 0/{nodes} nodes are available: {', '.join(sorted(ends))}."
    return f"0/{nodes} nodes are available: {reasons}. no new claims to deallocate, {ending}"
