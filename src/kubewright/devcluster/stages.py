"""The stages of a Pod's life as a kubelet reports them: a function from the Pod and the time to its status."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kubewright.api.builtin import core_v1
from kubewright.devcluster.conditions import condition_of
from kubewright.devcluster.fates import Fate, fate_of

PULL = timedelta(milliseconds=0)
SLOW_PULL = timedelta(seconds=30)
RUN_TIME = timedelta(seconds=1)
"""How long a container that ends by itself runs."""
FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Note:
    """An event the kubelet tells."""

    reason: str
    text: str
    warning: bool = False


@dataclass(slots=True)
class Stage:
    """What a Pod's status becomes, when to look again, and what is told."""

    status: core_v1.PodStatus
    again: timedelta | None = None
    notes: list[Note] = field(default_factory=list[Note])


@dataclass(frozen=True, slots=True)
class Place:
    """Where the Pod runs."""

    host_ip: str
    pod_ip: str


def advance(pod: core_v1.Pod, place: Place, now: datetime) -> Stage:
    """Move a Pod that is bound to a node to its next stage."""
    fate = fate_of(pod)
    if fate == Fate.IMAGE_MISSING:
        return _waiting(pod, place, now, "ImagePullBackOff", "Back-off pulling image")
    started = pod.status.start_time or now
    pull = SLOW_PULL if fate == Fate.SLOW else PULL
    if now - started < pull:
        stage = _waiting(pod, place, now, "ContainerCreating", "")
        stage.again = started + pull - now
        return stage
    if fate in (Fate.RUN, Fate.NEVER_READY, Fate.SLOW):
        return _running(pod, place, now, started)
    return _ending(pod, place, now, started, fate)


def _running(pod: core_v1.Pod, place: Place, now: datetime, started: datetime) -> Stage:
    first = pod.status.phase != "Running"
    began = now if first else _began(pod, now)
    ready_at = began + timedelta(seconds=_ready_delay(pod))
    never = fate_of(pod) == Fate.NEVER_READY
    ready = not never and now >= ready_at
    statuses = [_container(pod, item, running=began, ready=ready) for item in pod.spec.containers]
    status = _status(pod, place, "Running", started, statuses)
    status.conditions = _conditions(pod, now, ready=ready, reason="" if ready else "ContainersNotReady")
    notes = _start_notes(pod) if first else []
    return Stage(status, None if ready or never else max(ready_at - now, timedelta(milliseconds=1)), notes)


def _ending(pod: core_v1.Pod, place: Place, now: datetime, started: datetime, fate: Fate) -> Stage:
    """Run for a moment, then end; start again with growing pauses where the restart policy says so."""
    good = fate == Fate.SUCCEED
    restarts = _restarts(pod)
    current = (
        pod.status.container_statuses[0].state if pod.status.container_statuses else core_v1.ContainerState()
    )
    notes: list[Note] = []
    if current.running is not None and now - (current.running.started_at or now) < RUN_TIME:
        left = (current.running.started_at or now) + RUN_TIME - now
        return Stage(_run_again(pod, place, started, current.running.started_at or now, restarts, now), left)
    if current.running is None and not _over(pod):
        if current.waiting is not None and current.waiting.reason == "CrashLoopBackOff":
            ended = _last_end(pod) or now
            pause = min(FIRST_BACKOFF * 2 ** max(restarts - 1, 0), LONGEST_BACKOFF)
            if now - ended < pause:
                return Stage(pod.status, ended + pause - now)
            restarts += 1
        notes = _start_notes(pod)
        return Stage(_run_again(pod, place, started, now, restarts, now), RUN_TIME, notes)
    if _over(pod):
        return Stage(pod.status)
    reason = "Completed" if good else "OOMKilled" if fate == Fate.OUT_OF_MEMORY else "Error"
    code = 0 if good else 137 if fate == Fate.OUT_OF_MEMORY else 1
    began = current.running.started_at if current.running is not None else started
    end = core_v1.ContainerStateTerminated(exit_code=code, reason=reason, started_at=began, finished_at=now)
    policy = pod.spec.restart_policy
    if policy == "Always" or (policy == "OnFailure" and not good):
        return _back_off(pod, place, started, end, restarts, now)
    statuses = [_container(pod, item, ended=end, restarts=restarts) for item in pod.spec.containers]
    status = _status(pod, place, "Succeeded" if good else "Failed", started, statuses)
    status.conditions = _conditions(pod, now, ready=False, reason="PodCompleted" if good else "PodFailed")
    return Stage(status)


