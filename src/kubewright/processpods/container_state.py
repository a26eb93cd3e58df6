"""The state of containers that run as processes, and the Pod status derived from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kubewright.api.builtin import core_v1
from kubewright.devcluster.addresses import PodAddresses
from kubewright.devcluster.pod_lifecycle import (
    INITIALIZING,
    PodEvent,
    PodUpdate,
    conditions_of,
    container_id,
    started_status,
    status_at,
    terminated_status,
    waiting_status,
)
from kubewright.devcluster.pod_scenarios import RUNS, ContainerInput, advance_container
from kubewright.devcluster.workloads import is_terminal_phase

CREATING = "ContainerCreating"


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """How one run of a container ended."""

    code: int
    began: datetime
    ended: datetime
    reason: str = ""
    message: str = ""

    def state(self, name: str) -> core_v1.ContainerState:
        """Return the terminated container state."""
        usual = "Completed" if self.code == 0 else "Error"
        return core_v1.ContainerState(
            terminated=core_v1.ContainerStateTerminated(
                exit_code=self.code,
                reason=self.reason or usual,
                message=self.message,
                started_at=self.began,
                finished_at=self.ended,
                container_id=name,
            )
        )


@dataclass(slots=True)
class ContainerRecord:
    """The state of one container."""

    restarts: int = 0
    running_since: datetime | None = None
    """When the running process started; None if none is running."""
    final_exit: ContainerExit | None = None
    """How the container ended, if it will not be restarted."""
    last_exit: ContainerExit | None = None
    """How the previous run ended."""
    waiting: tuple[str, str] = (CREATING, "")
    """Reason and message while the container is waiting."""
    started: bool = False
    ready: bool = False

    @property
    def has_run(self) -> bool:
        """Return True if the container was ever started."""
        return self.running_since is not None or self.final_exit is not None or self.last_exit is not None


def container_status(
    pod: core_v1.Pod, container: core_v1.Container, record: ContainerRecord
) -> core_v1.ContainerStatus:
    """Build the status of a container."""
    name = container_id(pod, container, record.restarts)
    if not record.has_run:
        status = waiting_status(container, *record.waiting)
        status.restart_count = record.restarts
        return status
    if record.running_since is not None:
        state = core_v1.ContainerState(running=core_v1.ContainerStateRunning(started_at=record.running_since))
    elif record.final_exit is not None:
        state = record.final_exit.state(name)
    else:
        reason, message = record.waiting
        state = core_v1.ContainerState(waiting=core_v1.ContainerStateWaiting(reason=reason, message=message))
    status = started_status(pod, container, record.restarts, state)
    status.started, status.ready = record.started, record.ready
    if record.last_exit is not None:
        before = container_id(
            pod, container, max(record.restarts - 1, 0) if record.running_since else record.restarts
        )
        status.last_state = record.last_exit.state(before)
    return status


def pod_update(
    pod: core_v1.Pod,
    addresses: PodAddresses,
    now: datetime,
    records: Mapping[str, ContainerRecord],
    events: list[PodEvent],
    *,
    stopping: bool = False,
) -> PodUpdate:
    """Build the status of a Pod with containers that run as processes; the other containers are simulated.

    `records` must include all init containers; `stopping` means that the Pod is terminating.
    """
    moment = now.replace(microsecond=0)
    before = {
        item.name: item for item in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    inits = [_init_status(pod, item, records[item.name]) for item in pod.spec.init_containers]
    unfinished = [
        item.name
        for item, init in zip(pod.spec.init_containers, inits, strict=True)
        if not _passed(item, init)
    ]
    statuses: list[core_v1.ContainerStatus] = []
    requeue_at: datetime | None = None
    for item in pod.spec.containers:
        if item.name in records:
            statuses.append(container_status(pod, item, records[item.name]))
        elif stopping:
            statuses.append(terminated_status(pod, item, moment, before.get(item.name)))
        elif unfinished:
            statuses.append(waiting_status(item, INITIALIZING))
        else:
            made = advance_container(
                ContainerInput(pod, item, before.get(item.name), RUNS, pod.spec.restart_policy, now)
            )
            statuses.append(made.status)
            events += made.events
            requeue_at = min(filter(None, (requeue_at, made.requeue_at)), default=None)
    status = status_at(pod, addresses, phase_of(inits, statuses, unfinished), moment)
    status.init_container_statuses, status.container_statuses = inits, statuses
    if is_terminal_phase(status.phase):
        unfinished = []
    status.conditions = conditions_of(pod, moment, status, unfinished)
    return PodUpdate(status, requeue_at, events)


def _init_status(
    pod: core_v1.Pod, container: core_v1.Container, record: ContainerRecord
) -> core_v1.ContainerStatus:
    """Build the status of an init container: one that has completed is ready."""
    status = container_status(pod, container, record)
    if container.restart_policy != "Always" and _passed(container, status):
        status.ready = True
    return status


def _passed(container: core_v1.Container, status: core_v1.ContainerStatus) -> bool:
    if container.restart_policy == "Always":
        return bool(status.started) or status.state.terminated is not None
    end = status.state.terminated
    return end is not None and end.exit_code == 0


def phase_of(
    inits: list[core_v1.ContainerStatus], statuses: list[core_v1.ContainerStatus], unfinished: list[str]
) -> str:
    """Return the phase of a Pod whose terminated containers are not restarted."""
    if unfinished:
        ended = (item.state.terminated is not None for item in inits if item.name in unfinished)
        return "Failed" if any(ended) else "Pending"
    ends = [item.state.terminated for item in statuses]
    if all(end is not None for end in ends):
        return "Succeeded" if all(end is not None and end.exit_code == 0 for end in ends) else "Failed"
    return "Running" if any(item.container_id for item in statuses) else "Pending"
