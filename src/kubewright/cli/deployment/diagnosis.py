"""Why a Deployment does not become available, from its conditions, Pods, Events and logs."""

from collections.abc import Iterator, Sequence

from kubewright.api import KubewrightError
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import Client

LOG_LINES = 10
EVENTS = 3


def hindrance(found: apps_v1.Deployment, pods: Sequence[core_v1.Pod]) -> str:
    """Return in one line why the Deployment is not available yet."""
    reasons = [*_conditions(found), *(text for pod in pods for text in _containers(pod))]
    ready = f"{found.status.available_replicas} of {found.spec.replicas or 0} replicas are available"
    return "; ".join([ready, *dict.fromkeys(reasons)])


async def pods_of(client: Client, found: apps_v1.Deployment) -> list[core_v1.Pod]:
    """List the Deployment's Pods; return none if they cannot be listed."""
    labels = ",".join(f"{key}={value}" for key, value in found.spec.selector.match_labels.items())
    try:
        return list(await client.list(core_v1.Pod, namespace=found.metadata.namespace, labels=labels))
    except KubewrightError:
        return []


async def explain(client: Client, found: apps_v1.Deployment) -> str:
    """Return conditions, container states, warning events and the log of a crashed container, one per line."""
    pods = await pods_of(client, found)
    lines = [*_conditions(found), *(text for pod in pods for text in _containers(pod))]
    lines += await _warnings(client, found, pods)
    for pod in pods:
        if (container := _crashed(pod)) is not None:
            lines += await _log(client, pod, container)
            break
    return "".join(f"\n  {line}" for line in dict.fromkeys(lines))


def _conditions(found: apps_v1.Deployment) -> Iterator[str]:
    for item in found.status.conditions:
        if (item.type == "Progressing" and item.status == "False") or (
            item.type == "ReplicaFailure" and item.status == "True"
        ):
            yield f"{item.reason}: {item.message}"


def _containers(pod: core_v1.Pod) -> Iterator[str]:
    name = pod.metadata.name
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            yield f"pod {name} is not scheduled: {condition.message or condition.reason}"
    for item in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting, ended = item.state.waiting, item.state.terminated or item.last_state.terminated
        if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            yield f"container {item.name} of pod {name}: {waiting.reason}: {waiting.message}".rstrip(": ")
        if ended is not None and ended.exit_code:
            yield f"container {item.name} of pod {name} exited with {ended.exit_code} ({ended.reason})"


def _crashed(pod: core_v1.Pod) -> core_v1.ContainerStatus | None:
    for item in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if item.restart_count or item.state.terminated is not None:
            return item
    return None


async def _warnings(client: Client, found: apps_v1.Deployment, pods: Sequence[core_v1.Pod]) -> list[str]:
    about = {found.metadata.name, *(pod.metadata.name for pod in pods)}
    try:
        events = await client.list(core_v1.Event, namespace=found.metadata.namespace, fields="type=Warning")
    except KubewrightError as error:
        return [f"cannot read events: {error}"]
    ours = [
        event
        for event in events
        if event.involved_object.name in about
        or event.involved_object.name.startswith(f"{found.metadata.name}-")
    ]
    return [
        f"event of {event.involved_object.kind.lower()} {event.involved_object.name}: "
        f"{event.reason}: {event.message}"
        for event in ours[-EVENTS:]
    ]


async def _log(client: Client, pod: core_v1.Pod, container: core_v1.ContainerStatus) -> list[str]:
    text, previous = b"", container.state.terminated is None
    try:
        async for piece in client.pod_logs(
            pod.metadata.name,
            pod.metadata.namespace,
            container=container.name,
            previous=previous,
            tail_lines=LOG_LINES,
        ):
            text += piece
    except KubewrightError as error:
        return [f"cannot read its log: {error}"]
    lines = text.decode(errors="replace").splitlines()
    return [f"log of container {container.name} of pod {pod.metadata.name}:", *(f"  | {it}" for it in lines)]
