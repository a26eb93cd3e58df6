"""`kubectl port-forward` to process Pods."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster

from .shells import is_running, shell

ECHO = """
import socketserver, sys
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)
        self.wfile.write(b"end")
host, port = sys.argv[1].split(":")
with socketserver.ThreadingTCPServer((host, int(port)), Echo) as server:
    server.serve_forever()
"""


async def test_ports_are_forwarded(cluster: Cluster, kubectl_path: Path) -> None:
    pod = shell("echo", "")
    container = pod.spec.containers[0]
    container.command = ["python3", "-c", ECHO, ":18087"]
    container.readiness_probe = core_v1.Probe(
        tcp_socket=core_v1.TCPSocketAction(port=18087), period_seconds=1
    )
    await cluster.create(pod)
    await cluster.eventually(core_v1.Pod, "echo", is_running)
    large = b"".join(b"%01000d\n" % number for number in range(3000))
    async with forwarding(cluster, kubectl_path, "echo", 18087) as (port, _), asyncio.TaskGroup() as group:
        answers = [group.create_task(asked(port, large)) for _ in range(3)]
    assert all(answer.result() == large + b"end" for answer in answers)


async def test_reports_a_port_without_a_listener(cluster: Cluster, kubectl_path: Path) -> None:
    await cluster.create(shell("deaf", "exec sleep 1000"))
    await cluster.eventually(core_v1.Pod, "deaf", is_running)
    async with forwarding(cluster, kubectl_path, "deaf", 18086) as (port, kubectl):
        assert await asked(port, b"hello") == b""
        assert kubectl.stdout is not None
        output = (await asyncio.wait_for(kubectl.stdout.read(), 60)).decode()
    assert "error forwarding port 18086 to pod deaf" in output


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_port_of_another_program_is_not_the_pods(cluster: Cluster, kubectl_path: Path) -> None:
    await cluster.create(shell("lone", "exec sleep 1000"))
    await cluster.eventually(core_v1.Pod, "lone", is_running)
    with socket.create_server(("0.0.0.0", 0)) as other:
        number = other.getsockname()[1]
        async with forwarding(cluster, kubectl_path, "lone", number) as (port, kubectl):
            assert await asked(port, b"hello") == b""
            assert kubectl.stdout is not None
            output = (await asyncio.wait_for(kubectl.stdout.read(), 60)).decode()
    assert f"no process of the Pod listens on port {number}" in output


@contextlib.asynccontextmanager
async def forwarding(
    cluster: Cluster, kubectl_path: Path, pod: str, port: int
) -> AsyncGenerator[tuple[int, asyncio.subprocess.Process], None]:
    """Run `kubectl port-forward` from a free port; yield the port and the process."""
    process = await asyncio.create_subprocess_exec(
        kubectl_path,
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={cluster.namespace}",
        *("port-forward", f"pod/{pod}", f":{port}", "--address=127.0.0.1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        assert line.startswith("Forwarding from 127.0.0.1:"), line
        yield int(line.removeprefix("Forwarding from 127.0.0.1:").split()[0]), process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


async def asked(port: int, data: bytes) -> bytes:
    """Send data to a port and return the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_say(writer, data))
            return await asyncio.wait_for(reader.read(-1), 60)
    finally:
        writer.close()


async def _say(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
        writer.write_eof()
