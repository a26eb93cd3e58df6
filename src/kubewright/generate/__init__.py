"""Manifests from declarations: pure functions from an operator to Kubernetes documents.

`crds`, `rbac`, `network`, `deployment`, `monitoring` and `samples` render one part each, and `manifests` puts them together.
`policies` translates admission functions to policies. `installer` renders the roles for installing them. `kustomize` and `helm` write the same documents as trees of files,
`olm` as a bundle, which `scorecard` and `capability` check. `names` has the names of all objects, `documents` writes
YAML.
"""

from kubewright.generate.capability import LEVELS, Capability, Criterion, criteria, level_of
from kubewright.generate.crds import crds
from kubewright.generate.deployment import deployment
from kubewright.generate.documents import HEADER, MARK, file_name, files_of, plain_yaml, to_yaml
from kubewright.generate.helm import Chart, helm
from kubewright.generate.installer import installer
from kubewright.generate.kustomize import kustomize
from kubewright.generate.manifests import (
    DEFAULT_IMAGE,
    PARTS,
    USUAL_PARTS,
    Settings,
    is_idle,
    manifests,
    with_policies,
)
from kubewright.generate.names import Names
from kubewright.generate.network import webhooks
from kubewright.generate.olm import Package, bundle, cluster_service_version
from kubewright.generate.policies import KeptWebhook
from kubewright.generate.rbac import WebhookReach, rbac
from kubewright.generate.samples import sample, samples
from kubewright.generate.scorecard import ScorecardCheck, checks

__all__ = [
    "DEFAULT_IMAGE",
    "HEADER",
    "LEVELS",
    "MARK",
    "PARTS",
    "USUAL_PARTS",
    "Capability",
    "Chart",
    "Criterion",
    "KeptWebhook",
    "Names",
    "Package",
    "ScorecardCheck",
    "Settings",
    "WebhookReach",
    "bundle",
    "checks",
    "cluster_service_version",
    "crds",
    "criteria",
    "deployment",
    "file_name",
    "files_of",
    "helm",
    "installer",
    "is_idle",
    "kustomize",
    "level_of",
    "manifests",
    "plain_yaml",
    "rbac",
    "sample",
    "samples",
    "to_yaml",
    "webhooks",
    "with_policies",
]
