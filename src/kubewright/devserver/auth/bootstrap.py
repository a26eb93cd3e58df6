"""The roles, bindings and priority classes every cluster starts with, recorded from a real one."""

import json
from importlib.resources import files

from kubewright.devserver.objects import Wire


def bootstrap_objects() -> list[Wire]:
    """Give the objects to create in an empty server."""
    objects: list[Wire] = json.loads(
        files("kubewright.devserver.auth").joinpath("bootstrap.json").read_bytes()
    )
    return objects
