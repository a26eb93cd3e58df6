"""Objects as people name and compare them: kinds by name, documents from files, diffs of YAML."""

from kubewright.cli.documents.brought import brought_kinds
from kubewright.cli.documents.comparison import Comparison, diff, differences, show, show_comparison
from kubewright.cli.documents.resources import called, find_resource, read_documents, split_names

__all__ = [
    "Comparison",
    "brought_kinds",
    "called",
    "diff",
    "differences",
    "find_resource",
    "read_documents",
    "show",
    "show_comparison",
    "split_names",
]
