"""Simulated Pods: the next status is computed from the Pod, its scenario annotation and the time (pure functions)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from kubewright.api.builtin import core_v1
from kubewright.devcluster.addresses import PodAddresses
from kubewright.devcluster.pod_lifecycle import (
    CRASH_LOOP,
    PodEvent,
    PodUpdate,
    backoff,
    conditions_of,
    crash_loop_backoff,
    deadline_exceeded,
    may_restart,
    start_events,
    started_status,
    status_at,
    terminated_status,
    waiting_status,
)
from kubewright.devcluster.workloads import is_pod_finished, is_terminal_phase

SCENARIO_ANNOTATION = "kubewright.dev/pod-scenario"
RUN_TIME = timedelta(seconds=1)
"""Run time of a container that exits by itself; statuses have a resolution of one second."""
SLOW_PULL = timedelta(seconds=30)
INTERRUPTED = 143
"""Exit code of a process that SIGTERM ended."""


class PodScenario(StrEnum):
    """How a simulated Pod behaves.

    `FAIL` and `CRASH_LOOP` both exit with code 1; the restart policy makes the difference. `UNHEALTHY` fails its
    liveness probe, if it has one. `SLOW` pulls its image for 30 seconds.
    """

    RUN = "run"
    SUCCEED = "succeed"
    FAIL = "fail"
    CRASH_LOOP = "crash-loop"
    OUT_OF_MEMORY = "out-of-memory"
    IMAGE_MISSING = "image-missing"
    NEVER_READY = "never-ready"
    UNHEALTHY = "unhealthy"
    SLOW = "slow"


_KNOWN = frozenset(PodScenario)


def scenario_of(pod: core_v1.Pod) -> PodScenario:
    """Return a Pod's scenario: the annotation's if it is valid, else `succeed` for a Pod of a Job and `run` for others."""
    name = pod.metadata.annotations.get(SCENARIO_ANNOTATION, "")
    if name in _KNOWN:
        return PodScenario(name)
    of_job = any(owner.kind == "Job" and owner.controller for owner in pod.metadata.owner_references)
    return PodScenario.SUCCEED if of_job else PodScenario.RUN


_EXITS = {
    PodScenario.SUCCEED: (0, "Completed"),
    PodScenario.FAIL: (1, "Error"),
    PodScenario.CRASH_LOOP: (1, "Error"),
    PodScenario.OUT_OF_MEMORY: (137, "OOMKilled"),
    PodScenario.UNHEALTHY: (137, "Error"),
}


@dataclass(slots=True)
class ContainerUpdate:
    """The new status of a container, when to compute it again, and Events to publish."""

    status: core_v1.ContainerStatus
    requeue_at: datetime | None = None
    events: list[PodEvent] = field(default_factory=list[PodEvent])


@dataclass(frozen=True, slots=True)
class ContainerInput:
    """The input for a container's next status."""

    pod: core_v1.Pod
    container: core_v1.Container
    before: core_v1.ContainerStatus | None
    scenario: PodScenario
    policy: str
    now: datetime

    @property
    def moment(self) -> datetime:
        """The current time in whole seconds, as in a status."""
        return self.now.replace(microsecond=0)


def advance_container(given: ContainerInput) -> ContainerUpdate:
    """Return the next status of a container whose image is present."""
    before = given.before
    if before is None or before.state.running is None:
        if before is not None and before.state.terminated is not None:
            return ContainerUpdate(before)
        return _wait_or_start(given, before)
    began = before.state.running.started_at or given.moment
    span = run_time(given.container, given.scenario)
    if span is not None and given.now >= began + span:
        return _end(given, before, began)
    return _run(given, began, before.restart_count, before.last_state, [])


def run_time(container: core_v1.Container, scenario: PodScenario) -> timedelta | None:
    """Return how long a container runs until it exits or is killed; None means forever."""
    if scenario is PodScenario.UNHEALTHY:
        probe = container.liveness_probe
        if probe is None:
            return None
        return timedelta(
            seconds=probe.initial_delay_seconds
            + max(probe.period_seconds, 1) * max(probe.failure_threshold - 1, 1)
        )
    return RUN_TIME if scenario in _EXITS else None


def _wait_or_start(given: ContainerInput, before: core_v1.ContainerStatus | None) -> ContainerUpdate:
    if before is None:
        return _run(given, given.moment, 0, core_v1.ContainerState(), start_events(given.container))
    restarts, last = before.restart_count, before.last_state
    if before.state.waiting is not None and before.state.waiting.reason == CRASH_LOOP:
        ended = last.terminated.finished_at if last.terminated is not None else None
        due = (ended or given.moment) + backoff(restarts)
        if given.now < due:
            return ContainerUpdate(before, due)
        restarts += 1
    return _run(given, given.moment, restarts, last, start_events(given.container))


