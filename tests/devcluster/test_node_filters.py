import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Meta, ObjectKey, Quantity, encode, raw_object
from kubewright.api.builtin import core_v1, meta_v1
from kubewright.controller import Change
from kubewright.devcluster.node_filters import (
    AssignedPod,
    NodeInfo,
    fit_error_message,
    matches_term,
    preemption_error,
    requests_of,
    tolerates,
    unschedulable_reason,
)
from kubewright.devcluster.scheduler import Allocations


def node(**spec: object) -> core_v1.Node:
    made = core_v1.Node(Meta("n1", labels={"disk": "ssd", "cores": "8", "kubernetes.io/hostname": "n1"}))
    made.status.allocatable = {"cpu": Quantity("2"), "memory": Quantity("1Gi"), "pods": Quantity("3")}
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


def pod(cpu: str = "", **spec: object) -> core_v1.Pod:
    requests = {"cpu": Quantity(cpu)} if cpu else {}
    container = core_v1.Container(
        name="main", image="nginx", resources=core_v1.ResourceRequirements(requests=requests)
    )
    made = core_v1.Pod(
        Meta("p", namespace="default", uid="p", labels={"app": "p"}),
        spec=core_v1.PodSpec(containers=[container]),
    )
    for key, value in spec.items():
        setattr(made.spec, key, value)
    return made


def node_info(where: core_v1.Node, *others: core_v1.Pod) -> NodeInfo:
    allocations = Allocations()
    for number, other in enumerate(others):
        other.metadata.uid = f"other-{number}"
        allocations.put(AssignedPod.of(other, where.metadata.name))
    return allocations.node_info(where)


def test_a_pod_fits_an_empty_node() -> None:
    assert unschedulable_reason(pod("500m"), node_info(node())) == ""


def test_requests_of_other_pods_on_the_node_count() -> None:
    assert unschedulable_reason(pod("1500m"), node_info(node(), pod("1"))) == "Insufficient cpu"
    assert unschedulable_reason(pod(), node_info(node(), pod(), pod(), pod())) == "Too many pods"


def test_a_finished_pod_releases_its_resources() -> None:
    allocations, here = Allocations(), node()
    running = pod("2", node_name="n1")
    allocations.observe(seen(None, running))
    assert unschedulable_reason(pod("1"), allocations.node_info(here)) == "Insufficient cpu"
    ended = pod("2", node_name="n1")
    ended.status.phase = "Succeeded"
    allocations.observe(seen(running, ended))
    assert unschedulable_reason(pod("1"), allocations.node_info(here)) == ""


def seen(old: core_v1.Pod | None, new: core_v1.Pod | None) -> Change[core_v1.Pod]:
    raws = [raw_object(encode(state)) if state is not None else None for state in (old, new)]
    return Change(core_v1.Pod, ObjectKey("default", "p"), raws[0], raws[1])


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2", ""]), st.sampled_from(["1", "500m"]))
    )
)
def test_allocations_equal_the_sum_of_the_pods_requests(steps: list[tuple[str, str, str]]) -> None:
    allocations, present = Allocations(), dict[str, core_v1.Pod]()
    for uid, where, cpu in steps:
        old = present.pop(uid, None)
        new = None
        if where:
            new = present[uid] = pod(cpu, node_name=where)
            new.metadata.uid = uid
        if old is not None or new is not None:
            allocations.observe(seen(old, new))
    for name in ("n1", "n2"):
        here = node()
        here.metadata.name = name
        there = [item for item in present.values() if item.spec.node_name == name]
        account = allocations.node_info(here)
        assert len(account.pods) == len(there)
        total = sum((requests_of(item)["cpu"] for item in there), Quantity("0"))
        assert account.used.get("cpu", Quantity("0")) == total


