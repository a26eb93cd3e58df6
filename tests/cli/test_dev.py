"""`kubewright dev` with the options of its API server."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

import kubewright as kw
from kubewright.api import Forbidden, NotFound
from kubewright.api.builtin import core_v1
from kubewright.api.sharding import HashRange, shard_selector
from kubewright.client import Client, ClusterConfig, load_config


@contextlib.asynccontextmanager
async def dev(folder: Path, *options: str) -> AsyncGenerator[ClusterConfig]:
    """Run the command; return the settings of the administrator."""
    kubeconfig = folder / "kubeconfig"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()"),
        *("dev", f"--kubeconfig={kubeconfig}", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert b"is ready" in await process.stdout.readline()
        yield await asyncio.to_thread(load_config, kubeconfig)
    finally:
        process.terminate()
        await process.wait()


def with_token(config: ClusterConfig, token: str) -> ClusterConfig:
    return replace(config, token=token, client_cert_data=b"", client_key_data=b"")


async def test_no_service_account_is_created_without_controllers(tmp_path: Path) -> None:
    async with dev(tmp_path, "--no-controllers") as config, Client(config) as client:
        assert (await client.get(core_v1.Namespace, "default")).status.phase == "Active"
        with pytest.raises(NotFound):
            await client.get(core_v1.ServiceAccount, "default", "default")


async def test_users_of_a_token_file_are_authorized_by_the_given_mode(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text("secret,ann,u1\n")
    options = ("--no-controllers", f"--token-file={file}")
    async with dev(tmp_path, *options) as config, Client(with_token(config, "secret")) as ann:
        with pytest.raises(Forbidden, match="ann"):
            await ann.list(core_v1.Pod, namespace="default")
    options = (f"--token-file={file}", "--authorization-mode=AlwaysAllow", "--no-controllers")
    async with dev(tmp_path, *options) as config, Client(with_token(config, "secret")) as ann:
        await ann.list(core_v1.Pod, namespace="default")


async def test_admission_plugins_are_enabled_and_disabled(tmp_path: Path) -> None:
    options = ("--no-controllers", "--admission-plugins=NamespaceAutoProvision,-ServiceAccount")
    async with dev(tmp_path, *options) as config, Client(config) as client:
        container = core_v1.Container(name="a", image="a")
        await client.create(
            core_v1.Pod(
                metadata=kw.Meta(name="p", namespace="new"), spec=core_v1.PodSpec(containers=[container])
            )
        )
        assert (await client.get(core_v1.Namespace, "new")).status.phase == "Active"


async def test_feature_gates_are_switched(tmp_path: Path) -> None:
    options = ("--no-controllers", "--feature-gates=ShardedListAndWatch=true")
    selector = shard_selector("uid", [HashRange(0, 1)])
    async with dev(tmp_path, *options) as config, Client(config) as client:
        assert await client.list(core_v1.Namespace, shard_selector=selector) == []
    async with dev(tmp_path, "--no-controllers") as config, Client(config) as client:
        assert await client.list(core_v1.Namespace, shard_selector=selector) != []


async def test_dev_is_not_ready_if_the_port_of_the_live_page_is_in_use(tmp_path: Path) -> None:
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as taken:
        port = taken.sockets[0].getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from kubewright.cli import main; main()"),
            *("dev", f"--kubeconfig={tmp_path / 'kubeconfig'}", "--ui", f"--ui-port={port}"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
    assert process.returncode == 1
    assert b"is ready" not in output
    assert f"cannot listen on 127.0.0.1:{port}".encode() in errors
    assert len(errors.splitlines()) == 1
