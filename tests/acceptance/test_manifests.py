"""COM 10: what is rendered for a cluster is taken by it, and a rehearsal leaves nothing behind."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest_asyncio
import yaml
from acceptance_commands import kubewright
from acceptance_kubectl import Kubectl
from acceptance_samples import Sample

from kubewright.api import NotFound
from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster
from kubewright.webhook import WebhookNames
from kubewright.webhook.server import clear_leftovers

IMAGE = "registry.example/operator:1"
JsonObject = dict[str, Any]


async def rendered(sample: Sample) -> list[JsonObject]:
    text = await kubewright("manifests", str(sample.target), "--image", IMAGE)
    return list(yaml.safe_load_all(text))


@pytest_asyncio.fixture
async def home(sample: Sample, cluster: Cluster, kubectl: Kubectl) -> AsyncGenerator[list[JsonObject], None]:
    """Return an operator's documents, and create their namespace, which a dry run does not create."""
    documents = await rendered(sample)
    operator = sample.operator()
    # Other tests kill operators that run beside the server: what those had registered by URL is still there.
    await clear_leftovers(cluster.client, operator.webhooks, WebhookNames(operator.name))
    (namespace,) = (found for found in documents if found["kind"] == "Namespace")
    await kubectl("apply", "-f", "-", stdin=yaml.safe_dump(namespace))
    yield documents
    await cluster.client.delete(core_v1.Namespace, namespace["metadata"]["name"])


async def test_the_server_accepts_all_manifests(home: list[JsonObject], kubectl: Kubectl) -> None:
    (theirs,) = {found["metadata"]["namespace"] for found in home if "namespace" in found["metadata"]}
    there = replace(kubectl, namespace=theirs)
    said = await there("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(home))
    # kubectl remarks on a definition that another test has applied on the server's side.
    lines = [line for line in said.splitlines() if "last-applied-configuration" not in line]
    assert all(line.endswith("(server dry run)") for line in lines), said
    assert len(lines) == len(home)
    kinds = {document["kind"] for document in home}
    assert {"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role", "Deployment"} <= kinds


async def test_a_dry_run_of_deploy_shows_all_objects_and_changes_none(
    sample: Sample, cluster: Cluster
) -> None:
    target = str(sample.target)
    said = await kubewright(
        "deploy", target, "--image", IMAGE, "--dry-run=server", f"--kubeconfig={cluster.kubeconfig}"
    )
    assert f"+        image: {IMAGE}" in said
    assert "+++ planned/deployment.apps/" in said
    for document in await rendered(sample):
        if document["kind"] == "Namespace":
            name = document["metadata"]["name"]
            try:
                found = await cluster.client.get(core_v1.Namespace, name)
            except NotFound:
                continue
            # Another test's, on its way out.
            assert found.metadata.deletion_timestamp is not None
