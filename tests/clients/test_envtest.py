"""controller-runtime's envtest runs with kubewright's programs, and does the same with the real ones."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from kubewright.envtest.assets import create_folder
from kubewright.testing.controlplane import find_binaries

MODULE = Path(__file__).parents[2] / "benchmarks" / "controller_runtime"
CHECKS = (
    "a service account's token is accepted",
    "a user without roles is forbidden",
    "objects survive a restart of the API server",
)


@pytest.fixture
def assets(server_name: str, tmp_path: Path) -> Path:
    """Return the folder of the programs: ours, or with `--server real` the real ones."""
    if server_name != "real":
        return create_folder(tmp_path)
    folder = find_binaries()
    if folder is None:
        pytest.skip("no real binaries: run scripts/control-plane build")
    return folder


async def test_envtest_starts_restarts_and_stops(assets: Path, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go on the path: controller-runtime's program cannot be built")
    program = tmp_path / "envtest"
    await _run(go, "build", "-o", str(program), "./envtest", folder=MODULE)
    figures = json.loads(await _run(str(program), folder=tmp_path, assets=assets))
    assert {name: figures["checks"][name] for name in CHECKS} == dict.fromkeys(CHECKS, True)


async def _run(*command: str, folder: Path, assets: Path | None = None) -> bytes:
    environment = {**os.environ, "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT": "true"}
    if assets is not None:
        environment["KUBEBUILDER_ASSETS"] = str(assets)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out
