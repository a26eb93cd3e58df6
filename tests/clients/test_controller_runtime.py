"""controller-runtime, and client-go under it, fill an informer from the embedded server."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from acceptance_waits import served

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, Kind
from kubewright.testing import Cluster

MODULE = Path(__file__).parents[2] / "benchmarks" / "controller_runtime"
GROUP = "bench.kubewright.dev"


@pytest.fixture(scope="module")
def go() -> str:
    """Find the Go tool chain."""
    found = shutil.which("go")
    if found is None:
        pytest.skip("no go on the path: controller-runtime's program cannot be built")
    return found


async def test_an_informer_sees_every_object(go: str, cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "coldcache"
    await _run(go, "build", "-o", str(program), "./coldcache", cwd=MODULE)
    samples = Kind(group=GROUP, version="v1", kind="Sample", plural="samples", namespaced=True, status=True)
    await cluster.client.create(_definition(), kind=CUSTOM_RESOURCE_DEFINITION)
    try:
        await cluster.eventually(
            CUSTOM_RESOURCE_DEFINITION,
            f"samples.{GROUP}",
            lambda crd: any(
                (condition["type"], condition["status"]) == ("Established", "True")
                for condition in crd.get("status", {}).get("conditions") or ()
            ),
        )
        await served(cluster.client, samples, cluster.namespace)
        for number in range(25):
            await cluster.client.create(_sample(f"s{number}", cluster.namespace), kind=samples)
        answer = json.loads(await _run(str(program), str(cluster.kubeconfig), cwd=tmp_path))
        assert answer["objects"] == 25
    finally:
        await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, f"samples.{GROUP}")


async def _run(*command: str, cwd: Path) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out


def _definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Sample", "plural": "samples"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"samples.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _sample(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Sample",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "image": "x"},
    }
