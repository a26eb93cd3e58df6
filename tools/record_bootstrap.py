"""Record the objects a real control plane starts with, for the embedded server: roles, bindings, priority classes.

tools/record_bootstrap.py --kubeconfig FILE [--kubectl PATH]
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

RESOURCES = ("clusterroles", "clusterrolebindings", "roles", "rolebindings", "priorityclasses")
TARGET = Path(__file__).parent.parent / "src/kubewright/devserver/auth/bootstrap.json"
SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def recorded(kubectl: str, kubeconfig: str, resource: str) -> list[dict[str, Any]]:
    """Read all objects of a resource, without what the server adds to each."""
    command = [kubectl, "--kubeconfig", kubeconfig, "get", resource, "--all-namespaces", "--output", "json"]
    items = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["items"]
    for item in items:
        for name in SERVER_SIDE:
            item["metadata"].pop(name, None)
    return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--kubectl", default="kubectl")
    arguments = parser.parse_args()
    objects = [
        item for resource in RESOURCES for item in recorded(arguments.kubectl, arguments.kubeconfig, resource)
    ]
    lines = ",\n".join(json.dumps(item, separators=(",", ":"), sort_keys=True) for item in objects)
    TARGET.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
