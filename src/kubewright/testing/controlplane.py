"""A real Kubernetes control plane from its own binaries, on loopback, while an `async with` is open."""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import ssl
import subprocess
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from kubewright.certificates import Authority, KeyPair, private_key
from kubewright.devcluster import Scratch
from kubewright.devserver.data import RELEASE
from kubewright.testing import components
from kubewright.testing.processes import Process, ProcessError, free_port
from kubewright.testing.releases import minor_of, selected_release

# The release that the project is built on, which `scripts/control-plane build` builds by default.
KUBERNETES = f"v{RELEASE}"
ADMIN = "kubernetes-admin"
SHARDED_LIST_AND_WATCH = "ShardedListAndWatch"
SERVERS = ("etcd", "kube-apiserver")
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")

_SHARDED_SINCE = (1, 36)
# kube-apiserver stops gracefully only after the last watch has ended, which may take a minute.
_API_SERVER_GRACE = 1.0
# How often a controller may end by itself before it is left alone and reported, and the delay before each restart.
_RESTARTS = 5
_RESTART_DELAY = 0.2
# Objects that kube-apiserver creates after it reports that it is ready: its last namespace, and its own Service.
_BEGINNINGS = ("/api/v1/namespaces/kube-node-lease", "/api/v1/namespaces/default/services/kubernetes")


class ControlPlaneError(RuntimeError):
    """The control plane could not be started, or a component of it exited."""


def binaries_folder(version: str = "") -> Path:
    """Return the cache directory for the binaries of a Kubernetes release, by default of the selected one."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    release = version.removeprefix("v") or selected_release() or RELEASE
    return Path(cache) / "kubewright" / "control-plane" / f"v{release}"


def find_binaries() -> Path | None:
    """Return a directory with etcd and kube-apiserver, None if there is none.

    It is the cache of the release that KUBEWRIGHT_KUBERNETES selects, otherwise KUBEBUILDER_ASSETS, otherwise the cache
    of the project's release.
    """
    folder = default_folder()
    return None if missing_binaries(folder, SERVERS) else folder


def default_folder() -> Path:
    """Return the directory in which the binaries are expected, as `find_binaries` chooses it."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(assets) if assets and selected_release() is None else binaries_folder()


def release_of_binaries(folder: Path) -> str:
    """Return the Kubernetes release of a directory's kube-apiserver, as it reports it."""
    program = folder / "kube-apiserver"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    name, _, version = done.stdout.strip().rpartition(" ")
    if done.returncode != 0 or name != "Kubernetes":
        raise ControlPlaneError(f"{program} --version did not print a version: {done.stdout}{done.stderr}")
    return version.removeprefix("v")


def default_feature_gates(folder: Path) -> dict[str, bool]:
    """Return the feature gates that a control plane is started with: alpha features that operators use if they are on.

    A gate that the release does not know would keep the API server from starting.
    """
    name = folder.name.removeprefix("v")
    try:
        release = name if re.fullmatch(r"1\.\d+\.\d+", name) else release_of_binaries(folder)
    except ControlPlaneError:
        return {}
    return {SHARDED_LIST_AND_WATCH: True} if minor_of(release) >= _SHARDED_SINCE else {}


def build_command(folder: Path) -> str:
    """Return the command that builds the binaries of a directory, if it is the cache of a release."""
    release = folder.name.removeprefix("v") if folder == binaries_folder(folder.name) else RELEASE
    return "scripts/control-plane build" + ("" if release == RELEASE else f" --kubernetes {release}")


