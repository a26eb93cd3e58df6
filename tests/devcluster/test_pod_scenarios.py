from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Meta, OwnerReference
from kubewright.api.builtin import core_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.devcluster.addresses import PodAddresses
from kubewright.devcluster.pod_lifecycle import backoff
from kubewright.devcluster.pod_scenarios import advance, stop

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = PodAddresses("127.0.0.1", "10.244.0.7")
SECOND = timedelta(seconds=1)


def pod(scenario: PodScenario | None = None, policy: str = "Always", **container: object) -> core_v1.Pod:
    annotations = {SCENARIO_ANNOTATION: str(scenario)} if scenario is not None else {}
    spec = core_v1.PodSpec(
        containers=[core_v1.Container(name="main", image="nginx:1.25")], restart_policy=policy
    )
    for key, value in container.items():
        setattr(spec.containers[0], key, value)
    return core_v1.Pod(
        Meta("demo", namespace="default", uid="u", generation=1, annotations=annotations),
        spec=spec,
        status=core_v1.PodStatus(phase="Pending"),
    )


def lived(subject: core_v1.Pod, now: datetime) -> core_v1.Pod:
    return msgspec.structs.replace(subject, status=advance(subject, HERE, now).status)


def condition(subject: core_v1.Pod, name: str) -> str:
    return next(item.status for item in subject.status.conditions if item.type == name)


def test_a_pod_runs_and_is_ready_at_once() -> None:
    update = advance(pod(), HERE, NOW)
    assert (update.status.phase, update.status.pod_ip, update.requeue_at) == ("Running", "10.244.0.7", None)
    assert all(item.ready and item.started for item in update.status.container_statuses)
    assert [event.reason for event in update.events] == ["Pulled", "Created", "Started"]


def test_readiness_waits_for_the_probes_initial_delay() -> None:
    probe = core_v1.Probe(initial_delay_seconds=5)
    update = advance(pod(readiness_probe=probe), HERE, NOW)
    assert not update.status.container_statuses[0].ready
    assert update.requeue_at == NOW + 5 * SECOND
    later = lived(lived(pod(readiness_probe=probe), NOW), NOW + 5 * SECOND)
    assert condition(later, "Ready") == "True"


def test_a_container_has_not_started_before_its_startup_probe() -> None:
    probe = core_v1.Probe(initial_delay_seconds=3)
    young = lived(pod(startup_probe=probe), NOW)
    assert young.status.container_statuses[0].started is False
    assert lived(young, NOW + 3 * SECOND).status.container_statuses[0].ready


def test_a_readiness_gate_holds_readiness_back_until_its_condition_is_true() -> None:
    gated = pod()
    gated.spec.readiness_gates = [core_v1.PodReadinessGate(condition_type="example.com/open")]
    gated = lived(gated, NOW)
    assert (condition(gated, "Ready"), condition(gated, "ContainersReady")) == ("False", "True")
    gated.status.conditions.append(core_v1.PodCondition(type="example.com/open", status="True"))
    assert condition(lived(gated, NOW), "Ready") == "True"


def test_a_crashing_container_restarts_at_once_and_then_after_growing_pauses() -> None:
    subject, moment, starts = pod(PodScenario.CRASH_LOOP), NOW, [NOW]
    for _ in range(60):
        update = advance(subject, HERE, moment)
        subject = msgspec.structs.replace(subject, status=update.status)
        running = update.status.container_statuses[0].state.running
        if running is not None and running.started_at != starts[-1]:
            starts.append(running.started_at or moment)
        assert update.requeue_at is not None
        moment = update.requeue_at
    pauses = [(later - earlier).total_seconds() - 1 for earlier, later in pairwise(starts)]
    assert pauses[:8] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert subject.status.container_statuses[0].restart_count == len(starts) - 1


def test_the_messages_of_a_crash_loop_are_the_kubelets() -> None:
    subject = pod(PodScenario.CRASH_LOOP)
    for seconds in range(3):
        subject = lived(subject, NOW + seconds * SECOND)
    waiting = subject.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"
    assert waiting.message == "back-off 10s restarting failed container=main pod=demo_default(u)"


@pytest.mark.parametrize(
    ("scenario", "policy", "phase", "code"),
    [
        (PodScenario.SUCCEED, "Never", "Succeeded", 0),
        (PodScenario.SUCCEED, "OnFailure", "Succeeded", 0),
        (PodScenario.FAIL, "Never", "Failed", 1),
        (PodScenario.OUT_OF_MEMORY, "Never", "Failed", 137),
    ],
)
def test_a_pod_that_is_not_restarted_ends(scenario: PodScenario, policy: str, phase: str, code: int) -> None:
    ended = lived(lived(pod(scenario, policy), NOW), NOW + SECOND)
    assert ended.status.phase == phase
    state = ended.status.container_statuses[0].state.terminated
    assert state is not None
    assert state.exit_code == code
    assert condition(ended, "Ready") == "False"
    assert lived(ended, NOW + 90 * SECOND) == ended


