"""Record the objects that a real control plane starts with, for the embedded server: its roles,
bindings, priority classes and flow schemas.

    tools/record_bootstrap.py

Needs the binaries of `scripts/control-plane build`.
"""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from kubewright.testing.controlplane import ControlPlane

RESOURCES = (
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
    "priorityclasses",
    "flowschemas",
    "prioritylevelconfigurations",
)
TARGET = Path(__file__).parent.parent / "src/kubewright/devserver/auth/bootstrap.json"
SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def recorded(plane: ControlPlane, resource: str) -> list[dict[str, Any]]:
    """Read all objects of a resource, without the fields that the server sets on each."""
    command = [plane.binaries / "kubectl", "--kubeconfig", plane.kubeconfig, "get", resource]
    options = ["--all-namespaces", "--output", "json"]
    items = json.loads(subprocess.run([*command, *options], check=True, capture_output=True).stdout)["items"]
    for item in items:
        for name in SERVER_SIDE:
            item["metadata"].pop(name, None)
        for condition in item.get("status", {}).get("conditions", ()):
            condition.pop("lastTransitionTime", None)
    return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))


async def main() -> None:
    """Write the record."""
    async with ControlPlane(controllers=True) as plane:
        lists = [await asyncio.to_thread(recorded, plane, resource) for resource in RESOURCES]
    lines = [json.dumps(item, separators=(",", ":"), sort_keys=True) for items in lists for item in items]
    text = ",\n".join(lines)
    TARGET.write_text(f"[\n{text}\n]\n")
    print(f"{len(lines)} objects")


if __name__ == "__main__":
    asyncio.run(main())
