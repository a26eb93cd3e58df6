"""One container's life as a kubelet reports it: from its last status, its fate and the time to the next."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kubewright.api.builtin import core_v1
from kubewright.devcluster.fates import Fate

RUN_TIME = timedelta(seconds=1)
"""How long a container that ends by itself runs, counted in the whole seconds that a status holds."""
FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=5)
CRASH_LOOP = "CrashLoopBackOff"

_EXITS = {
    Fate.SUCCEED: (0, "Completed"),
    Fate.FAIL: (1, "Error"),
    Fate.CRASH_LOOP: (1, "Error"),
    Fate.OUT_OF_MEMORY: (137, "OOMKilled"),
    Fate.UNHEALTHY: (137, "Error"),
}


@dataclass(frozen=True, slots=True)
class Note:
    """An event the kubelet tells."""

    reason: str
    text: str
    warning: bool = False


@dataclass(slots=True)
class Step:
    """What a container's status becomes, when to look again, and what is told."""

    status: core_v1.ContainerStatus
    again: datetime | None = None
    notes: list[Note] = field(default_factory=list[Note])


@dataclass(frozen=True, slots=True)
class Life:
    """What a container's next status depends on."""

    pod: core_v1.Pod
    container: core_v1.Container
    before: core_v1.ContainerStatus | None
    fate: Fate
    policy: str
    now: datetime

    @property
    def moment(self) -> datetime:
        """The time as a status holds it."""
        return self.now.replace(microsecond=0)


def step(life: Life) -> Step:
    """Move a container whose image is there to its next state."""
    before = life.before
    if before is None or before.state.running is None:
        if before is not None and before.state.terminated is not None:
            return Step(before)
        return _wait_or_start(life, before)
    began = before.state.running.started_at or life.moment
    span = run_time(life.container, life.fate)
    if span is not None and life.now >= began + span:
        return _end(life, before, began)
    return _run(life, began, before.restart_count, before.last_state, [])


def run_time(container: core_v1.Container, fate: Fate) -> timedelta | None:
    """Tell how long a container runs until it ends by itself or is killed; None: for ever."""
    if fate is Fate.UNHEALTHY:
        probe = container.liveness_probe
        if probe is None:
            return None
        return timedelta(
            seconds=probe.initial_delay_seconds
            + max(probe.period_seconds, 1) * max(probe.failure_threshold - 1, 1)
        )
    return RUN_TIME if fate in _EXITS else None


def backoff(restarts: int) -> timedelta:
    """Tell how long a container that was restarted so often waits for its next start: the first is at once."""
    if restarts == 0:
        return timedelta(0)
    # Beyond a few doublings the cap holds anyway; the exponent must not grow with the restarts.
    return min(FIRST_BACKOFF * 2 ** min(restarts - 1, 10), LONGEST_BACKOFF)


def waiting(container: core_v1.Container, reason: str, message: str = "") -> core_v1.ContainerStatus:
    """Make the status of a container that has not started."""
    state = core_v1.ContainerState(waiting=core_v1.ContainerStateWaiting(reason=reason, message=message))
    return core_v1.ContainerStatus(
        name=container.name,
        image=container.image,
        image_id="",
        ready=False,
        restart_count=0,
        started=False,
        state=state,
    )


def finished(
    pod: core_v1.Pod,
    container: core_v1.Container,
    at: datetime,
    before: core_v1.ContainerStatus | None,
    exit_code: int = 0,
) -> core_v1.ContainerStatus:
    """Make the status of a container that has ended."""
    if before is not None and before.state.terminated is not None:
        return before
    running = before.state.running if before is not None else None
    restarts = before.restart_count if before is not None else 0
    end = core_v1.ContainerStateTerminated(
        exit_code=exit_code,
        reason="Error" if exit_code else "Completed",
        started_at=(running.started_at if running is not None else None) or at,
        finished_at=at,
        container_id=container_id(pod, container, restarts),
    )
    status = begun(pod, container, restarts, core_v1.ContainerState(terminated=end))
    status.started = False
    status.last_state = before.last_state if before is not None else core_v1.ContainerState()
    return status