def missing_binaries(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the programs that are missing in a directory."""
    return [name for name in names if not os.access(folder / name, os.X_OK)]


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with RBAC and a certificate authority.

    Each of `users` (name to groups) has a bearer token in `tokens`; `add_user` issues certificates at any time.
    Without `controllers` only the first two run: namespaces then get no ServiceAccount, and Pods are rejected.
    `feature_gates` of the API server are by default those of `default_feature_gates`.
    A controller that ends by itself is started again, as the kubelet of a control plane node does: kube-scheduler
    exits on purpose when a Pod was replaced by another of the same name while its watch was interrupted.
    """

    def __init__(
        self,
        binaries: Path | None = None,
        *,
        controllers: bool = True,
        users: Mapping[str, Sequence[str]] | None = None,
        api_server_flags: Sequence[str] = (),
        feature_gates: Mapping[str, bool] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self.binaries: Path = binaries or default_folder()
        self.tokens: dict[str, str] = {user: secrets.token_urlsafe(24) for user in users or {}}
        self._names = (*SERVERS, *CONTROLLERS) if controllers else SERVERS
        self._users = dict(users or {})
        self._flags = list(api_server_flags)
        self._feature_gates = feature_gates
        self._timeout = timeout
        self._authority = Authority.create()
        self._directory: Path | None = None
        self._port = 0
        self._processes: dict[str, Process] = {}
        self._restarting: dict[str, asyncio.Task[None]] = {}
        self._tls = ssl.create_default_context(cadata=self.ca.decode())
        self._resources = contextlib.AsyncExitStack()

    @property
    def ca(self) -> bytes:
        """Return the CA certificate of the API server, in PEM."""
        return self._authority.pair.certificate

    @property
    def url(self) -> str:
        """Return the URL of the API server, which stays the same over restarts."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def directory(self) -> Path:
        """Return the directory with the logs and credentials."""
        if self._directory is None:
            raise ControlPlaneError("the control plane has not been started")
        return self._directory

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the kubeconfig of the admin, a member of system:masters with a client certificate."""
        return self.directory / f"{ADMIN}.kubeconfig"

    async def __aenter__(self) -> Self:
        """Start all components; return when the API server is ready and, with controllers, accepts Pods."""
        missing = await asyncio.to_thread(missing_binaries, self.binaries, self._names)
        if missing:
            raise ControlPlaneError(
                f"{self.binaries} lacks {', '.join(missing)}: run `{build_command(self.binaries)}`"
            )
        async with contextlib.AsyncExitStack() as resources:
            scratch = await asyncio.to_thread(Scratch.create, "kubewright-control-plane-")
            resources.push_async_callback(asyncio.to_thread, scratch.close)
            self._directory = scratch.path
            await asyncio.to_thread(self._prepare)
            for name in self._names:
                resources.push_async_callback(self._stop, name)
            await self._start()
            group = await resources.enter_async_context(asyncio.TaskGroup())
            for name in CONTROLLERS:
                if name in self._processes:
                    task = group.create_task(self._processes[name].keep_running(_RESTARTS, _RESTART_DELAY))
                    self._restarting[name] = task
                    resources.callback(task.cancel)
            self._resources = resources.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop in reverse, so that etcd stops after the programs that write to it, and remove the directory."""
        await self._resources.aclose()

    def process_id(self, name: str) -> int | None:
        """Return the process id of a program of the control plane, None while it does not run."""
        return self._processes[name].pid

    async def stop_api_server(self, *, grace: float = _API_SERVER_GRACE) -> None:
        """Stop the API server; its port and its data are kept. A grace of 0 kills it."""
        await self._processes["kube-apiserver"].stop(grace=grace)

    async def start_api_server(self, *, feature_gates: Mapping[str, bool] | None = None) -> None:
        """Start the API server again on the same port, and wait until it is ready.

        `feature_gates` replaces those that it ran with.
        """
        process = self._processes["kube-apiserver"]
        if feature_gates is not None:
            process.set_command(self._api_server(feature_gates))
        if not process.running:
            await process.start()
        await self._wait_for("/readyz")

    async def back_up(self, folder: Path) -> None:
        """Copy the cluster's data to a new directory; the API server is stopped meanwhile."""
        await self._swap_data(lambda data: shutil.copytree(data, folder))

    async def restore(self, folder: Path) -> None:
        """Replace the cluster's data by a backup; the API server is stopped meanwhile."""

        def replace(data: Path) -> None:
            shutil.rmtree(data)
            shutil.copytree(folder, data)

        await self._swap_data(replace)

    async def _swap_data(self, swap: Callable[[Path], object]) -> None:
        for name in ("kube-apiserver", "etcd"):
            await self._stop(name)
        await asyncio.to_thread(swap, self.directory / "etcd")
        await self._processes["etcd"].start()
        await self.start_api_server()

    async def add_user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Issue a client certificate for a user and return a kubeconfig that contains it."""
        return await asyncio.to_thread(self._write_user, name, groups)

    async def wait_ended(self) -> None:
        """Wait until a program ends that is not started again, and raise with the end of its log."""
        try:
            async with asyncio.TaskGroup() as group:
                for name in self._processes:
                    group.create_task(self._wait_ended(name))
        except* ProcessError as errors:
            raise ControlPlaneError(str(errors.exceptions[0])) from None

    async def _wait_ended(self, name: str) -> None:
        if name in self._restarting:
            await asyncio.wait([self._restarting[name]])
        await self._processes[name].wait_ended()

    def _ended(self, name: str) -> bool:
        """Return True if the program has ended and will not be started again."""
        restarting = name in self._restarting and not self._restarting[name].done()
        return self._processes[name].ended and not restarting

    def _prepare(self) -> None:
        self._port = free_port()
        self._write_pair(components.AUTHORITY, self._authority.pair)
        self._write_pair(
            components.SERVING, self._authority.serving("kube-apiserver", hosts=components.HOSTS)
        )
        self._write(components.SERVICE_ACCOUNT_KEY, private_key())
        self._write(components.TOKENS, "".join(map(self._token_line, self.tokens)).encode())
        self._write_yaml(components.SCHEDULER_CONFIGURATION, components.scheduler_configuration())
        self._write_user(ADMIN, ["system:masters"])
        self._write_user(components.CONTROLLER_MANAGER)
        self._write_user(components.SCHEDULER)
        self._tls.load_cert_chain(self.directory / f"{ADMIN}.crt", self.directory / f"{ADMIN}.key")
        gates = self._feature_gates
        if gates is None:
            gates = default_feature_gates(self.binaries)
        commands: dict[str, list[str | Path]] = {
            "etcd": [self.binaries / "etcd", *components.etcd()],
            "kube-apiserver": self._api_server(gates),
            "kube-controller-manager": [
                self.binaries / "kube-controller-manager",
                *components.controller_manager(),
            ],
            "kube-scheduler": [self.binaries / "kube-scheduler", *components.scheduler()],
        }
        self._processes = {
            name: Process(
                commands[name],
                log=self.directory / f"{name}.log",
                directory=self.directory,
            )
            for name in self._names
        }

    def _api_server(self, gates: Mapping[str, bool]) -> list[str | Path]:
        flags = components.api_server(self.directory, self._port, gates)
        return [self.binaries / "kube-apiserver", *flags, *self._flags]

    async def _start(self) -> None:
        await self._processes["etcd"].start()
        await self.start_api_server()
        for path in _BEGINNINGS:
            await self._wait_for(path)
        controllers = [process for name, process in self._processes.items() if name in CONTROLLERS]
        for process in controllers:
            await process.start()
        if controllers:
            # A Pod created before its namespace has a ServiceAccount would be rejected.
            await self._wait_for("/api/v1/namespaces/default/serviceaccounts/default")

    async def _stop(self, name: str) -> None:
        await self._processes[name].stop(grace=_API_SERVER_GRACE if name == "kube-apiserver" else 10.0)

    async def _wait_for(self, path: str) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                while await self._get(path) != 200:
                    for name, process in self._processes.items():
                        if self._ended(name):
                            raise ControlPlaneError(str(await process.failure()))
                    await asyncio.sleep(0.05)
        except TimeoutError:
            why = f"did not respond to {path} within {self._timeout:g} s"
            raise ControlPlaneError(str(await self._processes["kube-apiserver"].failure(why))) from None

    async def _get(self, path: str) -> int:
        """Request a path as the admin and return the status code, 0 if there is no response."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        except OSError:
            return 0
        return int(status.split()[1]) if status.startswith(b"HTTP/") else 0

    def _token_line(self, user: str) -> str:
        return f'{self.tokens[user]},{user},{user},"{",".join(self._users[user])}"\n'

    def _write_user(self, user: str, groups: Sequence[str] = ()) -> Path:
        pair = self._authority.client(user, groups)
        name = urllib.parse.quote(user, safe=":@")
        self._write_pair(name, pair)
        return self._write_yaml(f"{name}.kubeconfig", components.kubeconfig(self.url, self.ca, {user: pair}))

    def _write_pair(self, name: str, pair: KeyPair) -> None:
        self._write(f"{name}.crt", pair.certificate)
        self._write(f"{name}.key", pair.key)

    def _write_yaml(self, name: str, document: Mapping[str, Any]) -> Path:
        return self._write(name, yaml.safe_dump(document, sort_keys=False).encode())

    def _write(self, name: str, data: bytes) -> Path:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(data)
        return path
