"""What the tests with other people's libraries share."""

from importlib.util import find_spec
from typing import Any

import pytest

# Other people's clients leave sockets to the garbage collector, which is not what these tests are about.
LENIENT = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collected"),
]


def peer(name: str) -> None:
    """Skip a module where a library is not installed."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: run scripts/setup --peers", allow_module_level=True)


def definition(group: str) -> dict[str, Any]:
    """Make a definition of widgets: a size, a mode with a default, a status and a scale."""
    number = {"type": "integer"}
    mode = {"type": "string", "enum": ["fast", "slow"], "default": "slow"}
    conditions = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {**number, "minimum": 0}, "mode": mode}},
            "status": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"size": number, "conditions": conditions},
            },
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
