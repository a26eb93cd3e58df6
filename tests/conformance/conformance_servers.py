"""The servers that requests are sent to, each in an event loop of its own thread."""

import asyncio
import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from conformance_exchange import Target

from kubewright.devcluster import DevCluster
from kubewright.devserver import Server
from kubewright.testing.controlplane import (
    KUBERNETES,
    ControlPlane,
    binaries_folder,
    default_feature_gates,
)

USERS = {"jane": ("people",), "mallory": ("people",)}


@contextmanager
def running(kind: str, *, controllers: bool = False, kubernetes: str = KUBERNETES) -> Iterator[Target]:
    """Run a server of a Kubernetes version for the length of the context: "embedded" or "real".

    With `controllers`, at least the namespace controller and the garbage collector run beside it.
    """
    with _Thread() as thread, TemporaryDirectory() as folder:
        plane = _embedded(controllers, kubernetes) if kind == "embedded" else _real(controllers, kubernetes)
        thread.run(plane.__aenter__())
        try:
            server = plane.server if isinstance(plane, DevCluster) else plane
            target = _target(server, kind, Path(folder))
            if kind == "embedded":
                target.skip = thread.skip
                target.forget = lambda: thread.run(_call(server.compact))
            else:
                target.forget = lambda: thread.run(_forget(server))
            yield target
            target.close()
        finally:
            thread.run(plane.__aexit__(None, None, None))


def _embedded(controllers: bool, kubernetes: str) -> Any:
    # As ControlPlane, which has alpha features on that operators use.
    gates = default_feature_gates(binaries_folder(kubernetes))
    if controllers:
        return DevCluster(kubernetes=kubernetes, workloads=False, feature_gates=gates)
    return Server(
        kubernetes=kubernetes,
        disable_admission_plugins=["ServiceAccount"],
        anonymous=True,
        feature_gates=gates,
    )


def _real(controllers: bool, kubernetes: str) -> ControlPlane:
    # KUBEBUILDER_ASSETS, if set, has the binaries of the default version.
    binaries = None if kubernetes == KUBERNETES else binaries_folder(kubernetes)
    flags = [] if controllers else ["--disable-admission-plugins=ServiceAccount"]
    return ControlPlane(binaries, controllers=controllers, users=USERS, api_server_flags=flags)


def _target(server: Any, kind: str, folder: Path) -> Target:
    config = server.kubeconfig() if kind == "embedded" else yaml.safe_load(server.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context, anonymous = (ssl.create_default_context(cadata=authority) for _ in range(2))
    file = folder / "client.pem"
    file.touch(mode=0o600)
    file.write_bytes(
        base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
    )
    context.load_cert_chain(file)
    tokens = (
        {name: server.add_user(name, groups) for name, groups in USERS.items()}
        if kind == "embedded"
        else dict(server.tokens)
    )
    return Target(cluster["server"], context, anonymous, tokens)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


async def _call(function: Callable[[], None]) -> None:
    function()


async def _forget(plane: Any) -> None:
    """Compact etcd and restart the API server: it keeps a past of its own."""
    await asyncio.to_thread(_compact, plane.directory / "localhost:1")
    await plane.stop_api_server()
    await plane.start_api_server()


def _compact(socket_file: Path) -> None:
    revision = _ask_etcd(socket_file, "range", {"key": "AA=="})["header"]["revision"]
    _ask_etcd(socket_file, "compaction", {"revision": revision, "physical": True})


def _ask_etcd(socket_file: Path, verb: str, body: dict[str, Any]) -> Any:
    connection = http.client.HTTPConnection("etcd")
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.connect(str(socket_file))
        connection.request("POST", f"/v3/kv/{verb}", json.dumps(body))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


async def _settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


class _Thread:
    """An event loop in a thread, so that plain blocking HTTP can talk to what runs in it."""

    def __enter__(self) -> "_Thread":
        self._loop = _Loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="conformance-server")
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        # What was closed at the end is still on its way out.
        self.run(_settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def skip(self, seconds: float) -> None:
        """Let everything that can run do so, then let time pass at once."""
        self.run(self._skip(seconds))

    async def _skip(self, seconds: float) -> None:
        await _settle()
        self._loop.ahead += seconds
