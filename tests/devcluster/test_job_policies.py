"""What a Job says about single Pods and indexes."""

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.devcluster.job_pods import match_failure_policy, match_success_policy


def failed(code: int, condition: str = "") -> core_v1.Pod:
    end = core_v1.ContainerStateTerminated(exit_code=code)
    state = core_v1.ContainerState(terminated=end)
    status = core_v1.ContainerStatus(
        name="main", image="i", image_id="", ready=False, restart_count=0, state=state
    )
    conditions = [core_v1.PodCondition(type=condition, status="True")] if condition else []
    return core_v1.Pod(
        Meta("p", namespace="n"),
        spec=core_v1.PodSpec(containers=[]),
        status=core_v1.PodStatus(phase="Failed", container_statuses=[status], conditions=conditions),
    )


def on_codes(action: str, operator: str, *values: int) -> batch_v1.PodFailurePolicyRule:
    codes = batch_v1.PodFailurePolicyOnExitCodesRequirement(operator=operator, values=list(values))
    return batch_v1.PodFailurePolicyRule(action=action, on_exit_codes=codes)


POLICY = batch_v1.PodFailurePolicy(
    rules=[
        on_codes("FailJob", "In", 42),
        batch_v1.PodFailurePolicyRule(
            action="Ignore",
            on_pod_conditions=[
                batch_v1.PodFailurePolicyOnPodConditionsPattern(type="DisruptionTarget", status="True")
            ],
        ),
        on_codes("Count", "NotIn", 1),
    ]
)


@pytest.mark.parametrize(
    ("pod", "action", "message"),
    [
        (
            failed(42),
            "FailJob",
            "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 0",
        ),
        (
            failed(1, "DisruptionTarget"),
            "Ignore",
            "Pod n/p has condition DisruptionTarget matching Ignore rule at index 1",
        ),
        (
            failed(3),
            "Count",
            "Container main for pod n/p failed with exit code 3 matching Count rule at index 2",
        ),
        (failed(1), "Count", ""),
    ],
)
def test_the_first_rule_that_fits_judges_a_failure(pod: core_v1.Pod, action: str, message: str) -> None:
    assert match_failure_policy(POLICY, pod) == (action, message)
    assert match_failure_policy(None, pod) == ("Count", "")


@pytest.mark.parametrize(
    ("rule", "done", "enough"),
    [
        (batch_v1.SuccessPolicyRule(succeeded_indexes="0,2-3"), {0, 2}, False),
        (batch_v1.SuccessPolicyRule(succeeded_indexes="0,2-3"), {0, 2, 3}, True),
        (batch_v1.SuccessPolicyRule(succeeded_indexes="0,2-3", succeeded_count=1), {1, 3}, True),
        (batch_v1.SuccessPolicyRule(succeeded_count=2), {5}, False),
        (batch_v1.SuccessPolicyRule(succeeded_count=2), {5, 7}, True),
    ],
)
def test_some_successes_may_suffice(rule: batch_v1.SuccessPolicyRule, done: set[int], enough: bool) -> None:
    assert match_success_policy(batch_v1.SuccessPolicy(rules=[rule]), done, 10) == (
        "Matched rules at index 0" if enough else ""
    )
    assert match_success_policy(None, done, 10) == ""
