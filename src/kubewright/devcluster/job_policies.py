"""What a Job says about single Pods and indexes: which failures end it or do not count, which successes suffice."""

from collections.abc import Collection

from kubewright.api.builtin import batch_v1, core_v1
from kubewright.devcluster.job_indexes import parse_indexes


def judge(policy: batch_v1.PodFailurePolicy | None, pod: core_v1.Pod) -> tuple[str, str]:
    """Give what a Pod's failure leads to, `Count` unless a rule says otherwise, and the words for it."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        told = ""
        if rule.on_exit_codes is not None:
            told = _by_exit_code(rule.on_exit_codes, pod, where)
        elif rule.on_pod_conditions:
            told = _by_condition(rule.on_pod_conditions, pod, where)
        if told:
            return rule.action, f"{told} matching {rule.action} rule at index {number}"
    return "Count", ""


def _by_exit_code(rule: batch_v1.PodFailurePolicyOnExitCodesRequirement, pod: core_v1.Pod, where: str) -> str:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        end = status.state.terminated
        if end is None or end.exit_code == 0 or rule.container_name not in (None, "", status.name):
            continue
        if (end.exit_code in rule.values) == (rule.operator == "In"):
            return f"Container {status.name} for pod {where} failed with exit code {end.exit_code}"
    return ""


def _by_condition(
    patterns: list[batch_v1.PodFailurePolicyOnPodConditionsPattern], pod: core_v1.Pod, where: str
) -> str:
    for pattern in patterns:
        for item in pod.status.conditions:
            if (item.type, item.status) == (pattern.type, pattern.status or "True"):
                return f"Pod {where} has condition {item.type}"
    return ""


def success_told(policy: batch_v1.SuccessPolicy | None, done: Collection[int], completions: int) -> str:
    """Say which rule declares the Job of so many indexes a success; nothing while none does."""
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        named = parse_indexes(rule.succeeded_indexes, completions) if rule.succeeded_indexes else None
        counted = set(done) if named is None else named & set(done)
        needed = rule.succeeded_count if rule.succeeded_count is not None else len(named or ())
        if len(counted) >= needed and needed > 0:
            return f"Matched rules at index {number}"
    return ""
