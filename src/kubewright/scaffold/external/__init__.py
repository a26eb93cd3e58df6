"""Typed classes of other projects' CRDs, as Python modules for an author's project.

`external_modules` is the entry point. Read in this order: `definitions` (what a CRD declares), `class_names` (a short
name for each nested object), `annotations` (a schema as a Python type), `modules` (the text of a module).
"""

from kubewright.scaffold.external.definitions import (
    DefinitionError,
    Definitions,
    ExternalVersion,
    read_definitions,
)
from kubewright.scaffold.external.modules import MARKER, class_differences, external_modules, kinds_in

__all__ = [
    "MARKER",
    "DefinitionError",
    "Definitions",
    "ExternalVersion",
    "class_differences",
    "external_modules",
    "kinds_in",
    "read_definitions",
]
