"""deploy and undeploy, on whichever server the tests run; the kubelet there runs no real image."""

import asyncio
from pathlib import Path

import pytest

from kubewright.api import NotFound
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster

OPERATOR = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Parcel(kw.Resource[Spec, Status], group="deploy.example.com", version="v1"):
    """A parcel."""

@kw.controller(Parcel)
async def parcels(parcel: Parcel, ctx: kw.Context) -> None:
    pass

operator = kw.Operator(parcels, name="parcels")
'''


async def command(cluster: Cluster, *arguments: str) -> int:
    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--kubeconfig", str(cluster.kubeconfig)])
        return int(ended.value.code or 0)

    return await asyncio.to_thread(run)


async def test_an_operator_is_rehearsed_deployed_and_taken_away(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "parcel_operator.py")
    Path(target).write_text(OPERATOR)
    image = ("--image", "registry.example/parcels:1")
    assert await command(cluster, "deploy", target, *image, "--dry-run") == 0
    assert "+  name: parcels-controller-manager" in capsys.readouterr().out
    with pytest.raises(NotFound):
        await cluster.client.get(core_v1.Namespace, "parcels-system")

    assert await command(cluster, "deploy", target, *image) == 0
    assert "deployment.apps/parcels-controller-manager is available" in capsys.readouterr().out
    running = await cluster.client.get(apps_v1.Deployment, "parcels-controller-manager", "parcels-system")
    assert running.spec.template.spec.containers[0].image == image[1]

    assert await command(cluster, "deploy", target, *image, "--dry-run") == 0
    assert capsys.readouterr().out == "nothing would change\n"

    assert await command(cluster, "undeploy", target) == 0
    assert "namespace/parcels-system deleted" in capsys.readouterr().out
    assert await command(cluster, "uninstall", target) == 0
