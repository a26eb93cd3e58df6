"""Manifests from declarations: pure functions from an operator to Kubernetes documents.

`crds`, `rbac`, `users`, `webhooks`, `deployment`, `metrics`, `network` and `samples` render one part each,
`manifests` puts them together; `kustomize` and `helm` lay the same documents out as trees of files, `olm` as
a bundle. `names` says what everything is called, `documents` how it is written.
"""

from kubewright.generate.crds import crds
from kubewright.generate.deployment import deployment
from kubewright.generate.documents import HEADER, file_name, files_of, plain_yaml, to_yaml
from kubewright.generate.helm import Chart, helm
from kubewright.generate.kustomize import kustomize
from kubewright.generate.manifests import DEFAULT_IMAGE, PARTS, USUAL_PARTS, Settings, manifests
from kubewright.generate.names import Names
from kubewright.generate.rbac import rbac
from kubewright.generate.samples import sample, samples
from kubewright.generate.webhooks import webhooks

__all__ = [
    "DEFAULT_IMAGE",
    "HEADER",
    "PARTS",
    "USUAL_PARTS",
    "Chart",
    "Names",
    "Settings",
    "crds",
    "deployment",
    "file_name",
    "files_of",
    "helm",
    "kustomize",
    "manifests",
    "plain_yaml",
    "rbac",
    "sample",
    "samples",
    "to_yaml",
    "webhooks",
]
