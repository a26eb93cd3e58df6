"""Port-forward to process Pods, by kubectl and over WebSocket channels."""

import asyncio
import base64
import contextlib
import os
import socket
import ssl
import struct
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from kubewright.api.builtin import core_v1
from kubewright.client import PortForward
from kubewright.http.websocket import Opcode, frame, unmasked
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
async def port_channels(
    cluster: Cluster, folder: Path, pod: str, ports: str
) -> AsyncGenerator[tuple[int, asyncio.StreamReader, asyncio.StreamWriter], None]:
    """Ask for ports over WebSocket channels, as clients without SPDY do; yield the status of the response."""
    found: Any = yaml.safe_load(await asyncio.to_thread(cluster.kubeconfig.read_text))
    server, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    context = ssl.create_default_context(cadata=_decoded(server["certificate-authority-data"]))
    pair = folder / "client.pem"
    await asyncio.to_thread(
        pair.write_text, _decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"])
    )
    context.load_cert_chain(pair)
    url = urlsplit(str(server["server"]))
    reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=context)
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/portforward?ports={ports}"
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {url.netloc}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: v4.channel.k8s.io",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        yield int(head.split()[1]), reader, writer
    finally:
        writer.transport.abort()


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()


async def receive(reader: asyncio.StreamReader) -> tuple[Opcode, bytes]:
    """Read one frame of the server."""
    first, size = await reader.readexactly(2)
    if size == 126:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
    return Opcode(first & 0x0F), await reader.readexactly(size)


def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a short message, masked as clients must."""
    mask, made = os.urandom(4), frame(Opcode.BINARY, data)
    writer.write(bytes([made[0], made[1] | 0x80]) + mask + unmasked(data, mask))


async def test_ports_are_forwarded_over_channels(cluster: Cluster, tmp_path: Path) -> None:
    await echoing(cluster, 18088)
    async with port_channels(cluster, tmp_path, "echo", "18088,18089") as (status, reader, writer):
        assert status == 101
        starts = [await receive(reader) for _ in range(4)]
        ports = [(18088).to_bytes(2, "little"), (18089).to_bytes(2, "little")]
        assert starts == [(Opcode.BINARY, bytes([number]) + ports[number // 2]) for number in range(4)]
        opcode, refused = await receive(reader)
        assert (opcode, refused[0]) == (Opcode.BINARY, 3)
        assert b"error forwarding port 18089 to pod echo" in refused
        for line in (b"hello\n", b"again\n"):
            send(writer, b"\0" + line)
            assert await receive(reader) == (Opcode.BINARY, b"\0" + line)


async def echoing(cluster: Cluster, port: int) -> None:
    """Create a Pod that echoes what is sent to the port."""
    pod = shell("echo", "")
    container = pod.spec.containers[0]
    container.command = ["python3", "-c", ECHO, f":{port}"]
    container.readiness_probe = core_v1.Probe(tcp_socket=core_v1.TCPSocketAction(port=port), period_seconds=1)
    await cluster.create(pod)
    await cluster.eventually(core_v1.Pod, "echo", is_running)


async def test_the_client_forwards_connections_to_a_pod(cluster: Cluster) -> None:
    await echoing(cluster, 18091)
    message = os.urandom(300_000) + b"\n"
    async with cluster.client.port_forward("echo", cluster.namespace, 18091) as forward:
        connections = [
            await asyncio.open_connection("127.0.0.1", forward.port, limit=2**20) for _ in range(2)
        ]
        for reader, writer in connections:
            writer.write(message)
            assert await asyncio.wait_for(reader.readexactly(len(message)), 60) == message
        for _, writer in connections:
            writer.close()
    assert forward.error == ""
    with pytest.raises(OSError, match=r"refused|Connect"):
        await asyncio.open_connection("127.0.0.1", forward.port)


async def failure(forward: PortForward) -> str:
    """Send something through a port that is not forwarded, and return the reason."""
    assert await asked(forward.port, b"hello") == b""
    return forward.error


async def test_the_client_reports_why_a_connection_is_not_forwarded(cluster: Cluster) -> None:
    await echoing(cluster, 18092)
    for pod, expected in (
        ("absent", 'pods "absent" not found'),
        ("echo", "error forwarding port 18093 to pod echo"),
    ):
        async with cluster.client.port_forward(pod, cluster.namespace, 18093) as forward:
            assert expected in await failure(forward)


@pytest.mark.parametrize("ports", ["0", "http", "65536", "80,"])
async def test_rejects_ports_that_are_not_numbers_of_ports(
    cluster: Cluster, tmp_path: Path, ports: str
) -> None:
    await cluster.create(shell("lone", "exec sleep 1000"))
    await cluster.eventually(core_v1.Pod, "lone", is_running)
    async with port_channels(cluster, tmp_path, "lone", ports) as (status, _, _):
        assert status == 400


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
