"""Simulated Pods: the next status is computed from the Pod, its scenario annotation and the time (pure functions).

What a container does follows from, in this order: the annotation `kubewright.dev/pod-scenario`, which applies to all
containers of the Pod but its init containers; the script in `kubewright.dev/simulated-command` or, for one container,
`kubewright.dev/simulated-command.NAME`; the table entry of its image; its command, as `simulated_commands` understands
it. Without any of these a container runs until it is stopped; that of a Job, and an init container, succeeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from kubewright.api.builtin import core_v1
from kubewright.devcluster.addresses import PodAddresses
from kubewright.devcluster.pod_lifecycle import (
    CRASH_LOOP,
    INITIALIZING,
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
from kubewright.devcluster.simulated_commands import PROGRAMS, SimulatedRun, simulate
from kubewright.devcluster.workloads import is_pod_finished, is_terminal_phase

SCENARIO_ANNOTATION = "kubewright.dev/pod-scenario"
COMMAND_ANNOTATION = "kubewright.dev/simulated-command"
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


def scenario_of(pod: core_v1.Pod) -> PodScenario | None:
    """Return the scenario of a Pod's annotation, or None if it has none or an unknown one."""
    name = pod.metadata.annotations.get(SCENARIO_ANNOTATION, "")
    return PodScenario(name) if name in _KNOWN else None


@dataclass(frozen=True, slots=True)
class ContainerBehavior:
    """What a simulated container does: how long it runs, None for ever, how it ends, and whether it becomes ready."""

    run_time: timedelta | None = None
    exit_code: int = 0
    reason: str = ""
    unhealthy: bool = False
    """It ends because its liveness probe fails."""
    never_ready: bool = False


RUNS = ContainerBehavior()
SUCCEEDS = ContainerBehavior(RUN_TIME)
COMPLETES_AT_ONCE = ContainerBehavior(timedelta(0))
_SCENARIOS = {
    PodScenario.SUCCEED: SUCCEEDS,
    PodScenario.FAIL: ContainerBehavior(RUN_TIME, 1),
    PodScenario.CRASH_LOOP: ContainerBehavior(RUN_TIME, 1),
    PodScenario.OUT_OF_MEMORY: ContainerBehavior(RUN_TIME, 137, "OOMKilled"),
    PodScenario.NEVER_READY: ContainerBehavior(never_ready=True),
}


def behavior_of(
    pod: core_v1.Pod, container: core_v1.Container, programs: Mapping[str, str]
) -> ContainerBehavior:
    """Return what a container of a Pod does."""
    scenario = scenario_of(pod)
    if scenario is PodScenario.UNHEALTHY:
        return _unhealthy(container)
    if scenario is not None:
        return _SCENARIOS.get(scenario, RUNS)
    run = simulated_run(pod, container, programs)
    if run is not None:
        # Statuses have a resolution of one second, and watchers should see the container running.
        shown = None if run.run_time is None else max(run.run_time, RUN_TIME)
        return ContainerBehavior(shown, run.exit_code)
    of_job = any(owner.kind == "Job" and owner.controller for owner in pod.metadata.owner_references)
    return SUCCEEDS if of_job else RUNS


def init_behavior_of(
    pod: core_v1.Pod, container: core_v1.Container, programs: Mapping[str, str]
) -> ContainerBehavior:
    """Return what an init container does: it follows its command, else it completes at once; a sidecar runs."""
    run = simulated_run(pod, container, programs)
    sidecar = container.restart_policy == "Always"
    if run is None:
        return RUNS if sidecar else COMPLETES_AT_ONCE
    if run.run_time is not None and (sidecar or run.exit_code != 0):
        # What may be started again must take some time.
        return ContainerBehavior(max(run.run_time, RUN_TIME), run.exit_code)
    return ContainerBehavior(run.run_time, run.exit_code)


def simulated_run(
    pod: core_v1.Pod, container: core_v1.Container, programs: Mapping[str, str]
) -> SimulatedRun | None:
    """Return how the command of a container runs, or None if that is unknown."""
    variables = {item.name: item.value for item in container.env if item.value_from is None}
    annotations = pod.metadata.annotations
    script = annotations.get(f"{COMMAND_ANNOTATION}.{container.name}") or annotations.get(COMMAND_ANNOTATION)
    if script is None and not container.command:
        script = programs.get(container.image) or programs.get(untagged(container.image))
    if script is not None:
        return simulate(["sh", "-c", script], variables, programs)
    if not container.command:
        return None
    return simulate([*container.command, *container.args], variables, programs)


def untagged(image: str) -> str:
    """Return the name of an image without its tag and digest."""
    path, slash, name = image.partition("@")[0].rpartition("/")
    return f"{path}{slash}{name.partition(':')[0]}"


