"""A newcomer's project at work: `kubewright run --dev` inside it, without a word more."""

import asyncio
import re
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from kubewright.api import Kind
from kubewright.api.builtin import core_v1
from kubewright.client import Client, load_config
from kubewright.testing import eventually

GOLDEN = Path(__file__).parents[2] / "golden" / "shop"
CARTS = Kind(group="shop.example.com", version="v1", kind="Cart", plural="carts", namespaced=True)
OFF = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@asynccontextmanager
async def running(project: Path) -> AsyncGenerator[Path, None]:
    """Run the project's operator on a cluster of its own; gives the kubeconfig once workers run."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()", "run", "--dev", *OFF),
        cwd=project,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = ""
        while "Starting workers" not in said:
            line = (await process.stderr.readline()).decode()
            assert line, said
            said += line
        found = re.search(r"export KUBECONFIG=(\S+)", said)
        assert found is not None
        yield Path(found[1])
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == 0


async def test_a_new_kind_is_reconciled_on_the_dev_cluster(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    await asyncio.to_thread(shutil.copytree, GOLDEN, project)
    async with running(project) as kubeconfig:
        config = await asyncio.to_thread(load_config, kubeconfig)
        async with Client(config) as client:
            cart = {
                "apiVersion": CARTS.api_version,
                "kind": CARTS.kind,
                "metadata": {"name": "first", "namespace": "default"},
                "spec": {"message": "it works"},
            }
            await client.create(cart, kind=CARTS)
            made = await eventually(lambda: client.get(core_v1.ConfigMap, "first", "default"))
            assert made.data == {"message": "it works"}
