"""Statuses, conditions and Events of Pods as a kubelet reports them, for simulated Pods and for process Pods."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from kubewright.api.builtin import core_v1
from kubewright.devcluster.addresses import PodAddresses
from kubewright.devcluster.statuses import condition_of, is_true
from kubewright.devcluster.workloads import is_terminal_phase

FIRST_BACKOFF = timedelta(seconds=10)
LONGEST_BACKOFF = timedelta(minutes=5)
CRASH_LOOP = "CrashLoopBackOff"
INITIALIZING = "PodInitializing"
SCHEDULED = "PodScheduled"
"""The scheduler's condition, which a kubelet sorts last."""


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An Event to publish for a Pod."""

    reason: str
    message: str
    warning: bool = False


def backoff(restarts: int) -> timedelta:
    """Return the crash-loop delay before the next start; the first restart has none."""
    if restarts == 0:
        return timedelta(0)
    # Limit the exponent: the delay is capped anyway.
    return min(FIRST_BACKOFF * 2 ** min(restarts - 1, 10), LONGEST_BACKOFF)


def waiting_status(container: core_v1.Container, reason: str, message: str = "") -> core_v1.ContainerStatus:
    """Build the status of a container that has not started."""
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


def terminated_status(
    pod: core_v1.Pod,
    container: core_v1.Container,
    at: datetime,
    before: core_v1.ContainerStatus | None,
    exit_code: int = 0,
) -> core_v1.ContainerStatus:
    """Build the status of a container that has terminated."""
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
    status = started_status(pod, container, restarts, core_v1.ContainerState(terminated=end))
    status.started = False
    status.last_state = before.last_state if before is not None else core_v1.ContainerState()
    return status


def may_restart(policy: str, exit_code: int) -> bool:
    """Return True if the restart policy restarts a container with this exit code."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def crash_loop_backoff(pod: core_v1.Pod, container: core_v1.Container, restarts: int) -> tuple[str, PodEvent]:
    """Return the message and the Event of a container in CrashLoopBackOff."""
    full_name = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
    seconds = int(backoff(restarts).total_seconds())
    pretty = f"{seconds // 60}m{seconds % 60}s" if seconds >= 60 else f"{seconds}s"
    message = f"back-off {pretty} restarting failed container={container.name} pod={full_name}"
    event = f"Back-off restarting failed container {container.name} in pod {full_name}"
    return message, PodEvent("BackOff", event, warning=True)


def started_status(
    pod: core_v1.Pod, container: core_v1.Container, restarts: int, state: core_v1.ContainerState
) -> core_v1.ContainerStatus:
    """Build the status of a container that has been started."""
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


def start_events(container: core_v1.Container) -> list[PodEvent]:
    """Return the Events of a container start."""
    image = container.image
    if container.image_pull_policy == "Always":
        pulled = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        events = [PodEvent("Pulling", f'Pulling image "{image}"'), PodEvent("Pulled", pulled)]
    else:
        present = f'Container image "{image}" already present on machine and can be accessed by the pod'
        events = [PodEvent("Pulled", present)]
    return [*events, PodEvent("Created", "Container created"), PodEvent("Started", "Container started")]


def container_id(pod: core_v1.Pod, container: core_v1.Container, restarts: int) -> str:
    """Return the ID of one start of a container."""
    return f"containerd://{_digest(f'{pod.metadata.uid}/{container.name}/{restarts}')}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class PodUpdate:
    """The new status of a Pod, when to compute it again, and Events to publish."""

    status: core_v1.PodStatus
    requeue_at: datetime | None = None
    events: list[PodEvent] = field(default_factory=list[PodEvent])
    running: bool = False
    """The Pod is terminating and some of its processes still run."""


def deadline_exceeded(status: core_v1.PodStatus) -> PodUpdate:
    """Return the update of a Pod that exceeded its activeDeadlineSeconds."""
    status.phase, status.reason = "Failed", "DeadlineExceeded"
    status.message = "Pod was active on the node longer than the specified deadline"
    return PodUpdate(status, None, [PodEvent("DeadlineExceeded", status.message, warning=True)])


def status_at(pod: core_v1.Pod, addresses: PodAddresses, phase: str, moment: datetime) -> core_v1.PodStatus:
    """Return the Pod's status with a new phase, start time and addresses; fields of other writers are kept."""
    address = addresses.host_ip if pod.spec.host_network else addresses.pod_ip
    return msgspec.structs.replace(
        pod.status,
        phase=phase,
        reason="",
        message="",
        observed_generation=pod.metadata.generation,
        start_time=pod.status.start_time or moment,
        host_ip=addresses.host_ip,
        host_ips=[core_v1.HostIP(ip=addresses.host_ip)],
        pod_ip=address,
        pod_ips=[core_v1.PodIP(ip=address)],
    )


def conditions_of(
    pod: core_v1.Pod, moment: datetime, status: core_v1.PodStatus, unfinished: Sequence[str] = ()
) -> list[core_v1.PodCondition]:
    """Return the conditions for a status, after those of other writers; `unfinished` names incomplete init containers."""
    over = is_terminal_phase(status.phase)
    unready = [item.name for item in status.container_statuses if not item.ready]
    reason, message = "", ""
    if over:
        reason = "PodCompleted" if status.phase == "Succeeded" else "PodFailed"
    elif unready:
        reason = "ContainersNotReady"
        message = f"containers with unready status: [{' '.join(unready)}]"
    ready = not over and not unready
    gates = [gate.condition_type for gate in pod.spec.readiness_gates]
    missing = [name for name in gates if not is_true(pod.status.conditions, name)]
    desired = {
        "PodReadyToStartContainers": (not over, "", ""),
        "Initialized": (True, "PodCompleted" if reason == "PodCompleted" else "", ""),
        **_uninitialized_condition(unfinished),
        "Ready": (ready, reason, message),
        "ContainersReady": (ready, reason, message),
    }
    if ready and missing:
        desired["Ready"] = (False, "ReadinessGatesNotReady", _readiness_gates_message(pod, missing))
    others = [item for item in pod.status.conditions if item.type not in desired]
    return sorted(
        [*others, *(_condition(pod, name, *state, moment) for name, state in desired.items())],
        key=lambda item: item.type == SCHEDULED,
    )


def _uninitialized_condition(names: Sequence[str]) -> dict[str, tuple[bool, str, str]]:
    if not names:
        return {}
    message = f"containers with incomplete status: [{' '.join(names)}]"
    return {"Initialized": (False, "ContainersNotInitialized", message)}


def _readiness_gates_message(pod: core_v1.Pod, missing: Sequence[str]) -> str:
    texts = [
        f'corresponding condition of pod readiness gate "{name}" '
        + ("does not exist." if condition_of(pod.status.conditions, name) is None else 'is not "True".')
        for name in missing
    ]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _condition(
    pod: core_v1.Pod,
    type: str,  # noqa: A002 (the field's name)
    holds: bool,
    reason: str,
    message: str,
    moment: datetime,
) -> core_v1.PodCondition:
    status = "True" if holds else "False"
    before = condition_of(pod.status.conditions, type)
    same = before is not None and before.status == status
    return core_v1.PodCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=before.last_transition_time if before is not None and same else moment,
        observed_generation=pod.metadata.generation,
    )
