"""Renewal of a Pod's files and tokens."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubewright.api import Meta, NotFound, Status
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.addresses import PodAddresses
from kubewright.processpods.pod_processes import REFRESH_SECONDS, token_refresh_rounds
from kubewright.processpods.preparation import Machine, PodPreparation


def _spec(*lives: int | None) -> core_v1.PodSpec:
    tokens = [core_v1.ServiceAccountTokenProjection(path="token", expiration_seconds=life) for life in lives]
    sources = [core_v1.VolumeProjection(service_account_token=token) for token in tokens]
    volumes = [
        core_v1.Volume(name=f"v{number}", projected=core_v1.ProjectedVolumeSource(sources=[source]))
        for number, source in enumerate(sources)
    ]
    return core_v1.PodSpec(containers=[core_v1.Container(name="main")], volumes=volumes)


@pytest.mark.parametrize(
    ("lives", "minutes"),
    [((), 40), ((None,), 40), ((3607,), 40), ((86400,), 40), ((600,), 6), ((3600, 900), 10)],
)
def test_tokens_are_renewed_before_the_first_expires(lives: tuple[int | None, ...], minutes: int) -> None:
    assert token_refresh_rounds(_spec(*lives)) * REFRESH_SECONDS == minutes * 60


class Cluster:
    """A client without the ConfigMap that issues tokens."""

    async def get(self, *_: Any) -> Any:
        raise NotFound(Status(code=404))

    async def token_request(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(token="fresh")


async def test_a_token_is_renewed_even_if_another_volume_fails(tmp_path: Path) -> None:
    spec = _spec(600)
    gone = core_v1.Volume(name="gone", config_map=core_v1.ConfigMapVolumeSource(name="gone"))
    spec.volumes = [gone, *spec.volumes]
    pod = core_v1.Pod(Meta("p", namespace="default", uid="u"), spec=spec)
    machine = Machine(cast(Client, Cluster()), "https://127.0.0.1:1", {}, cast(Any, None), tmp_path)
    around = PodPreparation(machine, pod, PodAddresses("127.0.0.1", "127.128.0.1"))
    assert not await around.refresh(tokens=True)
    assert [found.read_text() for found in tmp_path.rglob("token")] == ["fresh"]
    spec.volumes.remove(gone)
    assert await around.refresh(tokens=True)
