"""Objects on the command line: kinds by name, documents from files, diffs of YAML."""

from kubewright.cli.documents.applying import apply_document
from kubewright.cli.documents.brought import brought_kinds
from kubewright.cli.documents.comparison import (
    Comparison,
    diff,
    differences,
    show,
    show_client_dry_run,
    show_comparison,
)
from kubewright.cli.documents.resources import (
    Requested,
    called,
    find_resource,
    find_resources,
    read_documents,
    requested_objects,
)

__all__ = [
    "Comparison",
    "Requested",
    "apply_document",
    "brought_kinds",
    "called",
    "diff",
    "differences",
    "find_resource",
    "find_resources",
    "read_documents",
    "requested_objects",
    "show",
    "show_client_dry_run",
    "show_comparison",
]