def test_a_missing_image_keeps_the_pod_pending() -> None:
    subject = lived(pod(PodScenario.IMAGE_MISSING), NOW)
    waiting = subject.status.container_statuses[0].state.waiting
    assert subject.status.phase == "Pending"
    assert waiting is not None
    assert waiting.reason == "ImagePullBackOff"


def test_a_removed_scenario_lets_the_pod_run() -> None:
    subject = lived(pod(PodScenario.IMAGE_MISSING), NOW)
    subject.metadata.annotations.clear()
    assert lived(subject, NOW).status.phase == "Running"


def test_a_slow_pull_ends() -> None:
    slow = advance(pod(PodScenario.SLOW), HERE, NOW)
    assert (slow.status.phase, slow.requeue_at) == ("Pending", NOW + 30 * SECOND)
    assert lived(lived(pod(PodScenario.SLOW), NOW), NOW + 30 * SECOND).status.phase == "Running"


def test_a_failing_liveness_probe_restarts_the_container() -> None:
    probe = core_v1.Probe(period_seconds=2, failure_threshold=3)
    young = lived(pod(PodScenario.UNHEALTHY, liveness_probe=probe), NOW)
    update = advance(young, HERE, NOW + 4 * SECOND)
    assert update.status.container_statuses[0].restart_count == 1
    assert {event.reason for event in update.events} >= {"Unhealthy", "Killing"}


def test_a_pod_that_ran_too_long_fails() -> None:
    subject = pod()
    subject.spec.active_deadline_seconds = 60
    update = advance(subject, HERE, NOW)
    assert update.requeue_at == NOW + 60 * SECOND
    ended = lived(lived(subject, NOW), NOW + 60 * SECOND)
    assert (ended.status.phase, ended.status.reason) == ("Failed", "DeadlineExceeded")


def test_init_containers_end_and_sidecars_run_along() -> None:
    subject = pod()
    subject.spec.init_containers = [
        core_v1.Container(name="prepare", image="busybox"),
        core_v1.Container(name="proxy", image="envoy", restart_policy="Always"),
    ]
    prepared, proxy = lived(subject, NOW).status.init_container_statuses
    assert prepared.state.terminated is not None
    assert proxy.state.running is not None
    assert proxy.ready


def of_job(subject: core_v1.Pod) -> core_v1.Pod:
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="job", uid="j", controller=True)
    subject.metadata.owner_references = [owner]
    return subject


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_a_jobs_pod_that_sleeps_runs_on() -> None:
    subject = lived(of_job(pod(policy="Never", command=["sleep", "60"])), NOW)
    assert lived(subject, NOW + 59 * SECOND).status.phase == "Running"
    assert lived(subject, NOW + 60 * SECOND).status.phase == "Succeeded"


@pytest.mark.parametrize(
    ("command", "seconds", "code"),
    [(shell("exit 3"), 1, 3), (shell("sleep 5; exit 4"), 5, 4), (["false"], 1, 1), (["true"], 1, 0)],
)
def test_a_command_ends_with_its_exit_code(command: list[str], seconds: int, code: int) -> None:
    subject = lived(pod(policy="Never", command=command), NOW)
    assert subject.status.phase == "Running"
    ended = lived(subject, NOW + seconds * SECOND)
    state = ended.status.container_statuses[0].state.terminated
    assert state is not None
    assert (state.exit_code, state.reason) == (code, "Error" if code else "Completed")
    assert ended.status.phase == ("Failed" if code else "Succeeded")


def test_a_command_that_fails_is_restarted_with_backoff() -> None:
    subject = pod(policy="OnFailure", command=["false"])
    for seconds in range(3):
        subject = lived(subject, NOW + seconds * SECOND)
    (status,) = subject.status.container_statuses
    assert status.state.waiting is not None
    assert (status.state.waiting.reason, status.restart_count) == ("CrashLoopBackOff", 1)


def test_an_unknown_command_of_a_job_succeeds_and_of_another_pod_runs() -> None:
    unknown = pod(policy="Never", command=["./program"])
    assert advance(unknown, HERE, NOW).requeue_at is None
    assert lived(lived(of_job(unknown), NOW), NOW + SECOND).status.phase == "Succeeded"


def test_annotations_say_what_a_container_does() -> None:
    subject = pod(policy="Never", command=["./program"])
    subject.metadata.annotations["kubewright.dev/simulated-command"] = "exit 5"
    ended = lived(lived(subject, NOW), NOW + SECOND)
    state = ended.status.container_statuses[0].state.terminated
    assert state is not None
    assert state.exit_code == 5
    subject.metadata.annotations["kubewright.dev/simulated-command.main"] = "sleep infinity"
    assert advance(subject, HERE, NOW).requeue_at is None