def may_restart(policy: str, exit_code: int) -> bool:
    """Tell whether a container that ended is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _wait_or_start(life: Life, before: core_v1.ContainerStatus | None) -> Step:
    if before is None:
        return _run(life, life.moment, 0, core_v1.ContainerState(), start_notes(life.container))
    restarts, last = before.restart_count, before.last_state
    if before.state.waiting is not None and before.state.waiting.reason == CRASH_LOOP:
        ended = last.terminated.finished_at if last.terminated is not None else None
        due = (ended or life.moment) + backoff(restarts)
        if life.now < due:
            return Step(before, due)
        restarts += 1
    return _run(life, life.moment, restarts, last, start_notes(life.container))


def _run(life: Life, began: datetime, restarts: int, last: core_v1.ContainerState, notes: list[Note]) -> Step:
    container, now = life.container, life.now
    startup, readiness = container.startup_probe, container.readiness_probe
    started_at = began + timedelta(seconds=startup.initial_delay_seconds if startup is not None else 0)
    delay = timedelta(seconds=readiness.initial_delay_seconds if readiness is not None else 0)
    ready_at = max(started_at, began + delay)
    never = life.fate is Fate.NEVER_READY
    state = core_v1.ContainerState(running=core_v1.ContainerStateRunning(started_at=began))
    status = begun(life.pod, container, restarts, state)
    status.last_state = last
    status.started = now >= started_at
    status.ready = now >= ready_at and not never
    moments = [started_at] if never else [started_at, ready_at]
    span = run_time(container, life.fate)
    if span is not None:
        moments.append(began + span)
    if never and readiness is not None and notes:
        notes = [*notes, Note("Unhealthy", "Readiness probe failed: told by the Pod's fate", warning=True)]
    return Step(status, min((moment for moment in moments if moment > now), default=None), notes)


def _end(life: Life, before: core_v1.ContainerStatus, began: datetime) -> Step:
    code, reason = _EXITS[life.fate]
    container, restarts = life.container, before.restart_count
    end = core_v1.ContainerStateTerminated(
        exit_code=code,
        reason=reason,
        started_at=began,
        finished_at=life.moment,
        container_id=before.container_id,
    )
    notes: list[Note] = []
    if life.fate is Fate.UNHEALTHY:
        killing = f"Container {container.name} failed liveness probe, will be restarted"
        notes = [
            Note("Unhealthy", "Liveness probe failed: told by the Pod's fate", warning=True),
            Note("Killing", killing),
        ]
    ended = core_v1.ContainerState(terminated=end)
    if not may_restart(life.policy, code):
        status = begun(life.pod, container, restarts, ended)
        status.last_state, status.started = before.last_state, False
        return Step(status, None, notes)
    if restarts == 0:
        return _run(life, life.moment, 1, ended, [*notes, *start_notes(container)])
    return _back_off(life, restarts, ended, notes)


def _back_off(life: Life, restarts: int, ended: core_v1.ContainerState, notes: list[Note]) -> Step:
    container, pod = life.container, life.pod
    text, note = back_off_told(pod, container, restarts)
    waits = core_v1.ContainerStateWaiting(reason=CRASH_LOOP, message=text)
    status = begun(pod, container, restarts, core_v1.ContainerState(waiting=waits))
    status.last_state, status.started = ended, False
    return Step(status, life.moment + backoff(restarts), [*notes, note])


def back_off_told(pod: core_v1.Pod, container: core_v1.Container, restarts: int) -> tuple[str, Note]:
    """Say that a container waits for its next start: in its status, and in an event."""
    full_name = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
    seconds = int(backoff(restarts).total_seconds())
    pretty = f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
    text = f"back-off {pretty} restarting failed container={container.name} pod={full_name}"
    told = f"Back-off restarting failed container {container.name} in pod {full_name}"
    return text, Note("BackOff", told, warning=True)


def begun(
    pod: core_v1.Pod, container: core_v1.Container, restarts: int, state: core_v1.ContainerState
) -> core_v1.ContainerStatus:
    """Make the status of a container that has been started."""
    return core_v1.ContainerStatus(
        name=container.name,
        image=container.image,
        image_id=f"{container.image.partition('@')[0]}@sha256:{_digest(container.image)}",
        container_id=container_id(pod, container, restarts),
        restart_count=restarts,
        ready=False,
        started=True,
        state=state,
    )


def start_notes(container: core_v1.Container) -> list[Note]:
    """Tell what leads to a start."""
    image = container.image
    if container.image_pull_policy == "Always":
        pulled = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        notes = [Note("Pulling", f'Pulling image "{image}"'), Note("Pulled", pulled)]
    else:
        present = f'Container image "{image}" already present on machine and can be accessed by the pod'
        notes = [Note("Pulled", present)]
    return [*notes, Note("Created", "Container created"), Note("Started", "Container started")]


def container_id(pod: core_v1.Pod, container: core_v1.Container, restarts: int) -> str:
    """Name one start of a container."""
    return f"containerd://{_digest(f'{pod.metadata.uid}/{container.name}/{restarts}')}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
