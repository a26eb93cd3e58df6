"""The kinds of scheduling.k8s.io/v1; written by tools/generate_builtin.py."""

from kubewright.api.resource import Object


class PriorityClass(
    Object,
    group="scheduling.k8s.io",
    version="v1",
    plural="priorityclasses",
    scope="Cluster",
    short_names=["pc"],
    status=False,
    builtin=True,
):
    description: str = ""
    global_default: bool = False
    preemption_policy: str | None = None
    value: int = 0


__all__ = [
    "PriorityClass",
]
