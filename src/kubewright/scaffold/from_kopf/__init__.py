"""Convert a kopf operator into a kubewright project, by its syntax tree: nothing of it is imported or run.

`convert` is the entry point. Read in this order: `reading` (handlers and the kinds they name), `kinds` (a class for each
kind), `calls` (what the calls of a function do), `bodies` and `imports` (the functions, translated in place),
`converting` (handlers to controllers), `controllers` (their text), `report` (MIGRATION.md).
"""

from kubewright.scaffold.from_kopf.converting import Converted, KopfModule, convert
from kubewright.scaffold.from_kopf.reading import KopfError

__all__ = ["Converted", "KopfError", "KopfModule", "convert"]