def test_the_table_says_what_an_image_does() -> None:
    subject = lived(pod(policy="Never"), NOW)
    for image in ("nginx:1.25", "nginx"):
        update = advance(subject, HERE, NOW + 3 * SECOND, {image: "sleep 3; exit 2"})
        assert update.status.phase == "Failed"


def test_init_containers_run_one_after_the_other() -> None:
    subject = pod()
    subject.spec.init_containers = [
        core_v1.Container(name="first", image="busybox", command=["sleep", "5"]),
        core_v1.Container(name="second", image="busybox", command=["sleep", "3"]),
    ]
    subject = lived(subject, NOW)
    first, second = subject.status.init_container_statuses
    assert subject.status.phase == "Pending"
    assert first.state.running is not None
    assert second.state.waiting is not None
    (main,) = subject.status.container_statuses
    assert main.state.waiting is not None
    assert main.state.waiting.reason == "PodInitializing"
    initialized = next(item for item in subject.status.conditions if item.type == "Initialized")
    assert (initialized.status, initialized.reason) == ("False", "ContainersNotInitialized")
    assert initialized.message == "containers with incomplete status: [first second]"
    subject = lived(subject, NOW + 5 * SECOND)
    assert [item.ready for item in subject.status.init_container_statuses] == [True, False]
    subject = lived(subject, NOW + 8 * SECOND)
    assert subject.status.phase == "Running"
    assert condition(subject, "Initialized") == condition(subject, "Ready") == "True"


def test_a_failed_init_container_fails_a_pod_that_is_never_restarted() -> None:
    subject = pod(policy="Never")
    subject.spec.init_containers = [core_v1.Container(name="first", image="busybox", command=shell("exit 2"))]
    ended = lived(lived(subject, NOW), NOW + SECOND)
    assert ended.status.phase == "Failed"
    state = ended.status.init_container_statuses[0].state.terminated
    assert state is not None
    assert state.exit_code == 2


def test_a_failed_init_container_is_restarted_with_backoff() -> None:
    subject = pod()
    subject.spec.init_containers = [core_v1.Container(name="first", image="busybox", command=["false"])]
    for seconds in range(3):
        subject = lived(subject, NOW + seconds * SECOND)
    (first,) = subject.status.init_container_statuses
    assert first.state.waiting is not None
    assert first.state.waiting.reason == "CrashLoopBackOff"
    assert subject.status.phase == "Pending"


def test_a_stopped_server_pod_is_not_ready_and_has_succeeded() -> None:
    subject = lived(pod(), NOW)
    update = stop(subject, HERE, NOW + SECOND)
    assert update.status.phase == "Succeeded"
    assert [event.message for event in update.events] == ["Stopping container main"]
    assert {item.type: item.status for item in update.status.conditions}["Ready"] == "False"


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_a_stopped_task_pod_has_failed(policy: str) -> None:
    update = stop(lived(pod(policy=policy), NOW), HERE, NOW + SECOND)
    assert update.status.phase == "Failed"
    end = update.status.container_statuses[0].state.terminated
    assert end is not None
    assert (end.exit_code, end.reason) == (143, "Error")


@given(restarts=st.integers(0, 10**6))
def test_backoff_grows_to_five_minutes_and_no_further(restarts: int) -> None:
    assert backoff(restarts) <= backoff(restarts + 1) <= timedelta(minutes=5)


_COMMANDS = st.sampled_from(
    [[], ["true"], ["false"], ["sleep", "7"], ["sleep", "infinity"], shell("sleep 30; exit 3")]
)


@given(
    scenario=st.sampled_from(PodScenario) | st.none(),
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    commands=st.lists(_COMMANDS, max_size=3),
    waits=st.lists(st.floats(0, 400), max_size=20),
)
def test_computing_the_status_twice_changes_nothing(
    scenario: PodScenario | None, policy: str, commands: list[list[str]], waits: list[float]
) -> None:
    subject, moment = pod(scenario, policy), NOW
    subject.spec.containers[0].command = commands[0] if commands else []
    subject.spec.init_containers = [
        core_v1.Container(
            name=f"init-{number}", image="i", command=command, restart_policy=["", "Always"][number]
        )
        for number, command in enumerate(commands[1:])
    ]
    for wait in waits:
        moment += timedelta(seconds=wait)
        subject = lived(subject, moment)
        update = advance(subject, HERE, moment)
        assert update.status == subject.status or update.requeue_at is None or update.requeue_at <= moment
        assert update.requeue_at is None or update.requeue_at > moment
        if subject.status.phase in ("Succeeded", "Failed"):
            assert policy != "Always"
