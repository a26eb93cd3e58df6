"""Annotations of Pods and Pod templates that have a meaning for Kubernetes: validation."""

import re
from collections.abc import Iterator, Mapping

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, section

POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PROFILES = ("runtime/default", "docker/default", "unconfined")
_LOCAL_PROFILE = "localhost/"
_INT32 = 1 << 31


def check_pod_annotations(holder: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the annotations of a Pod or a template, which are shown at a path."""
    annotations: Mapping[str, str] = section(holder, "metadata", "annotations")
    if _MIRROR in annotations and not section(holder, "spec").get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        yield problems.invalid(f"{path}[{_MIRROR}]", annotations[_MIRROR], text)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not (
        re.fullmatch("0|-[0-9]+|[1-9][0-9]*", cost, re.ASCII) and -_INT32 <= int(cost) < _INT32
    ):
        yield problems.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")
    if POD_SECCOMP in annotations:
        yield from _seccomp_profile(f"{path}.{POD_SECCOMP}", annotations[POD_SECCOMP])
    for name, profile in annotations.items():
        if name.startswith(CONTAINER_SECCOMP):
            yield from _seccomp_profile(f"{path}.{name}", profile)


def check_changed_annotations(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """Check what an update does to the annotations of a Pod."""
    path = "metadata.annotations"
    after, before = (section(pod, "metadata", "annotations") for pod in (new, old))
    if _MIRROR in before and after.get(_MIRROR) != before[_MIRROR]:
        yield problems.forbidden(f"{path}[{_MIRROR}]", "may not remove or update mirror pod annotation")
    elif _MIRROR in after and _MIRROR not in before:
        yield problems.forbidden(f"{path}[{_MIRROR}]", "may not add mirror pod annotation")
    yield from check_pod_annotations(new, path)


def _seccomp_profile(path: str, profile: str) -> list[FieldError]:
    if profile in _PROFILES:
        return []
    if profile.startswith(_LOCAL_PROFILE):
        return check.clean_relative_path(path, profile.removeprefix(_LOCAL_PROFILE))
    return [problems.invalid(path, profile, "must be a valid seccomp profile")]
