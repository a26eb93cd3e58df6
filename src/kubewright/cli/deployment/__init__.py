"""An operator brought to a cluster and taken away: `deploy`, `undeploy`, and why one does not start."""

from kubewright.cli.deployment.diagnosis import hindrance, pods_of

__all__ = [
    "hindrance",
    "pods_of",
]
