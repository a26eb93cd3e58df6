"""Manifests are installed by a user with only the installer's roles, and run as the generated ServiceAccount."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from acceptance_commands import CommandFailed, kubewright
from acceptance_replica import Replica
from acceptance_samples import SAMPLES, Sample
from acceptance_stories import DEFAULT_TIMEOUT, STORIES, Stage
from acceptance_waits import may

import kubewright as kw
from kubewright.api import NotFound
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.client.recording import RecordedAccess, read_recordings
from kubewright.generate import Names
from kubewright.testing import Cluster, RunningEnvironment
from kubewright.testing.environments import ServerName

IMAGE = "registry.example/operator:1"
INSTALLER = "installer"
Launch = Callable[..., Awaitable[Replica]]
JsonObject = dict[str, Any]


@pytest.fixture(scope="module")
def environment(server_name: ServerName) -> Generator[RunningEnvironment, None, None]:
    """Run a separate cluster, because the installed objects have fixed names."""
    running = RunningEnvironment(server_name)
    running.start()
    yield running
    running.stop()


async def kubeconfig_of(cluster: Cluster, account: str, namespace: str, folder: Path) -> Path:
    """Write a kubeconfig with a ServiceAccount's token and nothing else."""
    token = await cluster.client.token_request(account, namespace)
    document = yaml.safe_load(await asyncio.to_thread(cluster.kubeconfig.read_text))
    document["users"] = [{"name": user["name"], "user": {"token": token.token}} for user in document["users"]]
    path = folder / f"{account}.kubeconfig"
    await asyncio.to_thread(path.write_text, yaml.safe_dump(document))
    return path


@pytest_asyncio.fixture
async def installer(sample: Sample, cluster: Cluster, tmp_path: Path) -> AsyncGenerator[Path, None]:
    """Return the kubeconfig of a ServiceAccount that may install this operator."""
    names = Names(sample.operator().name)
    await cluster.eventually_gone(core_v1.Namespace, names.namespace, timeout=DEFAULT_TIMEOUT)
    await cluster.create(core_v1.ServiceAccount(kw.Meta(INSTALLER)))
    granted = tmp_path / "installer.yaml"
    subject = f"{cluster.namespace}/{INSTALLER}"
    document = await kubewright("manifests", str(sample.target), "--installer", subject)
    await asyncio.to_thread(granted.write_text, document)
    await kubewright("apply", "-f", str(granted), f"--kubeconfig={cluster.kubeconfig}")
    user = f"system:serviceaccount:{cluster.namespace}:{INSTALLER}"
    await may(cluster.client, user, "patch", "namespaces", name=names.namespace)
    yield await kubeconfig_of(cluster, INSTALLER, cluster.namespace, tmp_path)
    await cluster.client.delete(rbac_v1.ClusterRoleBinding, names.installer)
    await cluster.client.delete(rbac_v1.ClusterRole, names.installer)
    with suppress(NotFound):  # `undeploy` took it along
        await cluster.client.delete(core_v1.Namespace, names.namespace)


Right = tuple[str, str, str]
READING = {"get", "list", "watch"}
SPARED: set[Right] = {
    # For metrics behind the cluster's authorization, which this run does not serve.
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
    # For certificates that replicas share; a run beside the API server keeps its own.
    ("read", "", "secrets"),
    ("patch", "", "secrets"),
    # For an Event that is repeated.
    ("patch", "events.k8s.io", "events"),
}


def rights(documents: list[JsonObject], names: Names) -> set[Right]:
    """List what the rendered roles that are bound to the operator's account allow."""
    bound = {
        (item["roleRef"]["kind"], item["roleRef"]["name"])
        for item in documents
        for subject in item.get("subjects", ())
        if subject["name"] == names.account
    }
    return {
        ("read" if verb in READING else verb, group, resource)
        for item in documents
        if (item["kind"], item["metadata"]["name"]) in bound
        for rule in item["rules"]
        # Paths are not requested by the operator: `kubewright why` reads its journal with a token of its account.
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        # Setting blockOwnerDeletion needs this permission, and no request shows it.
        if not resource.endswith("/finalizers")
        for verb in rule["verbs"]
    }


def unused(documents: list[JsonObject], names: Names, accesses: list[RecordedAccess]) -> set[Right]:
    """List what was allowed and never asked for."""
    used = {("read" if it.verb in READING else it.verb, it.group, it.resource) for it in accesses}
    return rights(documents, names) - used


async def test_an_operator_works_when_installed_with_the_installer_role_only(
    sample: Sample, cluster: Cluster, installer: Path, launch: Launch, tmp_path: Path
) -> None:
    target, names = str(sample.target), Names(sample.operator().name)
    rendered, recording = tmp_path / "manifests.yaml", tmp_path / "accesses.jsonl"
    await asyncio.to_thread(rendered.write_text, await kubewright("manifests", target, "--image", IMAGE))
    await kubewright("apply", "-f", str(rendered), f"--kubeconfig={installer}")

    account = await kubeconfig_of(cluster, names.account, names.namespace, tmp_path)
    operator = await launch(
        sample.target,
        f"--kubeconfig={account}",
        "--leader-elect",
        f"--leader-election-namespace={names.namespace}",
        "--webhook-reach=url",
        f"--record-access={recording}",
    )
    await operator.wait_says("Starting workers", timeout=DEFAULT_TIMEOUT)
    stage = Stage(sample, cluster, tmp_path / "vcenter.json")
    for step in STORIES[sample.name]:
        await step.play(stage)
    assert await operator.ended(signal.SIGTERM, timeout=60) == 0

    printed = await kubewright("rbac", "verify", target, "--recording", str(recording))
    assert "rights were used and none is missing" in printed
    accesses = [
        access for run in await asyncio.to_thread(read_recordings, recording) for access in run.accesses
    ]
    assert [access for access in accesses if access.denied] == []
    documents = list(yaml.safe_load_all(await asyncio.to_thread(rendered.read_text)))
    assert unused(documents, names, accesses) - SPARED == set()
    await kubewright("undeploy", target, f"--kubeconfig={installer}")


@pytest.mark.parametrize("sample", [SAMPLES[0]], indirect=True, ids=lambda sample: sample.name)
async def test_an_operator_with_new_rules_is_not_installed_with_the_old_installer_role(
    sample: Sample, installer: Path, tmp_path: Path
) -> None:
    rendered = await kubewright("manifests", str(sample.target), "--only", "rbac")
    role = next(item for item in yaml.safe_load_all(rendered) if item["kind"] == "ClusterRole")
    role["rules"].append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})
    grown = tmp_path / "grown.yaml"
    await asyncio.to_thread(grown.write_text, yaml.safe_dump(role))
    with pytest.raises(CommandFailed, match="attempting to grant RBAC permissions not currently held"):
        await kubewright("apply", "-f", str(grown), f"--kubeconfig={installer}")
