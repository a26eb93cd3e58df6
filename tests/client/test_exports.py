"""The package's public names, and what importing them loads."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import kubewright.client
from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.client import (
    ApiResource,
    Client,
    ListOptions,
    ObjectList,
    ScaleReplicas,
    ScaleState,
    ServerVersion,
    ServiceAccountToken,
    WriteOptions,
)


def test_every_client_name_exists_and_has_a_docstring() -> None:
    for name in kubewright.client.__all__:
        assert getattr(kubewright.client, name).__doc__, name


def test_the_names_are_in_order() -> None:
    assert kubewright.client.__all__ == sorted(kubewright.client.__all__)


def test_declaring_an_operator_loads_no_client() -> None:
    code = "import sys, kubewright; print(sorted(set(sys.modules) & {'httptools', 'yaml', 'cryptography'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.asyncio(loop_scope="session")
async def test_options_of_a_verb_can_be_passed_on_as_a_dictionary(client: Client, namespace: str) -> None:
    trying: WriteOptions = {"dry_run": True, "field_manager": "me", "field_validation": "Strict"}
    here: ListOptions = {"namespace": namespace, "fields": "metadata.name=a"}
    made = await client.create(core_v1.ConfigMap(Meta("a", namespace=namespace), data={"x": "1"}), **trying)
    assert [entry.manager for entry in made.metadata.managed_fields] == ["me"]
    assert await client.list(core_v1.ConfigMap, **here) == []


@pytest.mark.asyncio(loop_scope="session")
async def test_results_of_the_client_verbs_are_public(client: Client, namespace: str) -> None:
    assert isinstance(await client.server_version(), ServerVersion)
    assert all(isinstance(resource, ApiResource) for resource in await client.api_resources())
    assert isinstance(await client.list(core_v1.ConfigMap, namespace=namespace), ObjectList)
    labels = {"app": "a"}
    template = core_v1.PodTemplateSpec(
        metadata=Meta(labels=labels),
        spec=core_v1.PodSpec(containers=[core_v1.Container(name="c", image="i")]),
    )
    selector = meta_v1.LabelSelector(match_labels=labels)
    spec = apps_v1.DeploymentSpec(replicas=2, selector=selector, template=template)
    await client.create(apps_v1.Deployment(Meta("a", namespace=namespace), spec=spec))
    scale = await client.get_scale(apps_v1.Deployment, "a", namespace)
    assert isinstance(scale, ScaleState)
    assert isinstance(scale.spec, ScaleReplicas)
    await client.create(core_v1.ServiceAccount(Meta("bot", namespace=namespace)))
    assert isinstance(await client.token_request("bot", namespace), ServiceAccountToken)


def test_the_user_agent_has_the_version() -> None:
    major, minor, *_ = version("kubewright").split(".")
    assert inspect.signature(Client).parameters["user_agent"].default == f"kubewright/{major}.{minor}"
