"""The author's project: what it says of itself, `init` and `create`."""

from kubewright.cli.project.settings import FILE, Project, find_project, read_project, the_project

__all__ = [
    "FILE",
    "Project",
    "find_project",
    "read_project",
    "the_project",
]
