"""The roles, bindings and priority classes every cluster starts with, recorded from a real one."""

import json
from importlib.resources import files

from kubewright.devserver.objects import JsonObject


def bootstrap_objects() -> list[JsonObject]:
    """Give the objects to create in an empty server."""
    objects: list[JsonObject] = json.loads(
        files("kubewright.devserver.auth").joinpath("bootstrap.json").read_bytes()
    )
    return objects