def _run_again(
    pod: core_v1.Pod, place: Place, started: datetime, began: datetime, restarts: int, now: datetime
) -> core_v1.PodStatus:
    statuses = [
        _container(pod, item, running=began, ready=True, restarts=restarts) for item in pod.spec.containers
    ]
    status = _status(pod, place, "Running", started, statuses)
    status.conditions = _conditions(pod, now, ready=True, reason="")
    return status


def _back_off(
    pod: core_v1.Pod,
    place: Place,
    started: datetime,
    end: core_v1.ContainerStateTerminated,
    restarts: int,
    now: datetime,
) -> Stage:
    pause = min(FIRST_BACKOFF * 2 ** max(restarts - 1, 0), LONGEST_BACKOFF)
    name = pod.spec.containers[0].name
    text = (
        f"back-off {int(pause.total_seconds())}s restarting failed container={name} pod={pod.metadata.name}"
    )
    waiting = core_v1.ContainerStateWaiting(reason="CrashLoopBackOff", message=text)
    statuses = [
        _container(pod, item, waiting=waiting, last=end, restarts=restarts) for item in pod.spec.containers
    ]
    status = _status(pod, place, "Running", started, statuses)
    status.conditions = _conditions(pod, now, ready=False, reason="ContainersNotReady")
    note = Note(
        "BackOff", f"Back-off restarting failed container {name} in pod {pod.metadata.name}", warning=True
    )
    return Stage(status, pause, [note])


def _waiting(pod: core_v1.Pod, place: Place, now: datetime, reason: str, message: str) -> Stage:
    first = pod.status.start_time is None
    waiting = core_v1.ContainerStateWaiting(reason=reason, message="")
    statuses = [_container(pod, item, waiting=waiting) for item in pod.spec.containers]
    for status, container in zip(statuses, pod.spec.containers, strict=True):
        if message and status.state.waiting is not None:
            text = f'{message} "{container.image}"'
            status.state = core_v1.ContainerState(
                waiting=core_v1.ContainerStateWaiting(reason=reason, message=text)
            )
    status = _status(pod, place, "Pending", pod.status.start_time or now, statuses)
    status.conditions = _conditions(pod, now, ready=False, reason="ContainersNotReady")
    notes = [Note("Pulling", f'Pulling image "{pod.spec.containers[0].image}"')] if first else []
    if first and message:
        image = pod.spec.containers[0].image
        notes += [
            Note("Failed", f'Failed to pull image "{image}": not found', warning=True),
            Note("BackOff", f'Back-off pulling image "{image}"'),
        ]
    return Stage(status, None, notes)


def _status(
    pod: core_v1.Pod, place: Place, phase: str, started: datetime, statuses: list[core_v1.ContainerStatus]
) -> core_v1.PodStatus:
    return core_v1.PodStatus(
        phase=phase,
        observed_generation=pod.metadata.generation,
        start_time=started,
        host_ip=place.host_ip,
        host_ips=[core_v1.HostIP(ip=place.host_ip)],
        pod_ip=place.pod_ip,
        pod_ips=[core_v1.PodIP(ip=place.pod_ip)],
        qos_class=pod.status.qos_class,
        init_container_statuses=[_finished_init(pod, item, started) for item in pod.spec.init_containers],
        container_statuses=statuses,
    )