def test_init_containers_count_by_their_maximum() -> None:
    subject = pod("100m")
    subject.spec.init_containers = [
        core_v1.Container(
            name="prepare",
            image="busybox",
            resources=core_v1.ResourceRequirements(requests={"cpu": Quantity("1")}),
        )
    ]
    assert requests_of(subject)["cpu"] == Quantity("1")


def test_a_cordoned_node_accepts_no_pods() -> None:
    assert unschedulable_reason(pod(), node_info(node(unschedulable=True))) == "node(s) were unschedulable"


def test_a_taint_excludes_pods_that_do_not_tolerate_it() -> None:
    tainted = node(taints=[core_v1.Taint(key="dedicated", value="db", effect="NoSchedule")])
    assert unschedulable_reason(pod(), node_info(tainted)) == "node(s) had untolerated taint(s)"
    bearing = pod(tolerations=[core_v1.Toleration(key="dedicated", operator="Exists")])
    assert unschedulable_reason(bearing, node_info(tainted)) == ""


def test_a_node_selector_must_match() -> None:
    reason = unschedulable_reason(pod(node_selector={"disk": "hdd"}), node_info(node()))
    assert reason == "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("disk", "In", ["ssd", "hdd"], True),
        ("disk", "NotIn", ["ssd"], False),
        ("gpu", "NotIn", ["a100"], True),
        ("gpu", "Exists", [], False),
        ("gpu", "DoesNotExist", [], True),
        ("cores", "Gt", ["4"], True),
        ("cores", "Lt", ["4"], False),
        ("disk", "Gt", ["4"], False),
    ],
)
def test_node_affinity_operators_match_labels(
    key: str, operator: str, values: list[str], matches: bool
) -> None:
    requirement = core_v1.NodeSelectorRequirement(key=key, operator=operator, values=values)
    term = core_v1.NodeSelectorTerm(match_expressions=[requirement])
    assert matches_term(term, node()) is matches


def test_an_empty_term_matches_no_node() -> None:
    assert not matches_term(core_v1.NodeSelectorTerm(), node())


def test_pod_anti_affinity_excludes_a_node() -> None:
    term = core_v1.PodAffinityTerm(
        topology_key="kubernetes.io/hostname",
        label_selector=meta_v1.LabelSelector(match_labels={"app": "p"}),
    )
    shy = pod(
        affinity=core_v1.Affinity(
            pod_anti_affinity=core_v1.PodAntiAffinity(
                required_during_scheduling_ignored_during_execution=[term]
            )
        )
    )
    assert (
        unschedulable_reason(shy, node_info(node(), pod())) == "node(s) didn't match pod anti-affinity rules"
    )
    assert unschedulable_reason(shy, node_info(node())) == ""


def test_a_host_port_is_used_once_per_node() -> None:
    subject = pod()
    subject.spec.containers[0].ports = [core_v1.ContainerPort(container_port=80, host_port=80)]
    other = pod()
    other.spec.containers[0].ports = subject.spec.containers[0].ports
    reason = unschedulable_reason(subject, node_info(node(), other))
    assert reason == "node(s) didn't have free ports for the requested pod ports"


def test_the_message_is_that_of_kube_scheduler() -> None:
    assert fit_error_message(1, {"Insufficient cpu": 1}, preemption_error(1, unresolvable=0)) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert fit_error_message(0, {}) == "no nodes available to schedule pods"


effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])


@given(key=st.sampled_from("ab"), value=st.sampled_from("xy"), effect=effects)
def test_tolerations_match_taints_by_key_and_value(key: str, value: str, effect: str) -> None:
    taint = core_v1.Taint(key=key, value=value, effect=effect)
    assert tolerates(pod(tolerations=[core_v1.Toleration(operator="Exists")]), taint)
    assert tolerates(pod(tolerations=[core_v1.Toleration(key=key, value=value)]), taint)
    assert not tolerates(pod(tolerations=[core_v1.Toleration(key=key, value="other")]), taint)
    assert not tolerates(pod(), taint)
