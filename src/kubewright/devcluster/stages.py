"""The stages of a Pod's life as a kubelet reports them: a function from the Pod and the time to its status."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from kubewright.api.builtin import core_v1
from kubewright.devcluster.conditions import condition_of, is_true
from kubewright.devcluster.containers import Life, Note, Step, finished, may_restart, step, waiting
from kubewright.devcluster.fates import Fate, fate_of
from kubewright.devcluster.places import Place

SLOW_PULL = timedelta(seconds=30)
SCHEDULED = "PodScheduled"
"""The scheduler's condition, which kubelets put last."""
INTERRUPTED = 143
"""How a process ends that SIGTERM ends."""


@dataclass(slots=True)
class Stage:
    """What a Pod's status becomes, when to look again, and what is told."""

    status: core_v1.PodStatus
    again: datetime | None = None
    notes: list[Note] = field(default_factory=list[Note])
    running: bool = False
    """Something of the Pod still runs although it is being deleted."""


def is_over(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod has ended for good."""
    return pod.status.phase in ("Succeeded", "Failed")


def advance(pod: core_v1.Pod, place: Place, now: datetime) -> Stage:
    """Move a Pod that is bound to a node to its next stage."""
    if is_over(pod):
        return Stage(pod.status)
    fate = fate_of(pod)
    moment = now.replace(microsecond=0)
    started = pod.status.start_time or moment
    limit = pod.spec.active_deadline_seconds
    if limit is not None and now >= started + timedelta(seconds=limit):
        return _too_long(pod, place, moment)
    begun = any(item.container_id for item in pod.status.container_statuses)
    if not begun and fate is Fate.IMAGE_MISSING:
        return _image_missing(pod, place, moment)
    if not begun and fate is Fate.SLOW and now < started + SLOW_PULL:
        return _pulling(pod, place, moment, started + SLOW_PULL)
    stage = _living(pod, place, now, fate)
    if limit is not None and not has_ended(stage.status.phase):
        stage.again = min(filter(None, (stage.again, started + timedelta(seconds=limit))))
    return stage


def stop(pod: core_v1.Pod, place: Place, now: datetime) -> Stage:
    """End a Pod that is being deleted: its processes stop at once; servers end well, tasks are interrupted."""
    moment = now.replace(microsecond=0)
    known = _known(pod.status.container_statuses)
    notes = [
        Note("Killing", f"Stopping container {name}")
        for name, item in known.items()
        if item.state.running is not None
    ]
    if is_over(pod):
        return Stage(pod.status, None, notes)
    code = 0 if pod.spec.restart_policy == "Always" else INTERRUPTED
    statuses = [finished(pod, item, moment, known.get(item.name), code) for item in pod.spec.containers]
    good = all(item.state.terminated and item.state.terminated.exit_code == 0 for item in statuses)
    status = status_at(pod, place, "Succeeded" if good else "Failed", moment)
    status.init_container_statuses = _initialized(pod, moment, stopping=True)
    status.container_statuses = statuses
    status.conditions = conditions_of(pod, moment, status)
    return Stage(status, None, notes)


def _living(pod: core_v1.Pod, place: Place, now: datetime, fate: Fate) -> Stage:
    known = _known(pod.status.container_statuses)
    policy = pod.spec.restart_policy
    steps = [
        step(Life(pod, container, known.get(container.name), fate, policy, now))
        for container in pod.spec.containers
    ]
    moment = now.replace(microsecond=0)
    status = status_at(pod, place, _phase(steps, policy), moment)
    status.init_container_statuses = _initialized(pod, moment, stopping=has_ended(status.phase))
    status.container_statuses = [item.status for item in steps]
    status.conditions = conditions_of(pod, moment, status)
    again = min((item.again for item in steps if item.again is not None), default=None)
    return Stage(status, again, [note for item in steps for note in item.notes])


def _phase(steps: Sequence[Step], policy: str) -> str:
    ends = [item.status.state.terminated for item in steps]
    if any(end is None or may_restart(policy, end.exit_code) for end in ends):
        return "Running"
    return "Succeeded" if all(end is not None and end.exit_code == 0 for end in ends) else "Failed"


def has_ended(phase: str) -> bool:
    """Tell whether a phase is a last one."""
    return phase in ("Succeeded", "Failed")


def _too_long(pod: core_v1.Pod, place: Place, moment: datetime) -> Stage:
    return too_long(stop(pod, place, moment).status)


def too_long(status: core_v1.PodStatus) -> Stage:
    """Say that a Pod was ended because its time was over."""
    status.phase, status.reason = "Failed", "DeadlineExceeded"
    status.message = "Pod was active on the node longer than the specified deadline"
    return Stage(status, None, [Note("DeadlineExceeded", status.message, warning=True)])


def _image_missing(pod: core_v1.Pod, place: Place, moment: datetime) -> Stage:
    first = pod.status.start_time is None
    statuses = [
        waiting(item, "ImagePullBackOff", f'Back-off pulling image "{item.image}": not found')
        for item in pod.spec.containers
    ]
    notes: list[Note] = []
    for image in dict.fromkeys(item.image for item in pod.spec.containers) if first else ():
        notes += [
            Note("Pulling", f'Pulling image "{image}"'),
            Note("Failed", f'Failed to pull image "{image}": not found', warning=True),
            Note("Failed", "Error: ErrImagePull", warning=True),
            Note("BackOff", f'Back-off pulling image "{image}"'),
            Note("Failed", "Error: ImagePullBackOff", warning=True),
        ]
    return Stage(_pending(pod, place, moment, statuses), None, notes)


def _pulling(pod: core_v1.Pod, place: Place, moment: datetime, until: datetime) -> Stage:
    first = pod.status.start_time is None
    statuses = [waiting(item, "ContainerCreating") for item in pod.spec.containers]
    images = dict.fromkeys(item.image for item in pod.spec.containers)
    notes = [Note("Pulling", f'Pulling image "{image}"') for image in images] if first else []
    return Stage(_pending(pod, place, moment, statuses), until, notes)


def _pending(
    pod: core_v1.Pod, place: Place, moment: datetime, statuses: list[core_v1.ContainerStatus]
) -> core_v1.PodStatus:
    status = status_at(pod, place, "Pending", moment)
    status.init_container_statuses = _initialized(pod, moment, stopping=False)
    status.container_statuses = statuses
    status.conditions = conditions_of(pod, moment, status)
    return status


def status_at(pod: core_v1.Pod, place: Place, phase: str, moment: datetime) -> core_v1.PodStatus:
    """Begin a Pod's status: its phase, its times, its addresses; what others tell of it stays."""
    address = place.host_ip if pod.spec.host_network else place.pod_ip
    return msgspec.structs.replace(
        pod.status,
        phase=phase,
        reason="",
        message="",
        observed_generation=pod.metadata.generation,
        start_time=pod.status.start_time or moment,
        host_ip=place.host_ip,
        host_ips=[core_v1.HostIP(ip=place.host_ip)],
        pod_ip=address,
        pod_ips=[core_v1.PodIP(ip=address)],
    )


def _initialized(pod: core_v1.Pod, moment: datetime, *, stopping: bool) -> list[core_v1.ContainerStatus]:
    """Give the init containers' statuses: each ends at once, those that restart always run along."""
    known = _known(pod.status.init_container_statuses)
    made: list[core_v1.ContainerStatus] = []
    for container in pod.spec.init_containers:
        before = known.get(container.name)
        if container.restart_policy == "Always" and not stopping:
            made.append(step(Life(pod, container, before, Fate.RUN, "Always", moment)).status)
            continue
        status = finished(pod, container, moment, before)
        status.ready = container.restart_policy != "Always"
        made.append(status)
    return made


def conditions_of(
    pod: core_v1.Pod, moment: datetime, status: core_v1.PodStatus, unfinished: Sequence[str] = ()
) -> list[core_v1.PodCondition]:
    """Sum a status up in conditions, after those that others tell; `unfinished` are init containers awaited."""
    over = has_ended(status.phase)
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
    wanted = {
        "PodReadyToStartContainers": (not over, "", ""),
        "Initialized": (True, "PodCompleted" if reason == "PodCompleted" else "", ""),
        **_unfinished(unfinished),
        "Ready": (ready, reason, message),
        "ContainersReady": (ready, reason, message),
    }
    if ready and missing:
        wanted["Ready"] = (False, "ReadinessGatesNotReady", _gates_told(pod, missing))
    others = [item for item in pod.status.conditions if item.type not in wanted]
    return sorted(
        [*others, *(_condition(pod, name, *told, moment) for name, told in wanted.items())],
        key=lambda item: item.type == SCHEDULED,
    )


def _unfinished(names: Sequence[str]) -> dict[str, tuple[bool, str, str]]:
    if not names:
        return {}
    message = f"containers with incomplete status: [{' '.join(names)}]"
    return {"Initialized": (False, "ContainersNotInitialized", message)}


def _gates_told(pod: core_v1.Pod, missing: Sequence[str]) -> str:
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


def _known(statuses: Sequence[core_v1.ContainerStatus]) -> dict[str, core_v1.ContainerStatus]:
    return {item.name: item for item in statuses}