def _unhealthy(container: core_v1.Container) -> ContainerBehavior:
    probe = container.liveness_probe
    if probe is None:
        return RUNS
    failures = max(probe.period_seconds, 1) * max(probe.failure_threshold - 1, 1)
    run_time = timedelta(seconds=probe.initial_delay_seconds + failures)
    return ContainerBehavior(run_time, 137, unhealthy=True)


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
    behavior: ContainerBehavior
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
    span = given.behavior.run_time
    if span is not None and given.now >= began + span:
        return _end(given, before, began)
    return _run(given, began, before.restart_count, before.last_state, [])


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
    never = given.behavior.never_ready
    state = core_v1.ContainerState(running=core_v1.ContainerStateRunning(started_at=began))
    status = started_status(given.pod, container, restarts, state)
    status.last_state = last
    status.started = now >= started_at
    status.ready = now >= ready_at and not never
    moments = [started_at] if never else [started_at, ready_at]
    span = given.behavior.run_time
    if span is not None:
        moments.append(began + span)
    if never and readiness is not None and events:
        events = [
            *events,
            PodEvent("Unhealthy", "Readiness probe failed: simulated by the Pod's scenario", warning=True),
        ]
    return ContainerUpdate(status, min((moment for moment in moments if moment > now), default=None), events)


def _end(given: ContainerInput, before: core_v1.ContainerStatus, began: datetime) -> ContainerUpdate:
    code = given.behavior.exit_code
    reason = given.behavior.reason or ("Error" if code else "Completed")
    container, restarts = given.container, before.restart_count
    end = core_v1.ContainerStateTerminated(
        exit_code=code,
        reason=reason,
        started_at=began,
        finished_at=given.moment,
        container_id=before.container_id,
    )
    events: list[PodEvent] = []
    if given.behavior.unhealthy:
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


def advance(
    pod: core_v1.Pod, addresses: PodAddresses, now: datetime, programs: Mapping[str, str] = PROGRAMS
) -> PodUpdate:
    """Return the next status of a Pod that is bound to a node; `programs` is the table of simulated programs."""
    if is_pod_finished(pod):
        return PodUpdate(pod.status)
    scenario = scenario_of(pod)
    moment = now.replace(microsecond=0)
    started = pod.status.start_time or moment
    limit = pod.spec.active_deadline_seconds
    if limit is not None and now >= started + timedelta(seconds=limit):
        return _deadline_exceeded(pod, addresses, moment)
    inits, unfinished = _advance_init_containers(pod, now, programs)
    pulls = not unfinished and not any(item.container_id for item in pod.status.container_statuses)
    if pulls and scenario is PodScenario.IMAGE_MISSING:
        return _image_missing(pod, addresses, moment, inits)
    if pulls and scenario is PodScenario.SLOW and now < started + SLOW_PULL:
        return _pulling(pod, addresses, moment, started + SLOW_PULL, inits)
    update = _running_update(pod, addresses, now, programs, inits, unfinished)
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
    initial = _by_name(pod.status.init_container_statuses)
    status.init_container_statuses = _stopped_init_containers(
        pod,
        moment,
        [initial.get(item.name) or waiting_status(item, INITIALIZING) for item in pod.spec.init_containers],
    )
    status.container_statuses = statuses
    status.conditions = conditions_of(pod, moment, status)
    return PodUpdate(status, None, events)


def _running_update(
    pod: core_v1.Pod,
    addresses: PodAddresses,
    now: datetime,
    programs: Mapping[str, str],
    inits: Sequence[ContainerUpdate],
    unfinished: Sequence[str],
) -> PodUpdate:
    policy, moment = pod.spec.restart_policy, now.replace(microsecond=0)
    known = _by_name(pod.status.container_statuses)
    updates: list[ContainerUpdate] = []
    for container in pod.spec.containers:
        before = known.get(container.name)
        if unfinished:
            updates.append(ContainerUpdate(before or waiting_status(container, INITIALIZING)))
            continue
        if before is not None and not before.container_id:
            before = None
        behavior = behavior_of(pod, container, programs)
        updates.append(advance_container(ContainerInput(pod, container, before, behavior, policy, now)))
    phase = _phase(updates, policy)
    if unfinished:
        phase = "Failed" if _has_failed(inits, policy) else "Pending"
    statuses = [item.status for item in inits]
    if is_terminal_phase(phase):
        unfinished = []
        statuses = _stopped_init_containers(pod, moment, statuses)
    status = status_at(pod, addresses, phase, moment)
    status.init_container_statuses = statuses
    status.container_statuses = [item.status for item in updates]
    status.conditions = conditions_of(pod, moment, status, unfinished)
    every = [*inits, *updates]
    requeue_at = min((item.requeue_at for item in every if item.requeue_at is not None), default=None)
    return PodUpdate(status, requeue_at, [event for item in every for event in item.events])


