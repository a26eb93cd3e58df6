"""Objects as people name and compare them: kinds by name, documents from files, diffs of YAML."""

from kubewright.cli.documents.comparison import diff, differences, show
from kubewright.cli.documents.resources import called, find_resource, read_documents, split_names

__all__ = [
    "called",
    "diff",
    "differences",
    "find_resource",
    "read_documents",
    "show",
    "split_names",
]
