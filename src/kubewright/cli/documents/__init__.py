"""Objects on the command line: kinds by name, documents from files, diffs of YAML."""

from kubewright.cli.documents.applying import apply_document
from kubewright.cli.documents.comparison import (
    ApplyDiff,
    diff,
    differences,
    show,
    show_client_dry_run,
    show_diff,
)
from kubewright.cli.documents.defined_kinds import defined_kinds
from kubewright.cli.documents.resources import (
    Requested,
    called,
    find_resource,
    find_resources,
    read_documents,
    requested_objects,
)

__all__ = [
    "ApplyDiff",
    "Requested",
    "apply_document",
    "called",
    "defined_kinds",
    "diff",
    "differences",
    "find_resource",
    "find_resources",
    "read_documents",
    "requested_objects",
    "show",
    "show_client_dry_run",
    "show_diff",
]
