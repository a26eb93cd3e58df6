"""plan of the sample with an outside system, as its README says it: neither cluster nor outside is changed."""

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubewright as kw
from kubewright.cli.app import main
from kubewright.testing import Cluster
from vmgroup import VmGroup, VmGroupSpec, operator

ROOT = Path(__file__).parents[3]
SPEC: dict[str, Any] = {"cpu": 1, "memory": 1, "template": "vm-operator-template"}
README = (ROOT / "examples" / "vmgroup" / "README.md").read_text()


def plan(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


async def test_a_plan_of_machines_creates_none(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = tmp_path / "vcenter.json"
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(world))
    monkeypatch.chdir(ROOT)
    async with cluster.running(operator()):
        await cluster.create(VmGroup(kw.Meta("vg-1"), spec=VmGroupSpec(**SPEC, replicas=2)))
        await cluster.eventually(VmGroup, "vg-1", lambda it: it.status.current_replicas == 2)
    before = await asyncio.to_thread(world.read_text)
    found = re.search(r"^kubewright (plan .*)$", README, re.MULTILINE)
    assert found is not None
    words = [*shlex.split(found[1]), "-n", cluster.namespace, f"--kubeconfig={cluster.kubeconfig}"]

    assert await asyncio.to_thread(plan, *words) == 3
    printed = capsys.readouterr().out
    assert "+  currentReplicas: 3" in printed
    assert "plan: 0 to create, 1 to change, 0 to delete; nothing was written to the cluster" in printed
    assert await asyncio.to_thread(world.read_text) == before
    assert (await cluster.get(VmGroup, "vg-1")).spec.replicas == 2

    fewer = tmp_path / "fewer.yaml"
    document = {"apiVersion": VmGroup.__kind__.api_version, "kind": "VmGroup", "metadata": {"name": "vg-1"}}
    await asyncio.to_thread(fewer.write_text, yaml.safe_dump({**document, "spec": {**SPEC, "replicas": 1}}))
    assert await asyncio.to_thread(plan, *words[:2], "-f", str(fewer), *words[4:]) == 3
    assert "+  currentReplicas: 1" in capsys.readouterr().out
    assert await asyncio.to_thread(world.read_text) == before


@pytest.mark.parametrize("target", ["examples/myownshell", "examples/first_operator.py"])
async def test_a_finalizer_that_only_logs_can_be_planned(
    target: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    sample = "examples/myownshell/samples/myownshell.yaml"
    where = ("-n", cluster.namespace, f"--kubeconfig={cluster.kubeconfig}")
    assert await asyncio.to_thread(plan, "plan", target, "-f", sample, *where) == 3
    assert "plan: 2 to create" in capsys.readouterr().out