def _run(
    given: ContainerInput,
    began: datetime,
    restarts: int,
    last: core_v1.ContainerState,
    events: list[PodEvent],
) -> ContainerUpdate:
    container, now = given.container, given.now
    startup, readiness = container.startup_probe, container.readiness_probe
    started_at = began + timedelta(seconds=startup.initial_delay_seconds if startup is not None else 0)
    delay = timedelta(seconds=readiness.initial_delay_seconds if readiness is not None else 0)
    ready_at = max(started_at, began + delay)
    never = given.scenario is PodScenario.NEVER_READY
    state = core_v1.ContainerState(running=core_v1.ContainerStateRunning(started_at=began))
    status = started_status(given.pod, container, restarts, state)
    status.last_state = last
    status.started = now >= started_at
    status.ready = now >= ready_at and not never
    moments = [started_at] if never else [started_at, ready_at]
    span = run_time(container, given.scenario)
    if span is not None:
        moments.append(began + span)
    if never and readiness is not None and events:
        events = [
            *events,
            PodEvent("Unhealthy", "Readiness probe failed: simulated by the Pod's scenario", warning=True),
        ]
    return ContainerUpdate(status, min((moment for moment in moments if moment > now), default=None), events)


def _end(given: ContainerInput, before: core_v1.ContainerStatus, began: datetime) -> ContainerUpdate:
    code, reason = _EXITS[given.scenario]
    container, restarts = given.container, before.restart_count
    end = core_v1.ContainerStateTerminated(
        exit_code=code,
        reason=reason,
        started_at=began,
        finished_at=given.moment,
        container_id=before.container_id,
    )
    events: list[PodEvent] = []
    if given.scenario is PodScenario.UNHEALTHY:
        killing = f"Container {container.name} failed liveness probe, will be restarted"
        events = [
            PodEvent("Unhealthy", "Liveness probe failed: simulated by the Pod's scenario", warning=True),
            PodEvent("Killing", killing),
        ]
    ended = core_v1.ContainerState(terminated=end)
    if not may_restart(given.policy, code):
        status = started_status(given.pod, container, restarts, ended)
        status.last_state, status.started = before.last_state, False
        return ContainerUpdate(status, None, events)
    if restarts == 0:
        return _run(given, given.moment, 1, ended, [*events, *start_events(container)])
    return _back_off(given, restarts, ended, events)


def _back_off(
    given: ContainerInput, restarts: int, ended: core_v1.ContainerState, events: list[PodEvent]
) -> ContainerUpdate:
    container, pod = given.container, given.pod
    text, event = crash_loop_backoff(pod, container, restarts)
    waits = core_v1.ContainerStateWaiting(reason=CRASH_LOOP, message=text)
    status = started_status(pod, container, restarts, core_v1.ContainerState(waiting=waits))
    status.last_state, status.started = ended, False
    return ContainerUpdate(status, given.moment + backoff(restarts), [*events, event])


def advance(pod: core_v1.Pod, addresses: PodAddresses, now: datetime) -> PodUpdate:
    """Return the next status of a Pod that is bound to a node."""
    if is_pod_finished(pod):
        return PodUpdate(pod.status)
    scenario = scenario_of(pod)
    moment = now.replace(microsecond=0)
    started = pod.status.start_time or moment
    limit = pod.spec.active_deadline_seconds
    if limit is not None and now >= started + timedelta(seconds=limit):
        return _deadline_exceeded(pod, addresses, moment)
    started_status = any(item.container_id for item in pod.status.container_statuses)
    if not started_status and scenario is PodScenario.IMAGE_MISSING:
        return _image_missing(pod, addresses, moment)
    if not started_status and scenario is PodScenario.SLOW and now < started + SLOW_PULL:
        return _pulling(pod, addresses, moment, started + SLOW_PULL)
    update = _running_update(pod, addresses, now, scenario)
    if limit is not None and not is_terminal_phase(update.status.phase):
        update.requeue_at = min(filter(None, (update.requeue_at, started + timedelta(seconds=limit))))
    return update


def stop(pod: core_v1.Pod, addresses: PodAddresses, now: datetime) -> PodUpdate:
    """Return the final status of a terminating Pod: servers exit with 0, tasks with the code of SIGTERM."""
    moment = now.replace(microsecond=0)
    known = _by_name(pod.status.container_statuses)
    events = [
        PodEvent("Killing", f"Stopping container {name}")
        for name, item in known.items()
        if item.state.running is not None
    ]
    if is_pod_finished(pod):
        return PodUpdate(pod.status, None, events)
    code = 0 if pod.spec.restart_policy == "Always" else INTERRUPTED
    statuses = [
        terminated_status(pod, item, moment, known.get(item.name), code) for item in pod.spec.containers
    ]
    good = all(item.state.terminated and item.state.terminated.exit_code == 0 for item in statuses)
    status = status_at(pod, addresses, "Succeeded" if good else "Failed", moment)
    status.init_container_statuses = _init_container_statuses(pod, moment, stopping=True)
    status.container_statuses = statuses
    status.conditions = conditions_of(pod, moment, status)
    return PodUpdate(status, None, events)


