"""A laptop's run was killed, and its webhooks are still registered by URL: what is deployed takes their place."""

import asyncio
from pathlib import Path

import pytest

from kubewright.api import NotFound
from kubewright.api.builtin import admissionregistration_v1, apiextensions_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster
from kubewright.webhook import WebhookNames

OPERATOR = '''
import kubewright as kw

class Spec(kw.Model):
    seconds: int = 0

class Status(kw.Model):
    played: int = 0

class SongV1(kw.Resource[Spec, Status], group="{group}", version="v1", kind="Song"):
    """A song."""

class Song(kw.Resource[Spec, Status], group="{group}", version="v2", stored=True):
    """A song."""

conversion = kw.Conversion(
    Song, SongV1, up=lambda old: Song(old.metadata, spec=old.spec), down=lambda new: SongV1(new.metadata, spec=new.spec)
)

@kw.validates(Song)
def sensible(song: Song) -> None:
    pass

@kw.controller(Song)
async def songs(song: Song, ctx: kw.Context) -> None:
    pass

operator = kw.Operator(songs, name="{name}", webhooks=[conversion, sensible])
'''
IMAGE = ("--image", "registry.example/songs:1")


async def command(cluster: Cluster, *arguments: str) -> int:
    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, f"--kubeconfig={cluster.kubeconfig}"])
        return int(ended.value.code or 0)

    return await asyncio.to_thread(run)


@pytest.fixture
def name(cluster: Cluster) -> str:
    """Give what belongs to the whole cluster a name of this test's own."""
    return f"songs-{cluster.namespace}"


@pytest.fixture
async def target(cluster: Cluster, name: str, tmp_path: Path) -> str:
    """Install an operator, and leave behind what a run of it that was killed does."""
    path = tmp_path / "song_operator.py"
    await asyncio.to_thread(path.write_text, OPERATOR.format(group=f"{name}.example.com", name=name))
    assert await command(cluster, "install", str(path)) == 0
    by_url = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}
    await cluster.client.patch(
        apiextensions_v1.CustomResourceDefinition,
        {"spec": {"conversion": {"strategy": "Webhook", "webhook": by_url}}},
        name=f"songs.{name}.example.com",
        field_manager=f"{name}-webhooks",
    )
    return str(path)


async def test_who_installs_the_definition_again_leaves_its_conversion_and_is_not_warned(
    cluster: Cluster, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert await command(cluster, "install", target) == 0
    assert capsys.readouterr().err == ""
    found = await cluster.client.get(apiextensions_v1.CustomResourceDefinition, f"songs.{name}.example.com")
    assert found.spec.conversion is not None
    assert found.spec.conversion.strategy == "Webhook"
    assert await command(cluster, "uninstall", target) == 0


async def test_a_rehearsal_says_so_and_changes_nothing(
    cluster: Cluster, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert await command(cluster, "deploy", target, *IMAGE, "--dry-run") == 0
    told = capsys.readouterr()
    assert f"note: the conversion of songs.{name}.example.com would be taken from a run by URL" in told.err
    assert f"+  name: {name}-controller-manager" in told.out
    assert await command(cluster, "uninstall", target) == 0


async def test_a_deployment_takes_their_place(
    cluster: Cluster, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = f"songs.{name}.example.com"
    assert await command(cluster, "deploy", target, *IMAGE) == 0
    assert "(conversion) removed: a run by URL had registered it" in capsys.readouterr().out
    found = await cluster.client.get(apiextensions_v1.CustomResourceDefinition, definition)
    assert found.spec.conversion is not None
    assert found.spec.conversion.webhook is not None
    config = found.spec.conversion.webhook.client_config
    assert config is not None
    assert config.service is not None
    assert not config.url
    assert await command(cluster, "undeploy", target) == 0
    assert await command(cluster, "uninstall", target) == 0
    with pytest.raises(NotFound):
        await cluster.client.get(
            admissionregistration_v1.ValidatingWebhookConfiguration, WebhookNames(name).validating
        )
