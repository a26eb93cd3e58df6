"""Startup, readiness and liveness probes: exec, httpGet, tcpSocket and grpc."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence

from kubewright.api.builtin import core_v1
from kubewright.devcluster.pod_lifecycle import PodEvent
from kubewright.devserver.data import MINOR
from kubewright.processpods.grpc_health import HealthCheckError, health_status

Execute = Callable[[Sequence[str]], Awaitable[tuple[int, str]]]
"""Runs a command next to the container and returns its exit code and output."""


class ProbeError(RuntimeError):
    """A probe failed; the message has the reason."""


async def probe(container: core_v1.Container, spec: core_v1.Probe, address: str, execute: Execute) -> None:
    """Run a probe once; raise ProbeError if it fails or times out."""
    seconds = max(spec.timeout_seconds, 1)
    try:
        async with asyncio.timeout(seconds):
            if spec.exec is not None:
                await check_command(spec.exec.command, execute)
            elif spec.http_get is not None:
                await check_http(container, spec.http_get, address)
            elif spec.tcp_socket is not None:
                await check_port(
                    spec.tcp_socket.host or address, port_number(container, spec.tcp_socket.port)
                )
            elif spec.grpc is not None:
                await check_grpc(address, spec.grpc.port, spec.grpc.service or "")
    except TimeoutError:
        raise ProbeError(f"no response within {seconds} s") from None
    except (OSError, ValueError) as error:
        # ValueError: an invalid host name, or a response without a line ending.
        raise ProbeError(str(error)) from None


async def check_command(command: Sequence[str], execute: Execute) -> None:
    """Run a command; raise ProbeError unless it exits with 0."""
    code, printed = await execute(command)
    if code != 0:
        raise ProbeError(printed.strip() or f"exit status {code}")


async def check_port(host: str, port: int) -> None:
    """Open a TCP connection and close it."""
    _, writer = await asyncio.open_connection(host, port)
    await _closed(writer)


async def check_grpc(host: str, port: int, service: str) -> None:
    """Run a gRPC health check; raise ProbeError unless the service is SERVING."""
    try:
        status = await health_status(host, port, service)
    except HealthCheckError as error:
        raise ProbeError(f"gRPC probe failed: {error}") from None
    if status != "SERVING":
        raise ProbeError(f'service unhealthy (responded with "{status}")')


async def check_http(container: core_v1.Container, spec: core_v1.HTTPGetAction, address: str) -> None:
    """Send a GET request; raise ProbeError unless the status is 200 to 399."""
    host, port = spec.host or address, port_number(container, spec.port)
    secure = spec.scheme == "HTTPS"
    # Like a kubelet, do not verify the certificate.
    context = _unverified() if secure else None
    path = spec.path if spec.path.startswith("/") else f"/{spec.path}"
    fields = {"Host": f"{host}:{port}", "User-Agent": f"kube-probe/1.{MINOR}", "Accept": "*/*"}
    fields.update({item.name: item.value for item in spec.http_headers})
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
        words = (await reader.readline()).split(None, 2)
    finally:
        await _closed(writer)
    if len(words) < 2 or not words[1].isdigit():
        raise ProbeError("the response is not HTTP")
    if not 200 <= int(words[1]) < 400:
        raise ProbeError(f"HTTP probe failed with statuscode: {int(words[1])}")


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def port_number(container: core_v1.Container, port: int | str) -> int:
    """Return a port's number, from its number or its name."""
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


class Health:
    """The probes of one run of a container."""

    def __init__(self, container: core_v1.Container, address: str, execute: Execute) -> None:
        self._container = container
        self._address = address
        self._execute = execute
        self.started: bool = container.startup_probe is None
        self.ready: bool = self.started and container.readiness_probe is None

    async def watch(self, changed: Callable[[], None], publish: Callable[[PodEvent], None]) -> str:
        """Run the probes until the container must be restarted; return the name of the failed probe."""
        container = self._container
        if container.startup_probe is not None:
            if not await self._wait_for_result("Startup", container.startup_probe, publish):
                return "startup"
            self.started, self.ready = True, container.readiness_probe is None
            changed()
        async with asyncio.TaskGroup() as group:
            if container.readiness_probe is not None:
                serving = group.create_task(
                    self._watch_readiness(container.readiness_probe, changed, publish)
                )
                group_end = serving.cancel
            else:
                group_end = _nothing
            if container.liveness_probe is None:
                await asyncio.get_running_loop().create_future()
            else:
                await self._wait_for_failure("Liveness", container.liveness_probe, publish)
            group_end()
        return "liveness"

    async def _wait_for_result(
        self, name: str, spec: core_v1.Probe, publish: Callable[[PodEvent], None]
    ) -> bool:
        """Probe until the success or the failure threshold is reached; return True on success."""
        await asyncio.sleep(spec.initial_delay_seconds)
        successes = failures = 0
        while True:
            if await self._probe_once(name, spec, publish):
                successes, failures = successes + 1, 0
            else:
                successes, failures = 0, failures + 1
            if successes >= max(spec.success_threshold, 1):
                return True
            if failures >= max(spec.failure_threshold, 1):
                return False
            await asyncio.sleep(max(spec.period_seconds, 1))

    async def _wait_for_failure(
        self, name: str, spec: core_v1.Probe, publish: Callable[[PodEvent], None]
    ) -> None:
        """Probe until the failure threshold is reached."""
        await asyncio.sleep(spec.initial_delay_seconds)
        failures = 0
        while True:
            failures = 0 if await self._probe_once(name, spec, publish) else failures + 1
            if failures >= max(spec.failure_threshold, 1):
                return
            await asyncio.sleep(max(spec.period_seconds, 1))

    async def _watch_readiness(
        self, spec: core_v1.Probe, changed: Callable[[], None], publish: Callable[[PodEvent], None]
    ) -> None:
        await asyncio.sleep(spec.initial_delay_seconds)
        streak, last = 0, None
        while True:
            healthy = await self._probe_once("Readiness", spec, publish)
            streak, last = streak + 1 if healthy is last else 1, healthy
            needed = spec.success_threshold if healthy else spec.failure_threshold
            if healthy is not self.ready and streak >= max(needed, 1):
                self.ready = healthy
                changed()
            await asyncio.sleep(max(spec.period_seconds, 1))

    async def _probe_once(self, name: str, spec: core_v1.Probe, publish: Callable[[PodEvent], None]) -> bool:
        try:
            await probe(self._container, spec, self._address, self._execute)
        except ProbeError as error:
            publish(PodEvent("Unhealthy", f"{name} probe failed: {error}", warning=True))
            return False
        return True


def _nothing() -> None:
    pass