def _advance_init_containers(
    pod: core_v1.Pod, now: datetime, programs: Mapping[str, str]
) -> tuple[list[ContainerUpdate], list[str]]:
    """Return the next status of each init container, and the names of those that are not finished yet.

    They run one after the other; a sidecar keeps running, and the next one starts with it.
    """
    known = _by_name(pod.status.init_container_statuses)
    # A container that fails is run again, unless nothing of the Pod is; one that succeeded is not.
    policy = "Never" if pod.spec.restart_policy == "Never" else "OnFailure"
    updates: list[ContainerUpdate] = []
    unfinished: list[str] = []
    for container in pod.spec.init_containers:
        before = known.get(container.name)
        if before is not None and not before.container_id:
            before = None
        if unfinished:
            updates.append(ContainerUpdate(waiting_status(container, INITIALIZING)))
            unfinished.append(container.name)
            continue
        sidecar = container.restart_policy == "Always"
        behavior = init_behavior_of(pod, container, programs)
        given = ContainerInput(pod, container, before, behavior, "Always" if sidecar else policy, now)
        update = advance_container(given)
        if behavior.run_time == timedelta(0) and update.status.state.running is not None:
            update = _complete_at_once(given, update)
        end = update.status.state.terminated
        if not sidecar:
            update.status.ready = end is not None and end.exit_code == 0
        if not (update.status.started if sidecar else update.status.ready):
            unfinished.append(container.name)
        updates.append(update)
    return updates, unfinished


def _complete_at_once(given: ContainerInput, begun: ContainerUpdate) -> ContainerUpdate:
    ended = _end(given, begun.status, given.moment)
    return ContainerUpdate(ended.status, ended.requeue_at, [*begun.events, *ended.events])


def _has_failed(inits: Sequence[ContainerUpdate], policy: str) -> bool:
    ends = [item.status.state.terminated for item in inits]
    return policy == "Never" and any(end is not None and end.exit_code != 0 for end in ends)


def _stopped_init_containers(
    pod: core_v1.Pod, moment: datetime, statuses: Sequence[core_v1.ContainerStatus]
) -> list[core_v1.ContainerStatus]:
    """Return the statuses of init containers when the Pod ends: what runs is terminated."""
    return [
        terminated_status(
            pod, container, moment, status, 0 if container.restart_policy == "Always" else INTERRUPTED
        )
        if status.state.running is not None
        else status
        for container, status in zip(pod.spec.init_containers, statuses, strict=True)
    ]


def _phase(updates: Sequence[ContainerUpdate], policy: str) -> str:
    ends = [item.status.state.terminated for item in updates]
    if any(end is None or may_restart(policy, end.exit_code) for end in ends):
        return "Running"
    return "Succeeded" if all(end is not None and end.exit_code == 0 for end in ends) else "Failed"


def _deadline_exceeded(pod: core_v1.Pod, addresses: PodAddresses, moment: datetime) -> PodUpdate:
    return deadline_exceeded(stop(pod, addresses, moment).status)


def _image_missing(
    pod: core_v1.Pod, addresses: PodAddresses, moment: datetime, inits: Sequence[ContainerUpdate]
) -> PodUpdate:
    first = all(item.state.waiting is None for item in pod.status.container_statuses)
    statuses = [
        waiting_status(item, "ImagePullBackOff", f'Back-off pulling image "{item.image}": not found')
        for item in pod.spec.containers
    ]
    events = [event for item in inits for event in item.events]
    for image in dict.fromkeys(item.image for item in pod.spec.containers) if first else ():
        events += [
            PodEvent("Pulling", f'Pulling image "{image}"'),
            PodEvent("Failed", f'Failed to pull image "{image}": not found', warning=True),
            PodEvent("Failed", "Error: ErrImagePull", warning=True),
            PodEvent("BackOff", f'Back-off pulling image "{image}"'),
            PodEvent("Failed", "Error: ImagePullBackOff", warning=True),
        ]
    return PodUpdate(_pending(pod, addresses, moment, statuses, inits), None, events)


def _pulling(
    pod: core_v1.Pod,
    addresses: PodAddresses,
    moment: datetime,
    until: datetime,
    inits: Sequence[ContainerUpdate],
) -> PodUpdate:
    first = all(item.state.waiting is None for item in pod.status.container_statuses)
    statuses = [waiting_status(item, "ContainerCreating") for item in pod.spec.containers]
    images = dict.fromkeys(item.image for item in pod.spec.containers)
    events = [event for item in inits for event in item.events]
    events += [PodEvent("Pulling", f'Pulling image "{image}"') for image in images] if first else []
    return PodUpdate(_pending(pod, addresses, moment, statuses, inits), until, events)


def _pending(
    pod: core_v1.Pod,
    addresses: PodAddresses,
    moment: datetime,
    statuses: list[core_v1.ContainerStatus],
    inits: Sequence[ContainerUpdate],
) -> core_v1.PodStatus:
    status = status_at(pod, addresses, "Pending", moment)
    status.init_container_statuses = [item.status for item in inits]
    status.container_statuses = statuses
    status.conditions = conditions_of(pod, moment, status)
    return status


def _by_name(statuses: Sequence[core_v1.ContainerStatus]) -> dict[str, core_v1.ContainerStatus]:
    return {item.name: item for item in statuses}
