"""How long a Pod stays with taints that drive Pods away."""

from datetime import timedelta

from kubewright.api.builtin import core_v1
from kubewright.devcluster.evictions import patience

TAINT = core_v1.Taint(key="broken", effect="NoExecute")


def tolerant(*tolerations: core_v1.Toleration) -> core_v1.Pod:
    return core_v1.Pod(spec=core_v1.PodSpec(containers=[], tolerations=list(tolerations)))


def test_a_pod_without_a_toleration_goes_at_once() -> None:
    assert patience(tolerant(), [TAINT]) == timedelta(0)


def test_a_pod_that_tolerates_a_taint_stays() -> None:
    assert patience(tolerant(core_v1.Toleration(key="broken", operator="Exists")), [TAINT]) is None


def test_the_shortest_of_its_tolerations_counts() -> None:
    long = core_v1.Toleration(key="broken", operator="Exists", toleration_seconds=300)
    short = core_v1.Toleration(operator="Exists", toleration_seconds=5)
    assert patience(tolerant(long, short), [TAINT]) == timedelta(seconds=5)


def test_a_node_without_such_taints_keeps_everybody() -> None:
    assert patience(tolerant(), []) is None
