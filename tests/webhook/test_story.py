"""The life of one kind in two versions, from its first object to a refusal, as users and kubectl see it."""

import asyncio
import os
import shutil
from contextlib import aclosing
from pathlib import Path

import pytest

import kubewright as kw
from kubewright.api import Kind, kind_of, parse
from kubewright.api.builtin import apiextensions_v1
from kubewright.testing import Cluster, find_binaries

from .kinds import Widget, WidgetV1Alpha1, WidgetV1Beta1, colored, from_alpha, from_beta, sensible
from .learning import asked

CRD = kind_of(apiextensions_v1.CustomResourceDefinition)
NAME = "widgets.widgets.example.com"
REFUSAL = [
    'The Widget "w" is invalid: ',
    "* spec.size: Invalid value: 1: may not shrink",
    '* spec.color: Unsupported value: "pink": supported values: "blue", "red"',
]


@kw.controller(Widget, name="story")
async def nothing(widget: Widget, ctx: kw.Context) -> None:
    pass


@pytest.fixture(scope="module")
def kubectl() -> Path:
    folder = find_binaries()
    if folder and os.access(folder / "kubectl", os.X_OK):
        return folder / "kubectl"
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl: run scripts/control-plane build, or set KUBEBUILDER_ASSETS")
    return Path(found)


async def run(program: Path, cluster: Cluster, folder: Path, *arguments: str) -> str:
    command = (program, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}", *arguments)
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    return (out + err).decode()


async def next_of(cluster: Cluster, kind: Kind) -> dict[str, object]:
    """Watch in one version and give the next change."""
    async with (
        asyncio.timeout(60),
        aclosing(cluster.client.watch(kind, namespace=cluster.namespace)) as events,
    ):
        async for event in events:
            return parse(event.object.raw)
    raise AssertionError("the watch ended")


async def store(cluster: Cluster, version: str) -> None:
    live = await cluster.client.get(CRD, NAME)
    change = [
        {"op": "replace", "path": f"/spec/versions/{index}/storage", "value": found["name"] == version}
        for index, found in enumerate(live["spec"]["versions"])
    ]
    await cluster.client.patch(CRD, change, name=NAME, type="json")
    await cluster.eventually(CRD, NAME, lambda it: version in it["status"]["storedVersions"])


async def test_a_kind_in_two_versions_is_converted_defaulted_and_validated(
    cluster: Cluster, kubectl: Path, tmp_path: Path
) -> None:
    operator = kw.Operator(nothing, webhooks=[sensible, colored, from_alpha, from_beta])
    async with cluster.running(operator):
        await asked(cluster)
        made = await cluster.create(WidgetV1Alpha1(kw.Meta("w"), size=2))
        assert made.color == "blue"  # defaulted
        assert (await cluster.get(Widget, "w")).spec.size == 2
        assert (await cluster.get(WidgetV1Alpha1, "w")).size == 2
        assert (await next_of(cluster, kind_of(Widget)))["spec"] == {"size": 2, "color": "blue"}
        assert (await next_of(cluster, kind_of(WidgetV1Alpha1)))["size"] == 2

        await store(cluster, "v1alpha1")
        assert (await cluster.get(WidgetV1Beta1, "w")).spec.width == 2

        address = {"name": "w", "namespace": cluster.namespace}
        alpha = {"apiVersion": "widgets.example.com/v1alpha1", "kind": "Widget", "metadata": address}
        stable = alpha | {"apiVersion": "widgets.example.com/v1"}
        await cluster.client.apply(alpha | {"size": 3}, field_manager="one")
        await cluster.client.apply(stable | {"spec": {"color": "red"}}, field_manager="two")
        found = await cluster.get(Widget, "w")
        assert (found.spec.size, found.spec.color) == (3, "red")
        owners = {entry.manager: entry.api_version for entry in found.metadata.managed_fields}
        assert owners["one"].endswith("/v1alpha1")
        assert owners["two"].endswith("/v1")

        change = '{"spec":{"size":1,"color":"pink"}}'
        patch = ("patch", "widgets.v1.widgets.example.com", "w", "--type=merge", "--patch", change)
        assert (await run(kubectl, cluster, tmp_path, *patch)).splitlines() == REFUSAL
        await store(cluster, "v1")
        await cluster.client.delete_collection(Widget, namespace=cluster.namespace)
