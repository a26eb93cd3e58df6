"""The state of containers that run as processes, and the Pod status that a kubelet reports for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kubewright.api.builtin import core_v1
from kubewright.devcluster.containers import Life, Note, begun, container_id, finished, step, waiting
from kubewright.devcluster.fates import Fate
from kubewright.devcluster.places import Place
from kubewright.devcluster.stages import Stage, conditions_of, has_ended, status_at

INITIALIZING = "PodInitializing"
CREATING = "ContainerCreating"


@dataclass(frozen=True, slots=True)
class Ending:
    """How one start of a container ended."""

    code: int
    began: datetime
    ended: datetime
    reason: str = ""
    message: str = ""

    def state(self, name: str) -> core_v1.ContainerState:
        """Put it as a status does."""
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
    since: datetime | None = None
    """It runs, since then."""
    ending: Ending | None = None
    """It has ended, and will not be started again."""
    last: Ending | None = None
    """How it ended before this start."""
    waits: tuple[str, str] = (CREATING, "")
    """Reason and message, while it does not run."""
    started: bool = False
    ready: bool = False

    @property
    def has_run(self) -> bool:
        """Return True if it was ever started."""
        return self.since is not None or self.ending is not None or self.last is not None


def container_status(
    pod: core_v1.Pod, container: core_v1.Container, record: ContainerRecord
) -> core_v1.ContainerStatus:
    """Return the status of a container."""
    name = container_id(pod, container, record.restarts)
    if not record.has_run:
        status = waiting(container, *record.waits)
        status.restart_count = record.restarts
        return status
    if record.since is not None:
        state = core_v1.ContainerState(running=core_v1.ContainerStateRunning(started_at=record.since))
    elif record.ending is not None:
        state = record.ending.state(name)
    else:
        reason, message = record.waits
        state = core_v1.ContainerState(waiting=core_v1.ContainerStateWaiting(reason=reason, message=message))
    status = begun(pod, container, record.restarts, state)
    status.started, status.ready = record.started, record.ready
    if record.last is not None:
        before = container_id(
            pod, container, max(record.restarts - 1, 0) if record.since else record.restarts
        )
        status.last_state = record.last.state(before)
    return status


def stage_of(
    pod: core_v1.Pod,
    place: Place,
    now: datetime,
    records: Mapping[str, ContainerRecord],
    notes: list[Note],
    *,
    stopping: bool = False,
) -> Stage:
    """Return the stage of a Pod some or all of whose containers are processes; the others pretend to run.

    Facts are known of all init containers; `stopping`: the Pod is being deleted.
    """
    moment = now.replace(microsecond=0)
    before = {
        item.name: item for item in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    inits = [container_status(pod, item, records[item.name]) for item in pod.spec.init_containers]
    unfinished = [
        item.name
        for item, told in zip(pod.spec.init_containers, inits, strict=True)
        if not _passed(item, told)
    ]
    statuses: list[core_v1.ContainerStatus] = []
    again: datetime | None = None
    for item in pod.spec.containers:
        if item.name in records:
            statuses.append(container_status(pod, item, records[item.name]))
        elif stopping:
            statuses.append(finished(pod, item, moment, before.get(item.name)))
        elif unfinished:
            statuses.append(waiting(item, INITIALIZING))
        else:
            made = step(Life(pod, item, before.get(item.name), Fate.RUN, pod.spec.restart_policy, now))
            statuses.append(made.status)
            notes += made.notes
            again = min(filter(None, (again, made.again)), default=None)
    status = status_at(pod, place, phase_of(inits, statuses, unfinished), moment)
    status.init_container_statuses, status.container_statuses = inits, statuses
    if has_ended(status.phase):
        unfinished = []
    status.conditions = conditions_of(pod, moment, status, unfinished)
    return Stage(status, again, notes)


def _passed(container: core_v1.Container, status: core_v1.ContainerStatus) -> bool:
    if container.restart_policy == "Always":
        return bool(status.started) or status.state.terminated is not None
    end = status.state.terminated
    return end is not None and end.exit_code == 0


def phase_of(
    inits: list[core_v1.ContainerStatus], statuses: list[core_v1.ContainerStatus], unfinished: list[str]
) -> str:
    """Return the phase of a Pod; containers that are terminated here are not restarted."""
    if unfinished:
        ended = (item.state.terminated is not None for item in inits if item.name in unfinished)
        return "Failed" if any(ended) else "Pending"
    ends = [item.state.terminated for item in statuses]
    if all(end is not None for end in ends):
        return "Succeeded" if all(end is not None and end.exit_code == 0 for end in ends) else "Failed"
    return "Running" if any(item.container_id for item in statuses) else "Pending"
