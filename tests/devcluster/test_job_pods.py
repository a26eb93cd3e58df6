"""Pod failure policies, success policies and completion indexes of Jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Meta
from kubewright.api.builtin import batch_v1, core_v1
from kubewright.devcluster.job_pods import (
    format_indexes,
    match_failure_policy,
    match_success_policy,
    parse_indexes,
)


def test_consecutive_indexes_are_formatted_as_ranges() -> None:
    assert format_indexes([5, 0, 1, 2, 9, 8]) == "0-2,5,8,9"


@given(indexes=st.sets(st.integers(0, 500)))
def test_formatted_indexes_are_parsed_back(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 501) == indexes


@given(indexes=st.sets(st.integers(0, 50)), below=st.integers(0, 60))
def test_indexes_that_a_job_does_not_have_are_left_out(indexes: set[int], below: int) -> None:
    assert parse_indexes(format_indexes(indexes), below) == {index for index in indexes if index < below}


def test_a_huge_range_costs_no_more_than_the_job_has() -> None:
    assert parse_indexes("0-99999999999", 3) == {0, 1, 2}


@given(text=st.text("0123456789-,x", max_size=12))
def test_malformed_indexes_are_ignored(text: str) -> None:
    assert all(index >= 0 for index in parse_indexes(text, 1000))


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
def test_the_first_matching_rule_decides_about_a_failure(pod: core_v1.Pod, action: str, message: str) -> None:
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
def test_a_success_policy_is_met_by_some_indexes(
    rule: batch_v1.SuccessPolicyRule, done: set[int], enough: bool
) -> None:
    assert match_success_policy(batch_v1.SuccessPolicy(rules=[rule]), done, 10) == (
        "Matched rules at index 0" if enough else ""
    )
    assert match_success_policy(None, done, 10) == ""
