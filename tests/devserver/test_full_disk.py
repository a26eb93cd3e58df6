"""A data file that takes no more writes: the requests fail with the reason, and the server goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# A file that may not grow fails as on a full disk, without one.
START = """
import asyncio, logging, resource, sys
from pathlib import Path
from kubewright.api import InternalError, Meta
from kubewright.api.builtin import apiextensions_v1, core_v1
from kubewright.client import Client, config_from_kubeconfig
from kubewright.devserver import Server

failed = asyncio.Event()
logging.basicConfig(format="%(levelname)s %(message)s", level=logging.ERROR)
logging.getLogger("kubewright.devserver").addFilter(lambda record: failed.set() or True)
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

def fill_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, unlimited[1]))

def free_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

async def main():
    data = Path(sys.argv[1])
    async with Server(data=data, timing="realistic") as server, Client(config_from_kubeconfig(server.kubeconfig())) as client:
        await use(client)

async def use(client):
"""
WRITES = """
    fill_disk()
    for attempt in range(3):
        try:
            await client.create(core_v1.ConfigMap(Meta("note", namespace="default"), data={"a": "b" * 9000}))
        except InternalError as error:
            print("refused:", error)
    assert not await client.list(core_v1.ConfigMap, namespace="default")
    free_disk()
    await client.create(core_v1.ConfigMap(Meta("note", namespace="default")))
    print("created")
"""
DEFINITION = """
    version = apiextensions_v1.CustomResourceDefinitionVersion(
        name="v1", served=True, storage=True, schema={"openAPIV3Schema": {"type": "object"}}
    )
    names = apiextensions_v1.CustomResourceDefinitionNames(kind="Widget", plural="widgets")
    spec = apiextensions_v1.CustomResourceDefinitionSpec(
        group="example.com", names=names, scope="Namespaced", versions=[version]
    )
    made = apiextensions_v1.CustomResourceDefinition(Meta("widgets.example.com"), spec=spec)
    await client.create(made)
    fill_disk()
    await failed.wait()
    free_disk()
    while True:
        found = await client.get(apiextensions_v1.CustomResourceDefinition, "widgets.example.com")
        if any(item.type == "Established" and item.status == "True" for item in found.status.conditions):
            break
        await asyncio.sleep(0.01)
    print("established")
"""


def run(program: str, data: Path) -> "subprocess.CompletedProcess[str]":
    source = f"{START}{program}\nasyncio.run(main())\n"
    return subprocess.run(
        [sys.executable, "-c", source, str(data)], capture_output=True, text=True, check=False
    )


def test_writes_fail_with_the_reason_and_succeed_when_there_is_room_again(tmp_path: Path) -> None:
    data = tmp_path / "cluster.db"
    ended = run(WRITES, data)
    why = f"cannot write to the data file {data}: disk I/O error"
    *refused, last = ended.stdout.splitlines()
    assert last == "created", ended.stderr
    assert len(refused) == 3
    assert all(why in line for line in refused)
    assert [line for line in ended.stderr.splitlines() if why in line] == [f"ERROR {why}"]
    assert "Traceback" not in ended.stderr


def test_a_definition_is_established_when_there_is_room_again(tmp_path: Path) -> None:
    ended = run(DEFINITION, tmp_path / "cluster.db")
    assert ended.stdout == "established\n", ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_message_that_cannot_be_written_is_not_reported_as_a_port_in_use(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", "from kubewright.cli import main; main()", "dev"]
        ended = subprocess.run(
            [*command, "--kubeconfig", str(kubeconfig)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == "Error: cannot write to standard output: No space left on device\n"
