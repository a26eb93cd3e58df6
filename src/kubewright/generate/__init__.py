"""Manifests from declarations: pure functions from an operator to Kubernetes documents."""

from kubewright.generate.crds import crds
from kubewright.generate.deployment import deployment
from kubewright.generate.documents import file_name, to_yaml
from kubewright.generate.names import Names
from kubewright.generate.rbac import rbac
from kubewright.generate.webhooks import webhooks

__all__ = ["Names", "crds", "deployment", "file_name", "rbac", "to_yaml", "webhooks"]
