"""Start the programs as envtest does: certificates in a directory, free ports, health checks until they are ready."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.certificates import Authority, private_key
from kubewright.client import ClusterConfig, config_from_kubeconfig
from kubewright.testing import eventually, free_port
from kubewright.testing.components import kubeconfig

SECONDS = 60.0


@dataclass(slots=True)
class Ended:
    """A program that has ended."""

    code: int
    errors: str


class Program:
    """One of the programs, started with some flags; `errors` is what it wrote to standard error."""

    def __init__(self, path: Path, *flags: str, environment: Mapping[str, str] | None = None) -> None:
        self._command = [str(path), *flags]
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[bytes] | None = None

    async def __aenter__(self) -> "Program":
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )
        assert self._process.stderr is not None
        self._reading = asyncio.create_task(self._process.stderr.read())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The process."""
        assert self._process is not None
        return self._process

    async def stop(self) -> Ended:
        """End it by SIGTERM, if it runs, and wait."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
        return await self.ended()

    async def kill(self) -> None:
        """End it by SIGKILL."""
        self.process.kill()
        await self.ended()

    async def ended(self) -> Ended:
        """Wait until it has ended."""
        assert self._reading is not None
        async with asyncio.timeout(SECONDS):
            code = await self.process.wait()
            return Ended(code, (await self._reading).decode())


class TestPlane:
    """etcd and kube-apiserver of a folder, with certificates as envtest writes them."""

    __test__ = False

    def __init__(self, assets: Path, folder: Path) -> None:
        self.assets = assets
        self.folder = folder
        self.data = folder / "etcd"
        self.port, self.etcd_port = free_port(), free_port()
        self.serving, self.clients = Authority.create("serving"), Authority.create("clients")
        self.certificates = folder / "certificates"

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def etcd_flags(self) -> list[str]:
        """The flags that envtest gives to etcd."""
        url = f"http://127.0.0.1:{self.etcd_port}"
        return [
            f"--advertise-client-urls={url}",
            f"--data-dir={self.data}",
            f"--listen-client-urls={url}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
            "--unsafe-no-fsync=true",
        ]

    @property
    def server_flags(self) -> list[str]:
        """The flags that envtest gives to kube-apiserver."""
        return [
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.certificates}",
            f"--client-ca-file={self.certificates}/client-cert-auth-ca.crt",
            "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            f"--service-account-issuer={self.url}/",
            f"--service-account-key-file={self.certificates}/sa-signer.key",
            f"--service-account-signing-key-file={self.certificates}/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]

    def write_certificates(self) -> None:
        """Write the files that envtest writes before it starts the API server."""
        self.certificates.mkdir()
        pair = self.serving.serving("envtest", ("localhost", "127.0.0.1"))
        files = {
            "apiserver.crt": pair.certificate,
            "apiserver.key": pair.key,
            "client-cert-auth-ca.crt": self.clients.pair.certificate,
            "sa-signer.key": private_key(),
        }
        for name, data in files.items():
            (self.certificates / name).write_bytes(data)

    def etcd(self, *flags: str) -> Program:
        """Return etcd, to be started."""
        return Program(self.assets / "etcd", *self.etcd_flags, *flags)

    def server(self, *flags: str, environment: Mapping[str, str] | None = None) -> Program:
        """Return kube-apiserver, to be started."""
        return Program(self.assets / "kube-apiserver", *self.server_flags, *flags, environment=environment)

    def config(self, user: str, *groups: str) -> ClusterConfig:
        """Return the settings of a client with a certificate of the client CA."""
        pair = self.clients.client(user, groups)
        document: dict[str, Any] = kubeconfig(self.url, self.serving.pair.certificate, {user: pair})
        return config_from_kubeconfig(document)

    @contextlib.asynccontextmanager
    async def running(
        self, *flags: str, environment: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Program]:
        """Run both; return the API server once it is healthy."""
        await asyncio.to_thread(self.write_certificates)
        async with self.etcd() as etcd, self.server(*flags, environment=environment) as server:
            await healthy(self.etcd_port, "/health", etcd, tls=False)
            await healthy(self.port, "/healthz", server)
            yield server


async def healthy(port: int, path: str, program: Program, *, tls: bool = True) -> None:
    """Wait until a program answers 200, as envtest does: without credentials or checks of the certificate."""
    context = ssl.create_default_context() if tls else None
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def answers() -> bool:
        if await _status(port, path, context) == 200:
            return True
        if program.process.returncode is not None:
            raise AssertionError(f"it has ended: {await program.ended()}")
        return False

    await eventually(answers, timeout=SECONDS)


async def _status(port: int, path: str, context: ssl.SSLContext | None) -> int:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except OSError:
        return 0
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
