"""Names of compute resources: in Pods and containers, in LimitRanges and in ResourceQuotas."""

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check

_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS = frozenset(
    {
        *_OF_CONTAINERS,
        *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage"),
    }
    | {f"{kind}.{name}" for kind in ("requests", "limits") for name in _OF_CONTAINERS}
)
_STANDARD = _OF_QUOTAS | {"storage"}
_OF_PODS = ("cpu", "memory")


def resource_name(path: str, name: str) -> list[FieldError]:
    """Check the name of any resource."""
    errors = check.named(path, name, names.qualified_name(name))
    if not errors and "/" not in name and not (name in _STANDARD or _is_quota_of_pages(name)):
        errors.append(problems.invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def container_resource_name(path: str, name: str) -> list[FieldError]:
    """Check the name of a resource that a container can request."""
    errors = resource_name(path, name)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not _is_pages(name):
            errors.append(problems.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and (name.startswith("requests.") or names.qualified_name(f"requests.{name}")):
        errors.append(problems.invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def pod_resource_name(path: str, name: str) -> list[FieldError]:
    """Check the name of a resource that a Pod as a whole can request."""
    if errors := resource_name(path, name):
        return errors
    if name in _OF_PODS or _is_pages(name):
        return []
    return [problems.not_supported(path, name, ("cpu", "hugepages-", "memory"))]


def quota_resource_name(path: str, name: str) -> list[FieldError]:
    """Check the name of a resource that a quota can limit."""
    errors = resource_name(path, name)
    if "/" not in name and not is_quota_resource(name):
        errors.append(problems.invalid(path, name, "must be a standard resource for quota"))
    return errors


def is_quota_resource(name: str) -> bool:
    """Return True if a resource is a standard one for quotas."""
    return name in _OF_QUOTAS or _is_quota_of_pages(name)


def is_native(name: str) -> bool:
    """Return True if a resource is native to Kubernetes and not an extended one."""
    return "/" not in name or "kubernetes.io/" in name


def can_be_overcommitted(name: str) -> bool:
    """Return True if the limit of a resource can be higher than the request."""
    return is_native(name) and not _is_pages(name)


def _is_pages(name: str) -> bool:
    return name.startswith("hugepages-")


def _is_quota_of_pages(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))
