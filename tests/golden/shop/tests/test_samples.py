"""Tests of the samples."""

from importlib import import_module
from pathlib import Path

import pytest
import yaml
from kubewright.api import GroupVersionKind
from kubewright.testing import Cluster

FOLDER = Path(__file__).parents[1] / "samples"
SAMPLES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}


@pytest.mark.parametrize("name", SAMPLES)
async def test_sample_is_accepted(cluster: Cluster, name: str) -> None:
    document = SAMPLES[name]
    # Run the operator, so that its webhooks are called too.
    async with cluster.running(import_module("shop").operator):
        kind = await cluster.client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))
        if kind.namespaced:
            document["metadata"]["namespace"] = cluster.namespace
        await cluster.client.apply(document, field_manager="test", kind=kind, dry_run=True)
