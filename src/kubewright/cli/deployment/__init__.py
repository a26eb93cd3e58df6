"""`deploy` and `undeploy`, and the reasons why a Deployment is not available."""

from kubewright.cli.deployment.diagnosis import hindrance, pods_of

__all__ = [
    "hindrance",
    "pods_of",
]
