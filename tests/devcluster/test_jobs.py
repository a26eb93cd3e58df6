"""Jobs, on the embedded and on the real control plane."""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from devcluster_workloads import pod_spec, wait_for_events

from kubewright.api import Meta, from_wire, parse
from kubewright.api.builtin import batch_v1, core_v1, meta_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.testing import Cluster, eventually

TRACKING = "batch.kubernetes.io/job-tracking"


def job(name: str, scenario: PodScenario | None = None, **spec: Any) -> batch_v1.Job:
    template = core_v1.PodTemplateSpec(spec=pod_spec())
    template.spec.restart_policy = "Never"
    if scenario is not None:
        template.metadata.annotations[SCENARIO_ANNOTATION] = scenario
    return batch_v1.Job(Meta(name), spec=batch_v1.JobSpec(template=template, **spec))


def has(condition: str) -> Callable[[batch_v1.Job], bool]:
    return lambda found: any(
        item.type == condition and item.status == "True" for item in found.status.conditions
    )


async def pods_of(cluster: Cluster, name: str) -> list[core_v1.Pod]:
    labels = f"batch.kubernetes.io/job-name={name}"
    return list(await cluster.client.list(core_v1.Pod, namespace=cluster.namespace, labels=labels))


async def test_a_job_completes(cluster: Cluster, kubectl: Any) -> None:
    await cluster.create(job("once"))
    done = await cluster.eventually(batch_v1.Job, "once", has("Complete"))
    assert (done.status.succeeded, done.status.failed, done.status.active) == (1, 0, 0)
    assert done.status.start_time is not None
    assert done.status.completion_time is not None
    assert [item.type for item in done.status.conditions] == ["SuccessCriteriaMet", "Complete"]
    assert {item.reason for item in done.status.conditions} == {"CompletionsReached"}
    assert {item.message for item in done.status.conditions} == {"Reached expected number of succeeded pods"}
    assert done.status.uncounted_terminated_pods == batch_v1.UncountedTerminatedPods()
    (pod,) = await pods_of(cluster, "once")
    assert pod.status.phase == "Succeeded"
    assert TRACKING not in pod.metadata.finalizers
    assert pod.metadata.name.startswith("once-")
    await kubectl("wait", "--for=condition=complete", "job/once", "--timeout=120s")
    await wait_for_events(cluster, ("Job", "Completed", "Job completed"))
    await cluster.settled(batch_v1.Job, core_v1.Pod)
    events = await cluster.client.list(core_v1.Event, namespace=cluster.namespace)
    assert {item.type for item in events} == {"Normal"}


async def test_completions_run_in_parallel_up_to_the_limit(cluster: Cluster) -> None:
    made = await cluster.create(job("many", completions=4, parallelism=2))
    most = 0
    # Polling may miss the maximum number of Pods.
    events = cluster.client.watch(
        batch_v1.Job,
        namespace=cluster.namespace,
        fields="metadata.name=many",
        resource_version=made.metadata.resource_version,
    )
    found = made
    async with aclosing(events):
        async for event in events:
            found = from_wire(batch_v1.Job, parse(event.object.raw))
            most = max(most, found.status.active)
            if has("Complete")(found):
                break
    assert found.status.succeeded == 4
    assert most == 2


async def test_an_indexed_job_gives_each_pod_its_number(cluster: Cluster) -> None:
    await cluster.create(job("parts", completions=3, parallelism=3, completion_mode="Indexed"))
    done = await cluster.eventually(batch_v1.Job, "parts", has("Complete"))
    assert done.status.completed_indexes == "0-2"
    pods = await pods_of(cluster, "parts")
    annotation = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod.metadata.annotations[annotation] for pod in pods) == ["0", "1", "2"]
    for pod in pods:
        index = pod.metadata.annotations[annotation]
        assert pod.spec.hostname == f"parts-{index}"
        assert pod.metadata.name.startswith(f"parts-{index}-")
        assert any(item.name == "JOB_COMPLETION_INDEX" for item in pod.spec.containers[0].env)