def _finished_init(pod: core_v1.Pod, container: core_v1.Container, at: datetime) -> core_v1.ContainerStatus:
    end = core_v1.ContainerStateTerminated(exit_code=0, reason="Completed", started_at=at, finished_at=at)
    made = _container(pod, container, ended=end)
    made.ready = True
    return made


def _container(
    pod: core_v1.Pod,
    container: core_v1.Container,
    *,
    running: datetime | None = None,
    ready: bool = False,
    waiting: core_v1.ContainerStateWaiting | None = None,
    ended: core_v1.ContainerStateTerminated | None = None,
    last: core_v1.ContainerStateTerminated | None = None,
    restarts: int = 0,
) -> core_v1.ContainerStatus:
    before = next((item for item in pod.status.container_statuses if item.name == container.name), None)
    last_state = (
        core_v1.ContainerState(terminated=last)
        if last
        else (before.last_state if before is not None else core_v1.ContainerState())
    )
    state = core_v1.ContainerState(
        running=core_v1.ContainerStateRunning(started_at=running) if running else None,
        waiting=waiting,
        terminated=ended,
    )
    return core_v1.ContainerStatus(
        name=container.name,
        image=container.image,
        image_id="" if waiting else f"{container.image.partition('@')[0]}@sha256:{_digest(container.image)}",
        container_id=""
        if waiting
        else f"containerd://{_digest(f'{pod.metadata.uid}/{container.name}/{restarts}')}",
        ready=ready,
        started=running is not None,
        restart_count=restarts or (before.restart_count if before is not None else 0),
        state=state,
        last_state=last_state,
    )


def _conditions(pod: core_v1.Pod, now: datetime, *, ready: bool, reason: str) -> list[core_v1.PodCondition]:
    names = ", ".join(item.name for item in pod.spec.containers)
    message = f"containers with unready status: [{names}]" if reason == "ContainersNotReady" else ""
    over = reason in ("PodCompleted", "PodFailed")
    wanted = {
        "PodReadyToStartContainers": (not over, "", ""),
        "Initialized": (True, "PodCompleted" if reason == "PodCompleted" else "", ""),
        "Ready": (ready, reason, message),
        "ContainersReady": (ready, reason, message),
        "PodScheduled": (True, "", ""),
    }
    made: list[core_v1.PodCondition] = []
    for name, (holds, why, text) in wanted.items():
        status = "True" if holds else "False"
        before = condition_of(pod.status.conditions, name)
        since = before.last_transition_time if before is not None and before.status == status else now
        made.append(
            core_v1.PodCondition(
                type=name,
                status=status,
                reason=why,
                message=text,
                last_transition_time=since,
                observed_generation=pod.metadata.generation,
            )
        )
    return made


def _start_notes(pod: core_v1.Pod) -> list[Note]:
    notes: list[Note] = []
    for container in pod.spec.containers:
        if container.image_pull_policy == "Always":
            notes.append(Note("Pulling", f'Pulling image "{container.image}"'))
            notes.append(Note("Pulled", f'Successfully pulled image "{container.image}"'))
        else:
            notes.append(Note("Pulled", f'Container image "{container.image}" already present on machine'))
        notes.append(Note("Created", f"Created container: {container.name}"))
        notes.append(Note("Started", f"Started container {container.name}"))
    return notes


def _ready_delay(pod: core_v1.Pod) -> int:
    probes = [item.readiness_probe for item in pod.spec.containers if item.readiness_probe is not None]
    return max((probe.initial_delay_seconds for probe in probes), default=0)


def _began(pod: core_v1.Pod, now: datetime) -> datetime:
    for item in pod.status.container_statuses:
        if item.state.running is not None and item.state.running.started_at is not None:
            return item.state.running.started_at
    return now


def _restarts(pod: core_v1.Pod) -> int:
    return max((item.restart_count for item in pod.status.container_statuses), default=0)


def _last_end(pod: core_v1.Pod) -> datetime | None:
    ends = [item.last_state.terminated for item in pod.status.container_statuses]
    return next((end.finished_at for end in ends if end is not None), None)


def _over(pod: core_v1.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
