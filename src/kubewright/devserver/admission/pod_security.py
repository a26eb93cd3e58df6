"""Pod Security: Pods are rejected, warned of or audited by the levels in the labels of their namespace."""

import re
from dataclasses import dataclass

from kubewright.api import FieldError, problems
from kubewright.devserver.admission.security_checks import NEWEST, violations
from kubewright.devserver.objects import JsonObject, copy, items, labels_of, meta, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_MODES = ("enforce", "audit", "warn")
_TEMPLATES = {
    ("", "ReplicationController"): ("spec", "template"),
    ("", "PodTemplate"): ("template",),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
_RESOURCES = frozenset(
    {
        *(("", plural) for plural in ("namespaces", "pods", "replicationcontrollers", "podtemplates")),
        *(("apps", plural) for plural in ("replicasets", "deployments", "daemonsets", "statefulsets")),
        *(("batch", plural) for plural in ("jobs", "cronjobs")),
    }
)
_IGNORED_PARTS = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status", "resize"}
)
_WATCHED = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class SecurityLevel:
    """A level of the Pod Security Standards in a version."""

    name: str = "privileged"
    version: str = "latest"
    newest: int = NEWEST
    """The minor version of the server, whose checks `latest` means."""

    def __str__(self) -> str:
        return f"{self.name}:{self.version}"

    def violations(self, pod: JsonObject) -> str:
        """Return the violations of a Pod, as one text."""
        minor = self.newest if self.version == "latest" else int(self.version.partition(".")[2])
        return violations(self.name, pod, min(minor, self.newest))


class PodSecurity(AdmissionPlugin):
    """Check Pods against the Pod Security levels of their namespace."""

    resources: frozenset[tuple[str, str]] = _RESOURCES

    def __init__(self, api: Access, newest: int = NEWEST) -> None:
        self._api = api
        self._newest = newest

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject or warn of Pods and workloads with Pod templates; check the labels of namespaces."""
        obj = attributes.object
        if obj is None or attributes.operation not in ("CREATE", "UPDATE"):
            return
        if attributes.kind == ("", "v1", "Namespace"):
            self._check_namespace(attributes, obj)
            return
        namespace = self._api.find("", "namespaces", "", attributes.namespace)
        if namespace is None:
            return
        levels = _levels(labels_of(namespace), self._newest)
        group, kind = attributes.kind.group, attributes.kind.kind
        if (group, kind) == ("", "Pod"):
            if attributes.subresource not in _IGNORED_PARTS and _is_significant(attributes):
                _check_levels(attributes, obj, levels, enforce=True)
        elif (group, kind) in _TEMPLATES and not attributes.subresource:
            template = section(obj, *_TEMPLATES[group, kind])
            if template:
                _check_levels(attributes, template, levels, enforce=False)

    def _check_namespace(self, attributes: AdmissionAttributes, namespace: JsonObject) -> None:
        if attributes.subresource:
            return
        labels = labels_of(namespace)
        before = labels_of(attributes.old_object or {})
        errors = [error for mode in _MODES for error in _label_errors(labels, mode)]
        old_errors = [error for mode in _MODES for error in _label_errors(before, mode)]
        if errors and not (old_errors and attributes.operation == "UPDATE"):
            raise StatusError.invalid("", "Namespace", meta(namespace).get("name", ""), errors)
        level = level_of(labels, "enforce", self._newest)
        old = level_of(before, "enforce", self._newest)
        if (
            attributes.operation == "UPDATE"
            and level != old
            and LEVELS.index(level.name) > LEVELS.index(old.name)
        ):
            attributes.context.warnings.extend(self._present_violations(meta(namespace)["name"], level))

    def _present_violations(self, namespace: str, level: SecurityLevel) -> list[str]:
        """Return warnings for existing Pods that would be rejected now."""
        found: dict[str, list[str]] = {}
        for pod in self._api.list("", "pods", namespace):
            if text := _reasons(level, pod):
                found.setdefault(text, []).append(meta(pod)["name"])
        if not found:
            return []
        title = (
            f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{level}"'
        )
        lines: list[str] = []
        for text, names in found.items():
            others = len(names) - 1
            more = "" if not others else f" (and {others} other pod{'s' if others > 1 else ''})"
            lines.append(f"{names[0]}{more}: {text}")
        return [title, *sorted(lines)]


def _reasons(level: SecurityLevel, pod: JsonObject) -> str:
    """Return the names of the violated checks, without details."""
    return re.sub(r" \([^)]*\)", "", level.violations(pod))


def level_of(labels: dict[str, str], mode: str, newest: int = NEWEST) -> SecurityLevel:
    """Read a level from the labels of a namespace; one that cannot be read is taken as strictly as it may be."""
    name, version = labels.get(f"{PREFIX}{mode}"), labels.get(f"{PREFIX}{mode}-version", "latest")
    if name is None:
        return SecurityLevel(newest=newest)
    if name not in LEVELS:
        name = "restricted" if mode == "enforce" else "privileged"
    return SecurityLevel(name, version if _VERSION.fullmatch(version) else "latest", newest)


def _levels(labels: dict[str, str], newest: int) -> dict[str, SecurityLevel]:
    """Return the levels of all modes; audit and warn default to the enforced level."""
    levels = {mode: level_of(labels, mode, newest) for mode in _MODES}
    if f"{PREFIX}warn" not in labels:
        levels["warn"] = levels["enforce"]
    return levels


def _label_errors(labels: dict[str, str], mode: str) -> list[FieldError]:
    errors: list[FieldError] = []
    level, version = labels.get(f"{PREFIX}{mode}"), labels.get(f"{PREFIX}{mode}-version")
    if level is not None and level not in LEVELS:
        text = f"must be one of {', '.join(LEVELS)}"
        errors.append(problems.invalid(f"metadata.labels[{PREFIX}{mode}]", level, text))
    if version is not None and not _VERSION.fullmatch(version):
        text = 'must be "latest" or "v1.x"'
        errors.append(problems.invalid(f"metadata.labels[{PREFIX}{mode}-version]", version, text))
    return errors


def _is_significant(attributes: AdmissionAttributes) -> bool:
    """Return True if an update changes what the checks look at; of a running Pod only images can change."""
    if attributes.operation == "CREATE" or attributes.old_object is None or attributes.object is None:
        return True
    old, new = (copy(section(obj, "spec")) for obj in (attributes.old_object, attributes.object))
    for spec in (old, new):
        for field in ("activeDeadlineSeconds", "tolerations"):
            spec.pop(field, None)
        for container in (item for field in _WATCHED for item in items(spec, field)):
            container.pop("image", None)
    return old != new


def _check_levels(
    attributes: AdmissionAttributes, pod: JsonObject, levels: dict[str, SecurityLevel], *, enforce: bool
) -> None:
    if enforce and (found := levels["enforce"].violations(pod)):
        raise attributes.forbidden(f'violates PodSecurity "{levels["enforce"]}": {found}')
    if found := levels["audit"].violations(pod):
        text = f'would violate PodSecurity "{levels["audit"]}": {found}'
        attributes.context.audit_annotations["pod-security.kubernetes.io/audit-violations"] = text
    if found := levels["warn"].violations(pod):
        attributes.context.warnings.append(f'would violate PodSecurity "{levels["warn"]}": {found}')