def _running_update(
    pod: core_v1.Pod, addresses: PodAddresses, now: datetime, scenario: PodScenario
) -> PodUpdate:
    known = _by_name(pod.status.container_statuses)
    policy = pod.spec.restart_policy
    updates = [
        advance_container(ContainerInput(pod, container, known.get(container.name), scenario, policy, now))
        for container in pod.spec.containers
    ]
    moment = now.replace(microsecond=0)
    status = status_at(pod, addresses, _phase(updates, policy), moment)
    status.init_container_statuses = _init_container_statuses(
        pod, moment, stopping=is_terminal_phase(status.phase)
    )
    status.container_statuses = [item.status for item in updates]
    status.conditions = conditions_of(pod, moment, status)
    requeue_at = min((item.requeue_at for item in updates if item.requeue_at is not None), default=None)
    return PodUpdate(status, requeue_at, [event for item in updates for event in item.events])


def _phase(updates: Sequence[ContainerUpdate], policy: str) -> str:
    ends = [item.status.state.terminated for item in updates]
    if any(end is None or may_restart(policy, end.exit_code) for end in ends):
        return "Running"
    return "Succeeded" if all(end is not None and end.exit_code == 0 for end in ends) else "Failed"


def _deadline_exceeded(pod: core_v1.Pod, addresses: PodAddresses, moment: datetime) -> PodUpdate:
    return deadline_exceeded(stop(pod, addresses, moment).status)


def _image_missing(pod: core_v1.Pod, addresses: PodAddresses, moment: datetime) -> PodUpdate:
    first = pod.status.start_time is None
    statuses = [
        waiting_status(item, "ImagePullBackOff", f'Back-off pulling image "{item.image}": not found')
        for item in pod.spec.containers
    ]
    events: list[PodEvent] = []
    for image in dict.fromkeys(item.image for item in pod.spec.containers) if first else ():
        events += [
            PodEvent("Pulling", f'Pulling image "{image}"'),
            PodEvent("Failed", f'Failed to pull image "{image}": not found', warning=True),
            PodEvent("Failed", "Error: ErrImagePull", warning=True),
            PodEvent("BackOff", f'Back-off pulling image "{image}"'),
            PodEvent("Failed", "Error: ImagePullBackOff", warning=True),
        ]
    return PodUpdate(_pending(pod, addresses, moment, statuses), None, events)


def _pulling(pod: core_v1.Pod, addresses: PodAddresses, moment: datetime, until: datetime) -> PodUpdate:
    first = pod.status.start_time is None
    statuses = [waiting_status(item, "ContainerCreating") for item in pod.spec.containers]
    images = dict.fromkeys(item.image for item in pod.spec.containers)
    events = [PodEvent("Pulling", f'Pulling image "{image}"') for image in images] if first else []
    return PodUpdate(_pending(pod, addresses, moment, statuses), until, events)


def _pending(
    pod: core_v1.Pod, addresses: PodAddresses, moment: datetime, statuses: list[core_v1.ContainerStatus]
) -> core_v1.PodStatus:
    status = status_at(pod, addresses, "Pending", moment)
    status.init_container_statuses = _init_container_statuses(pod, moment, stopping=False)
    status.container_statuses = statuses
    status.conditions = conditions_of(pod, moment, status)
    return status


def _init_container_statuses(
    pod: core_v1.Pod, moment: datetime, *, stopping: bool
) -> list[core_v1.ContainerStatus]:
    """Return the statuses of init containers: they complete at once, except for sidecars, which keep running."""
    known = _by_name(pod.status.init_container_statuses)
    made: list[core_v1.ContainerStatus] = []
    for container in pod.spec.init_containers:
        before = known.get(container.name)
        if container.restart_policy == "Always" and not stopping:
            made.append(
                advance_container(
                    ContainerInput(pod, container, before, PodScenario.RUN, "Always", moment)
                ).status
            )
            continue
        status = terminated_status(pod, container, moment, before)
        status.ready = container.restart_policy != "Always"
        made.append(status)
    return made


def _by_name(statuses: Sequence[core_v1.ContainerStatus]) -> dict[str, core_v1.ContainerStatus]:
    return {item.name: item for item in statuses}
