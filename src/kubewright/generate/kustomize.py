"""The manifests as a kustomize tree: a complete base, and optional components."""

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.documents import HEADER, files_of, plain_yaml
from kubewright.generate.manifests import FURTHER_PARTS, PARTS, USUAL, Settings, names_of, parts_of

_KUSTOMIZATION = "kustomization.yaml"
_OPTIONAL = ("monitoring", "network")


def kustomize(operator: Operator, settings: Settings = USUAL) -> dict[str, str]:
    """Render a tree: `kubectl apply -k DIR` installs the operator, `DIR/samples` its samples.

    Monitoring and network policy are components: `components: [DIR/monitoring]` in an overlay adds one.
    Nothing is prefixed or patched: the files are applied as they are.
    """
    parts = parts_of(operator, names_of(operator, settings), PARTS, settings)
    tree: dict[str, str] = {}
    base: list[str] = []
    for part, documents in parts.items():
        if not documents:
            continue
        files = files_of(documents)
        for name, document in files.items():
            tree[f"{part}/{name}"] = HEADER + plain_yaml(document)
        tree[f"{part}/{_KUSTOMIZATION}"] = _kustomization(list(files), component=part in _OPTIONAL)
        if part not in FURTHER_PARTS:
            base.append(part)
    tree[_KUSTOMIZATION] = _kustomization(base)
    return tree


def _kustomization(resources: list[str], *, component: bool = False) -> str:
    head: JsonObject = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    if component:
        head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    return HEADER + plain_yaml({**head, "resources": resources})
