"""Who converts the versions of a kind through the lives of an operator: installed, run and killed, deployed, gone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acceptance_waits import served

from kubewright.api import ApiError, Kind, NotFound, kind_of
from kubewright.api.builtin import admissionregistration_v1, apiextensions_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster, eventually
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

@kw.admission.validating_webhook(Song)
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
    """Return a name for cluster-scoped objects that no other test uses."""
    return f"songs-{cluster.namespace}"


@pytest.fixture
async def installed(cluster: Cluster, name: str, tmp_path: Path) -> str:
    """Install an operator."""
    path = tmp_path / "song_operator.py"
    await asyncio.to_thread(path.write_text, OPERATOR.format(group=f"{name}.example.com", name=name))
    assert await command(cluster, "install", str(path)) == 0
    return str(path)


@pytest.fixture
async def target(cluster: Cluster, name: str, installed: str) -> str:
    """Install an operator, and leave behind what a run of it that was killed does."""
    config = {"url": "https://127.0.0.1:1/convert", "service": None}
    by_url = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    await cluster.client.patch(
        apiextensions_v1.CustomResourceDefinition,
        {"spec": {"conversion": {"strategy": "Webhook", "webhook": by_url}}},
        name=f"songs.{name}.example.com",
        field_manager=f"{name}-webhooks",
    )
    return installed


def kind_of_songs(name: str, version: str) -> Kind:
    return Kind(group=f"{name}.example.com", version=version, kind="Song", plural="songs")


def song(cluster: Cluster, kind: Kind) -> dict[str, Any]:
    metadata = {"name": "la", "namespace": cluster.namespace}
    return {"apiVersion": kind.api_version, "kind": "Song", "metadata": metadata, "spec": {"seconds": 3}}


async def converter(cluster: Cluster, name: str) -> apiextensions_v1.WebhookClientConfig:
    found = await cluster.client.get(apiextensions_v1.CustomResourceDefinition, f"songs.{name}.example.com")
    assert found.spec.conversion is not None
    assert found.spec.conversion.webhook is not None
    assert found.spec.conversion.webhook.client_config is not None
    return found.spec.conversion.webhook.client_config


async def test_crds_installed_without_the_operator_fail_to_convert_and_lose_no_data(
    capsys: pytest.CaptureFixture[str], cluster: Cluster, name: str, installed: str
) -> None:
    printed = capsys.readouterr().err
    assert (
        f"note: no conversion webhook available for songs.{name}.example.com: requests for versions other than v2 fail"
        in printed
    )
    service = (await converter(cluster, name)).service
    assert service is not None
    assert (service.namespace, service.name) == (f"{name}-system", f"{name}-webhook-service")
    new, old = kind_of_songs(name, "v2"), kind_of_songs(name, "v1")
    await served(cluster.client, new, cluster.namespace)
    await cluster.client.create(song(cluster, new), kind=new)
    label = {"metadata": {"labels": {"touched": "yes"}}}
    with pytest.raises(ApiError, match=r"conversion webhook for .* failed"):
        await cluster.client.patch(old, label, name="la", namespace=cluster.namespace)
    kept = await cluster.client.patch(new, label, name="la", namespace=cluster.namespace)
    assert kept["spec"]["seconds"] == 3
    assert await command(cluster, "uninstall", installed) == 1
    assert (await converter(cluster, name)).service == service
    assert await command(cluster, "uninstall", installed, "--with-resources") == 0


async def test_a_crd_with_unreadable_objects_is_not_uninstalled_without_force(
    cluster: Cluster, name: str, installed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = f"songs.{name}.example.com"
    old, new = kind_of_songs(name, "v1"), kind_of_songs(name, "v2")
    await store(cluster, definition, "v1")
    # Until it has seen the change, the server stores in the other version, for which there is no conversion webhook.
    await eventually(lambda: taken(cluster, old))
    await store(cluster, definition, "v2")
    with pytest.raises(ApiError, match=r"conversion webhook for .* failed"):
        await cluster.client.get(new, "la", cluster.namespace)
    capsys.readouterr()
    assert await command(cluster, "uninstall", installed) == 1
    assert "for which no conversion webhook is available" in capsys.readouterr().err
    assert (await converter(cluster, name)).service is not None
    assert await command(cluster, "uninstall", installed, "--with-resources") == 0
    with pytest.raises(NotFound):
        await cluster.client.get(apiextensions_v1.CustomResourceDefinition, definition)


async def taken(cluster: Cluster, kind: Kind) -> bool:
    try:
        await cluster.client.create(song(cluster, kind), kind=kind)
    except ApiError:
        return False
    return True


async def store(cluster: Cluster, definition: str, version: str) -> None:
    """Change the version in which objects are kept."""
    crds = kind_of(apiextensions_v1.CustomResourceDefinition)
    live = await cluster.client.get(crds, definition)
    operations = [
        {"op": "replace", "path": f"/spec/versions/{index}/storage", "value": found["name"] == version}
        for index, found in enumerate(live["spec"]["versions"])
    ]
    await cluster.client.patch(crds, operations, name=definition, type="json")
    await cluster.eventually(crds, definition, lambda it: version in it["status"]["storedVersions"])


async def test_reinstalling_a_crd_keeps_its_conversion_without_a_warning(
    cluster: Cluster, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert await command(cluster, "install", target) == 0
    assert capsys.readouterr().err == ""
    found = await cluster.client.get(apiextensions_v1.CustomResourceDefinition, f"songs.{name}.example.com")
    assert found.spec.conversion is not None
    assert found.spec.conversion.strategy == "Webhook"
    assert await command(cluster, "uninstall", target) == 0


async def test_a_dry_run_reports_the_conversion_and_changes_nothing(
    cluster: Cluster, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert await command(cluster, "deploy", target, *IMAGE, "--dry-run=server") == 0
    printed = capsys.readouterr()
    assert (
        f"note: the conversion webhook of songs.{name}.example.com, registered by `kubewright run`, would be replaced"
        in printed.err
    )
    assert f"+  name: {name}-controller-manager" in printed.out
    assert await command(cluster, "uninstall", target) == 0


async def test_a_deployment_replaces_the_conversion_of_a_local_run(
    cluster: Cluster, name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = f"songs.{name}.example.com"
    assert await command(cluster, "deploy", target, *IMAGE) == 0
    assert "(conversion) deleted: it was registered by `kubewright run`" in capsys.readouterr().out
    config = await converter(cluster, name)
    assert config.service is not None
    assert not config.url
    capsys.readouterr()
    assert await command(cluster, "undeploy", target) == 0
    assert f"note: no conversion webhook available for {definition}" in capsys.readouterr().err
    assert (await converter(cluster, name)).service == config.service
    assert await command(cluster, "uninstall", target) == 0
    with pytest.raises(NotFound):
        await cluster.client.get(
            admissionregistration_v1.ValidatingWebhookConfiguration, WebhookNames(name).validating
        )
