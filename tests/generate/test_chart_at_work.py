"""A chart through its life: installed, upgraded with a changed CRD, rolled back and uninstalled."""

import asyncio
from pathlib import Path
from typing import Annotated

import pytest

import kubewright as kw
from kubewright.api import NotFound
from kubewright.api.builtin import apiextensions_v1, apps_v1
from kubewright.generate import Chart, Settings, helm
from kubewright.testing import Cluster


def operator(*, wider: bool) -> kw.Operator:
    """Declare an operator; a later version of it has one field more."""

    class First(kw.Model):
        text: str = "a"

    class Second(First):
        copies: Annotated[int, kw.Field(ge=1)] = 1

    class Poster(kw.Resource[Second if wider else First, kw.Model], group="charts.example.com", version="v1"):
        """A poster."""

    @kw.controller(Poster)
    async def posters(poster: Poster, ctx: kw.Context) -> None:
        """Do nothing."""

    return kw.Operator(posters, name="posters")


def chart(folder: Path, *, version: str, wider: bool) -> Path:
    settings = Settings(image=f"registry.example/posters:{version}")
    for name, text in helm(operator(wider=wider), Chart(name="posters", version=version), settings).items():
        path = folder / version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / version


async def fields(cluster: Cluster) -> set[str]:
    """Return the names of the fields that the CRD allows in a spec."""
    crd = await cluster.client.get(apiextensions_v1.CustomResourceDefinition, "posters.charts.example.com")
    validation = crd.spec.versions[0].schema
    assert validation is not None
    assert validation.openapi_v3_schema is not None
    return set(validation.openapi_v3_schema["properties"]["spec"]["properties"])


async def image(cluster: Cluster) -> str:
    found = await cluster.client.get(apps_v1.Deployment, "posters-controller-manager", cluster.namespace)
    return found.spec.template.spec.containers[0].image


async def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(
    cluster: Cluster, helm_program: Path, tmp_path: Path
) -> None:
    async def run(*arguments: str | Path) -> str:
        process = await asyncio.create_subprocess_exec(
            *(
                helm_program,
                *arguments,
                f"--namespace={cluster.namespace}",
                f"--kubeconfig={cluster.kubeconfig}",
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        assert process.returncode == 0, output
        return output

    first = chart(tmp_path, version="1.0.0", wider=False)
    second = chart(tmp_path, version="1.1.0", wider=True)
    notes = await run("install", "blue", first)
    assert f"kubectl -n {cluster.namespace} rollout status deployment/posters-controller-manager" in notes
    assert "kubectl get posters.charts.example.com -A" in notes
    assert await fields(cluster) == {"text"}
    await run("upgrade", "blue", second, "--set=replicas=2")
    assert await fields(cluster) == {"text", "copies"}
    assert await image(cluster) == "registry.example/posters:1.1.0"
    await run("rollback", "blue", "1")
    assert await fields(cluster) == {"text"}
    assert await image(cluster) == "registry.example/posters:1.0.0"
    await run("uninstall", "blue")
    with pytest.raises(NotFound):
        await image(cluster)
    assert await fields(cluster) == {"text"}, "the CRD, and with it the users' objects, is kept"
    await cluster.client.delete(
        await cluster.client.get(apiextensions_v1.CustomResourceDefinition, "posters.charts.example.com")
    )