async def test_a_job_fails_at_its_backoff_limit(cluster: Cluster) -> None:
    await cluster.create(job("doomed", PodScenario.FAIL, backoff_limit=0))
    failed = await cluster.eventually(batch_v1.Job, "doomed", has("Failed"))
    assert failed.status.failed == 1
    assert [item.type for item in failed.status.conditions] == ["FailureTarget", "Failed"]
    message = failed.status.conditions[-1]
    assert (message.reason, message.message) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    await wait_for_events(
        cluster, ("Job", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    )


async def test_a_failure_policy_can_fail_a_job_at_once(cluster: Cluster) -> None:
    codes = batch_v1.PodFailurePolicyOnExitCodesRequirement(operator="In", values=[1])
    rule = batch_v1.PodFailurePolicyRule(action="FailJob", on_exit_codes=codes)
    await cluster.create(
        job("by-policy", PodScenario.FAIL, pod_failure_policy=batch_v1.PodFailurePolicy(rules=[rule]))
    )
    failed = await cluster.eventually(batch_v1.Job, "by-policy", has("Failed"))
    message = failed.status.conditions[-1]
    assert message.reason == "PodFailurePolicy"
    assert message.message.endswith("failed with exit code 1 matching FailJob rule at index 0")
    assert failed.status.failed == 1


async def test_a_success_policy_completes_a_job(cluster: Cluster) -> None:
    rule = batch_v1.SuccessPolicyRule(succeeded_indexes="0")
    made = job("enough", completions=2, parallelism=1, completion_mode="Indexed")
    made.spec.success_policy = batch_v1.SuccessPolicy(rules=[rule])
    await cluster.create(made)
    done = await cluster.eventually(batch_v1.Job, "enough", has("Complete"))
    assert {item.type: item.reason for item in done.status.conditions} == {
        "SuccessCriteriaMet": "SuccessPolicy",
        "Complete": "SuccessPolicy",
    }
    assert done.status.completed_indexes == "0"


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(cluster: Cluster) -> None:
    made = await cluster.create(job("later", suspend=True))
    found = await cluster.eventually(batch_v1.Job, "later", has("Suspended"))
    assert found.status.start_time is None
    assert await pods_of(cluster, "later") == []
    await cluster.client.patch(made, {"spec": {"suspend": False}})
    done = await cluster.eventually(batch_v1.Job, "later", has("Complete"))
    resumed = next(item for item in done.status.conditions if item.type == "Suspended")
    assert (resumed.status, resumed.reason) == ("False", "JobResumed")


async def test_a_job_that_takes_too_long_fails(cluster: Cluster) -> None:
    await cluster.create(job("slow", PodScenario.RUN, active_deadline_seconds=1))
    failed = await cluster.eventually(batch_v1.Job, "slow", has("Failed"))
    assert failed.status.conditions[-1].reason == "DeadlineExceeded"

    async def gone() -> bool:
        return not [pod for pod in await pods_of(cluster, "slow") if pod.status.phase == "Running"]

    await eventually(gone)


async def test_a_finished_job_expires(cluster: Cluster) -> None:
    await cluster.create(job("brief", ttl_seconds_after_finished=0))
    await cluster.eventually_gone(batch_v1.Job, "brief")

    async def gone() -> bool:
        return not await pods_of(cluster, "brief")

    await eventually(gone)


async def test_the_running_pods_of_a_deleted_job_are_deleted(cluster: Cluster) -> None:
    made = await cluster.create(job("long", PodScenario.RUN))

    async def running() -> bool:
        return [pod.status.phase for pod in await pods_of(cluster, "long")] == ["Running"]

    await eventually(running)
    await cluster.client.delete(made, propagation="Background")

    async def gone() -> bool:
        return not await pods_of(cluster, "long")

    await eventually(gone)


def indexed(name: str, scenario: PodScenario | None = None, **spec: Any) -> batch_v1.Job:
    return job(name, scenario, completion_mode="Indexed", **spec)


async def test_indexes_fail_one_by_one(cluster: Cluster) -> None:
    await cluster.create(
        indexed("each", PodScenario.FAIL, completions=2, parallelism=2, backoff_limit_per_index=0)
    )
    failed = await cluster.eventually(batch_v1.Job, "each", has("Failed"))
    assert (failed.status.failed_indexes, failed.status.completed_indexes) == ("0,1", "")
    assert (failed.status.failed, failed.status.succeeded) == (2, 0)
    assert [(item.type, item.reason, item.message) for item in failed.status.conditions] == [
        (name, "FailedIndexes", "Job has failed indexes") for name in ("FailureTarget", "Failed")
    ]
    counts = {
        item.metadata.annotations["batch.kubernetes.io/job-index-failure-count"]
        for item in await pods_of(cluster, "each")
    }
    assert counts == {"0"}


async def test_too_many_failed_indexes_end_a_job(cluster: Cluster) -> None:
    made = indexed(
        "few", PodScenario.FAIL, completions=3, parallelism=1, backoff_limit_per_index=0, max_failed_indexes=0
    )
    await cluster.create(made)
    failed = await cluster.eventually(batch_v1.Job, "few", has("Failed"))
    assert failed.status.failed_indexes == "0"
    message = failed.status.conditions[-1]
    assert (message.reason, message.message) == (
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
    )


async def test_a_failure_policy_can_fail_an_index_at_once(cluster: Cluster) -> None:
    codes = batch_v1.PodFailurePolicyOnExitCodesRequirement(operator="In", values=[1])
    rule = batch_v1.PodFailurePolicyRule(action="FailIndex", on_exit_codes=codes)
    made = indexed("given-up", PodScenario.FAIL, completions=1, parallelism=1, backoff_limit_per_index=5)
    made.spec.pod_failure_policy = batch_v1.PodFailurePolicy(rules=[rule])
    await cluster.create(made)
    failed = await cluster.eventually(batch_v1.Job, "given-up", has("Failed"))
    assert (failed.status.failed_indexes, failed.status.failed) == ("0", 1)


async def test_a_deleted_pod_counts_as_failed(cluster: Cluster) -> None:
    await cluster.create(job("robbed", PodScenario.RUN))
    await cluster.eventually(batch_v1.Job, "robbed", lambda found: found.status.ready == 1)
    (lost,) = await pods_of(cluster, "robbed")
    await cluster.client.delete(lost)
    found = await cluster.eventually(
        batch_v1.Job, "robbed", lambda found: found.status.failed == 1 and not found.status.terminating
    )
    assert found.status.uncounted_terminated_pods == batch_v1.UncountedTerminatedPods()


async def test_pods_deleted_by_lower_parallelism_are_not_failures(cluster: Cluster) -> None:
    made = await cluster.create(job("wide", PodScenario.RUN, completions=3, parallelism=3))
    await cluster.eventually(batch_v1.Job, "wide", lambda found: found.status.ready == 3)
    await cluster.client.patch(made, {"spec": {"parallelism": 1}})
    found = await cluster.eventually(
        batch_v1.Job, "wide", lambda found: found.status.active == 1 and not found.status.terminating
    )
    assert found.status.failed == 0


async def test_a_smaller_indexed_job_keeps_its_first_indexes(cluster: Cluster) -> None:
    made = await cluster.create(indexed("shrunk", PodScenario.RUN, completions=2, parallelism=2))
    await cluster.eventually(batch_v1.Job, "shrunk", lambda found: found.status.ready == 2)
    await cluster.client.patch(made, {"spec": {"completions": 1, "parallelism": 1}})
    found = await cluster.eventually(
        batch_v1.Job, "shrunk", lambda found: found.status.active == 1 and not found.status.terminating
    )
    assert found.status.failed == 0
    left = [item for item in await pods_of(cluster, "shrunk") if item.metadata.deletion_timestamp is None]
    assert [item.metadata.annotations["batch.kubernetes.io/job-completion-index"] for item in left] == ["0"]


async def test_a_smaller_indexed_job_counts_only_the_indexes_that_it_has(cluster: Cluster) -> None:
    made = await cluster.create(indexed("trimmed", PodScenario.RUN, completions=3, parallelism=3))
    await cluster.eventually(batch_v1.Job, "trimmed", lambda found: found.status.ready == 3)
    last = next(
        item
        for item in await pods_of(cluster, "trimmed")
        if item.metadata.annotations["batch.kubernetes.io/job-completion-index"] == "2"
    )
    await cluster.client.patch(
        last, {"metadata": {"annotations": {SCENARIO_ANNOTATION: PodScenario.SUCCEED}}}
    )
    await cluster.eventually(batch_v1.Job, "trimmed", lambda found: found.status.completed_indexes == "2")
    await cluster.client.patch(made, {"spec": {"completions": 1, "parallelism": 1}})
    found = await cluster.eventually(
        batch_v1.Job, "trimmed", lambda found: found.status.active == 1 and not found.status.terminating
    )
    assert (found.status.completed_indexes, found.status.succeeded) == ("", 0)
    assert not found.status.conditions


async def test_a_job_adopts_matching_pods_and_tracks_them(cluster: Cluster) -> None:
    orphan = core_v1.Pod(
        Meta("orphan", labels={"app": "adopted"}, annotations={SCENARIO_ANNOTATION: PodScenario.RUN}),
        spec=pod_spec(),
    )
    orphan.spec.restart_policy = "Never"
    await cluster.create(orphan)
    made = job("adopter", PodScenario.RUN, manual_selector=True)
    made.spec.template.metadata.labels = {"app": "adopted"}
    made.spec.selector = meta_v1.LabelSelector(match_labels={"app": "adopted"})
    owner = await cluster.create(made)
    adopted = await cluster.eventually(core_v1.Pod, "orphan", lambda found: found.metadata.owner_references)
    (reference,) = adopted.metadata.owner_references
    assert (reference.uid, reference.controller, reference.block_owner_deletion) == (
        owner.metadata.uid,
        True,
        True,
    )
    assert adopted.metadata.finalizers == [TRACKING]
    await cluster.eventually(batch_v1.Job, "adopter", lambda found: found.status.active == 1)
    pods = await cluster.client.list(core_v1.Pod, namespace=cluster.namespace, labels="app=adopted")
    assert [item.metadata.name for item in pods] == ["orphan"]


async def test_a_job_releases_pods_that_no_longer_match(cluster: Cluster) -> None:
    made = job("picky", PodScenario.RUN, manual_selector=True)
    made.spec.template.metadata.labels = {"app": "picky"}
    made.spec.selector = meta_v1.LabelSelector(match_labels={"app": "picky"})
    await cluster.create(made)
    await cluster.eventually(batch_v1.Job, "picky", lambda found: found.status.active == 1)
    (pod,) = await cluster.client.list(core_v1.Pod, namespace=cluster.namespace, labels="app=picky")
    await cluster.client.patch(pod, {"metadata": {"labels": {"app": "other"}}})
    released = await cluster.eventually(
        core_v1.Pod, pod.metadata.name, lambda found: not found.metadata.owner_references
    )
    assert released.metadata.finalizers == []


async def test_a_job_follows_the_commands_of_its_pods(cluster: Cluster) -> None:
    sleeping, failing = job("sleeping"), job("failing", backoff_limit=0)
    sleeping.spec.template.spec.containers[0].command = ["sleep", "3600"]
    failing.spec.template.spec.containers[0].command = ["sh", "-c", "exit 3"]
    await cluster.create(sleeping)
    await cluster.create(failing)
    failed = await cluster.eventually(batch_v1.Job, "failing", has("Failed"))
    assert [item.reason for item in failed.status.conditions if item.type == "Failed"] == [
        "BackoffLimitExceeded"
    ]
    (pod,) = await pods_of(cluster, "failing")
    state = pod.status.container_statuses[0].state.terminated
    assert state is not None
    assert (pod.status.phase, state.exit_code, state.reason) == ("Failed", 3, "Error")
    running = await cluster.eventually(batch_v1.Job, "sleeping", lambda found: found.status.ready == 1)
    assert running.status.active == 1
