"""The kinds of rbac.authorization.k8s.io/v1; written by tools/generate_builtin.py."""

from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.model import Model
from kubewright.api.resource import Object


class AggregationRule(Model, builtin=True):
    cluster_role_selectors: list[LabelSelector] = []


class PolicyRule(Model, builtin=True, wire_names={"non_resource_urls": "nonResourceURLs"}):
    api_groups: list[str] = []
    non_resource_urls: list[str] = []
    resource_names: list[str] = []
    resources: list[str] = []
    verbs: list[str]


class ClusterRole(
    Object,
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterroles",
    scope="Cluster",
    status=False,
    builtin=True,
):
    aggregation_rule: AggregationRule | None = None
    rules: list[PolicyRule] = []


class RoleRef(Model, builtin=True):
    api_group: str = ""
    kind: str
    name: str


class Subject(Model, builtin=True):
    api_group: str = ""
    kind: str
    name: str
    namespace: str = ""


class ClusterRoleBinding(
    Object,
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterrolebindings",
    scope="Cluster",
    status=False,
    builtin=True,
):
    role_ref: RoleRef
    subjects: list[Subject] = []


class Role(
    Object, group="rbac.authorization.k8s.io", version="v1", plural="roles", status=False, builtin=True
):
    rules: list[PolicyRule] = []


class RoleBinding(
    Object, group="rbac.authorization.k8s.io", version="v1", plural="rolebindings", status=False, builtin=True
):
    role_ref: RoleRef
    subjects: list[Subject] = []


__all__ = [
    "AggregationRule",
    "ClusterRole",
    "ClusterRoleBinding",
    "PolicyRule",
    "Role",
    "RoleBinding",
    "RoleRef",
    "Subject",
]
