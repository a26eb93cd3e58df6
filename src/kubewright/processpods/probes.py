"""Probes of a container's process: a command, an HTTP request, a connection, a gRPC health check."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence

from kubewright.api.builtin import core_v1
from kubewright.processpods.grpc_health import NoHealth, health_status

Execute = Callable[[Sequence[str]], Awaitable[tuple[int, str]]]
"""Runs a command beside the container; return exit code and output."""


class ProbeError(RuntimeError):
    """A probe failed; the message has the reason."""


async def probe(container: core_v1.Container, what: core_v1.Probe, address: str, execute: Execute) -> None:
    """Ask once; raise ProbeError where the answer is bad or late."""
    seconds = max(what.timeout_seconds, 1)
    try:
        async with asyncio.timeout(seconds):
            if what.exec is not None:
                await check_command(what.exec.command, execute)
            elif what.http_get is not None:
                await check_http(container, what.http_get, address)
            elif what.tcp_socket is not None:
                await check_port(
                    what.tcp_socket.host or address, port_number(container, what.tcp_socket.port)
                )
            elif what.grpc is not None:
                await check_grpc(address, what.grpc.port, what.grpc.service or "")
    except TimeoutError:
        raise ProbeError(f"no answer within {seconds} s") from None
    except (OSError, ValueError) as error:
        # Of values: a host that cannot be a name, a first line without an end.
        raise ProbeError(str(error)) from None


async def check_command(command: Sequence[str], execute: Execute) -> None:
    """Run a command, which must end well."""
    code, printed = await execute(command)
    if code != 0:
        raise ProbeError(printed.strip() or f"exit status {code}")


async def check_port(host: str, port: int) -> None:
    """Connect, and no more."""
    _, writer = await asyncio.open_connection(host, port)
    await _closed(writer)


async def check_grpc(host: str, port: int, service: str) -> None:
    """Ask for a service's health, which must be that it serves."""
    try:
        status = await health_status(host, port, service)
    except NoHealth as error:
        raise ProbeError(f"gRPC probe failed: {error}") from None
    if status != "SERVING":
        raise ProbeError(f'service unhealthy (responded with "{status}")')


async def check_http(container: core_v1.Container, what: core_v1.HTTPGetAction, address: str) -> None:
    """Send a request, which must be answered with 200 to 399."""
    host, port = what.host or address, port_number(container, what.port)
    secure = what.scheme == "HTTPS"
    # Like the kubelet: a probe does not verify the certificate.
    context = _unverified() if secure else None
    path = what.path if what.path.startswith("/") else f"/{what.path}"
    fields = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.36", "Accept": "*/*"}
    fields.update({item.name: item.value for item in what.http_headers})
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
        words = (await reader.readline()).split(None, 2)
    finally:
        await _closed(writer)
    if len(words) < 2 or not words[1].isdigit():
        raise ProbeError("the answer is not HTTP")
    if not 200 <= int(words[1]) < 400:
        raise ProbeError(f"HTTP probe failed with statuscode: {int(words[1])}")


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def port_number(container: core_v1.Container, port: int | str) -> int:
    """Find a port by its number or its name."""
    if isinstance(port, int):
        return port
    for item in container.ports:
        if item.name == port:
            return item.container_port
    raise ProbeError(f"couldn't find port: {port}")


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
