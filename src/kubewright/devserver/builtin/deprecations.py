"""Warnings that several kinds share: deprecated node labels, removed volume plugins, fractions of a byte."""

from collections.abc import Iterator, Mapping, Sequence

from kubewright.api import Quantity, names, problems
from kubewright.devserver.objects import JsonObject, items, section

NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
VOLUME_PLUGINS = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
"""The removed plugins of PersistentVolumes, in the order in which kube-apiserver warns about them."""
# Warnings spell these fields differently from JSON.
_SHOWN_FIELDS = {"storageos": "storageOS"}
STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
STORAGE_CLASS_TEXT = 'deprecated since v1.8; use "storageClassName" attribute instead'


def warn_about_requirements(
    requirements: Sequence[JsonObject], path: str, *, check_values: bool = False
) -> Iterator[str]:
    """Warn about deprecated node labels, and with `check_values` about invalid values, in `matchExpressions`."""
    for index, requirement in enumerate(requirements):
        key = requirement.get("key", "")
        if key in NODE_LABELS:
            yield f"{path}[{index}].key: {key} is {NODE_LABELS[key]}"
        for position, value in enumerate(items(requirement, "values") if check_values else ()):
            for text in names.label_value(value):
                yield f"{path}[{index}].values[{position}]: {value} is invalid, {text}"


def warn_about_node_terms(selector: JsonObject, path: str) -> Iterator[str]:
    """Warn about deprecated node labels in the terms of a node selector."""
    for index, term in enumerate(items(selector, "nodeSelectorTerms")):
        where = f"{path}.nodeSelectorTerms[{index}].matchExpressions"
        yield from warn_about_requirements(items(term, "matchExpressions"), where)


def warn_about_plugins(volume: JsonObject, path: str, plugins: Mapping[str, str]) -> Iterator[str]:
    """Warn about volume plugins of a volume that were removed."""
    for name, text in plugins.items():
        if volume.get(name) is not None:
            yield f"{path}.{_SHOWN_FIELDS.get(name, name)}: {text}"


def warn_about_fractions(resources: JsonObject, names: Sequence[str], path: str) -> Iterator[str]:
    """Warn about quantities of bytes that are not integers."""
    for name in names:
        if name in resources and Quantity(resources[name]).milli() % 1000:
            text = problems.quoted(str(resources[name]))
            yield f"{path}[{name}]: fractional byte value {text} is invalid, must be an integer"


def warn_about_claim_spec(spec: JsonObject, path: str) -> Iterator[str]:
    """Warn about fractions of a byte in the spec of a PersistentVolumeClaim."""
    for kind in ("requests", "limits"):
        yield from warn_about_fractions(
            section(spec, "resources", kind), ("storage",), f"{path}.resources.{kind}"
        )
