"""Pods that run a script."""

from typing import Any

from kubewright.api import Meta
from kubewright.api.builtin import core_v1


def shell(name: str, script: str, **fields: Any) -> core_v1.Pod:
    """Build a Pod that runs a script."""
    container = core_v1.Container(name="main", image="example/shell:1", command=["sh", "-c", script])
    spec = core_v1.PodSpec(containers=[container])
    for key, value in fields.items():
        setattr(container if hasattr(container, key) else spec, key, value)
    return core_v1.Pod(Meta(name), spec=spec)


def is_running(pod: core_v1.Pod) -> bool:
    return pod.status.phase == "Running" and pod.status.container_statuses[0].ready
