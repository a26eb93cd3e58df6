"""The project of an operator: its settings, `init` and `create`."""

from kubewright.cli.project.settings import FILE, Project, find_project, read_project, the_project

__all__ = [
    "FILE",
    "Project",
    "find_project",
    "read_project",
    "the_project",
]
