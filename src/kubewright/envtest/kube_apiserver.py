"""The stand-in for kube-apiserver: the embedded server with the flags of the real one.

Its objects are in a file in the data directory of the stand-in for etcd, so that a restart of either keeps them. Lines on
standard error begin with `Error:` or `Warning:`; an error exits with 1.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import quote, urlsplit

import msgspec

from kubewright.api import KubewrightError
from kubewright.devserver import (
    ADMISSION_PLUGINS,
    AuthorizationObserver,
    KubernetesRelease,
    Server,
    UnknownReleaseError,
)
from kubewright.envtest.etcd import DATA_DIRECTORY, PARENT_POLL, parent_descriptor, watched_parent
from kubewright.envtest.fault_file import FaultFile, FaultFileError
from kubewright.envtest.flags import FlagError, KnownFlags, help_text, parse
from kubewright.envtest.recording import AccessRecorder
from kubewright.envtest.settings import ApiServerSettings, SettingsError, read_settings

ETCD_SECONDS = 20.0
"""How long to wait for etcd, as the real one does."""
_POLL = 0.05


class ApiServerStartError(Exception):
    """What keeps the server from starting."""


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the server until SIGTERM or SIGINT, or until the parent process ends; return the exit code."""
    parent = watched_parent()
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    known = KnownFlags.load()
    try:
        flags = parse(arguments, environment, known)
        if flags.flag("help"):
            print(help_text(known), end="")
            return 0
        if flags.flag("version"):
            print(f"Kubernetes v{KubernetesRelease.find(flags.text('kubernetes')).version}")
            return 0
        settings = read_settings(flags, known, ADMISSION_PLUGINS)
        for warning in settings.warnings:
            print(warning, file=sys.stderr)
        asyncio.run(_serve(settings, parent))
    except (FlagError, SettingsError, ApiServerStartError, UnknownReleaseError, KubewrightError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(settings: ApiServerSettings, parent: int | None) -> None:
    stopped = _stop_event(parent)
    data = await _data_file(settings)
    async with AsyncExitStack() as stack:
        observer = _recorder(settings, stack)
        try:
            serving = await stack.enter_async_context(_serving(settings, data, observer))
            if settings.faults is not None:
                FaultFile(settings.faults, serving if isinstance(serving, Server) else serving.server)
        except FaultFileError as error:
            raise ApiServerStartError(f"--faults: {error}") from None
        except ValueError as error:
            raise ApiServerStartError(str(error)) from None
        except OSError as error:
            raise ApiServerStartError(_listen_error(settings, error)) from None
        # Objects that exist now live as long as the process: exempt them from garbage collection.
        gc.freeze()
        await stopped.wait()


class _Cluster(Protocol):
    """What is needed of `DevCluster`, which is only imported if controllers run."""

    @property
    def server(self) -> Server: ...


def _recorder(settings: ApiServerSettings, stack: AsyncExitStack) -> AuthorizationObserver | None:
    path = settings.record_access
    if path is None:
        return None
    try:
        recorder = AccessRecorder(path)
    except OSError as error:
        raise ApiServerStartError(
            f"--record-access: open {path}: {os.strerror(error.errno or 0).lower()}"
        ) from None
    stack.callback(recorder.close)
    return recorder.observe


def _serving(
    settings: ApiServerSettings, data: Path, observer: AuthorizationObserver | None
) -> AbstractAsyncContextManager[Server | _Cluster]:
    """Return the server, or the whole cluster, whose modules take longer to import."""
    if settings.controllers:
        cluster = import_module("kubewright.envtest.cluster")
        return cast("AbstractAsyncContextManager[_Cluster]", cluster.dev_cluster(settings, data, observer))
    return Server(
        kubernetes=settings.kubernetes,
        data=data,
        host=settings.host,
        port=settings.port,
        anonymous=settings.anonymous,
        enable_admission_plugins=settings.enabled_plugins,
        disable_admission_plugins=settings.disabled_plugins,
        feature_gates=settings.feature_gates,
        credentials=settings.credentials,
        authorization_modes=settings.authorization_modes,
        authorization_observer=observer,
    )


def _listen_error(settings: ApiServerSettings, error: OSError) -> str:
    why = os.strerror(error.errno).lower() if error.errno else str(error)
    if error.filename:
        return f"open {error.filename}: {why}"
    address = f"{settings.host}:{settings.port}"
    return f"failed to create listener: failed to listen on {address}: listen tcp {address}: bind: {why}"


def _stop_event(parent: int | None) -> asyncio.Event:
    """Return an event that a signal sets, and the end of the parent process."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if (descriptor := parent_descriptor(parent)) is not None:
        loop.add_reader(descriptor, stopped.set)

    def check() -> None:
        if os.getppid() != parent:
            stopped.set()
        elif descriptor is None:
            loop.call_later(PARENT_POLL, check)

    if parent is not None:
        check()
    return stopped


async def _data_file(settings: ApiServerSettings) -> Path:
    """Return the file of the data, in the directory that etcd names; raise ApiServerStartError if there is no etcd."""
    folder, prefix = await _data_directory(settings.etcd), settings.etcd_prefix.strip("/")
    return Path(folder, f"{quote(prefix, safe='') or 'root'}.sqlite")


async def _data_directory(url: str) -> str:
    failure = ""
    try:
        async with asyncio.timeout(ETCD_SECONDS):
            while True:
                try:
                    status, body = await _get(url, DATA_DIRECTORY)
                except (OSError, EOFError) as error:
                    failure = str(error)
                    await asyncio.sleep(_POLL)
                    continue
                if status != 200:
                    raise ApiServerStartError(
                        f"--etcd-servers {url}: not kubewright's etcd: start the etcd of `kubewright envtest path`"
                    )
                return msgspec.json.decode(body, type=str)
    except TimeoutError:
        raise ApiServerStartError(f"--etcd-servers {url}: etcd does not respond: {failure}") from None


async def _get(url: str, path: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    if parts.scheme in ("unix", "unixs"):
        reader, writer = await asyncio.open_unix_connection(f"{parts.netloc}{parts.path}")
    elif parts.scheme == "http":
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 2379)
    else:
        raise ApiServerStartError(f"--etcd-servers {url}: only http:// and unix:// are emulated")
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n".encode())
        status = (await reader.readline()).split()
        await reader.readuntil(b"\r\n\r\n")
        body = await reader.read()
    finally:
        writer.close()
    return int(status[1]) if len(status) > 1 and status[1].isdigit() else 0, body


def run() -> None:
    """Run the program; what is imported by now is exempt from garbage collection."""
    gc.freeze()
    gc.enable()
    sys.exit(main(sys.argv[1:], os.environ))
