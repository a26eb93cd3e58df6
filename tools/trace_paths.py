"""Print which files of kubewright one watch event, one cached read and one write visit.

    .venv/bin/python tools/trace_paths.py [--files]

A controller of Secrets that owns ConfigMaps runs against the embedded server. The server and the client that changes the
Secret run in a thread of their own, so that the trace of the controller's thread holds only what the runtime does. The
event is an update of a Secret, up to the first line of the reconciler; the read is a `ctx.get` from the cache; the
write is a `ctx.apply` that is sent. The write is traced on the server's side as well.
"""

import argparse
import asyncio
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import kubewright
from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import Client, config_from_kubeconfig
from kubewright.controller import Context, Controller, Operator
from kubewright.devserver import Server
from kubewright.manager import Manager, ManagerOptions

SOURCE = Path(kubewright.__file__).parent
SERVER_SIDE = ("devserver/", "http/server")


class Trace:
    """Collect the files whose functions, and the classes whose methods, are called while `active`, in that order."""

    def __init__(self) -> None:
        self.active = False
        self.files: dict[str, None] = {}
        self.classes: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if self.active and event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                self.files.setdefault(str(path.relative_to(SOURCE)))
                if "self" in frame.f_locals:
                    self.classes.setdefault(type(frame.f_locals["self"]).__name__)

    @contextmanager
    def on(self) -> Generator[None, None, None]:
        self.active = True
        try:
            yield
        finally:
            self.active = False


class ServerThread:
    """Run the embedded server, and a client that changes a Secret on request, in a thread."""

    def __init__(self) -> None:
        self.kubeconfig: Any = None
        self.trace = Trace()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._change = asyncio.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def change(self) -> None:
        self._call(self._change)

    def stop(self) -> None:
        self._call(self._stop)
        self._thread.join()

    def _call(self, event: asyncio.Event) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(event.set)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        sys.setprofile(self.trace)
        async with Server(disable_admission_plugins=("ServiceAccount",)) as server:
            self.kubeconfig = server.kubeconfig()
            async with Client(config_from_kubeconfig(self.kubeconfig), field_manager="trace") as client:
                await client.create(core_v1.Secret(Meta("traced", namespace="default")))
                self._ready.set()
                await self._change.wait()
                patch = {"metadata": {"labels": {"changed": "true"}}}
                await client.patch(core_v1.Secret, patch, name="traced", namespace="default", type="merge")
                await self._stop.wait()


async def trace_paths(server: ServerThread) -> dict[str, list[str]]:
    """Return the files that each step visits."""
    event, read, write = Trace(), Trace(), Trace()
    done = asyncio.Event()

    async def reconcile(secret: core_v1.Secret, ctx: Context) -> None:
        event.active = False
        changed = "changed" in secret.metadata.labels
        child = core_v1.ConfigMap(Meta("traced"), data={"changed": str(changed)})
        if not changed:
            await ctx.apply(child)
        elif not done.is_set():
            sys.setprofile(read)
            with read.on():
                await ctx.get(core_v1.ConfigMap, "traced")
            sys.setprofile(write)
            with write.on(), server.trace.on():
                await ctx.apply(child)
            sys.setprofile(None)
            done.set()

    secrets = Controller(core_v1.Secret, reconcile, owns=[core_v1.ConfigMap])
    options = ManagerOptions(
        namespaces=("default",), metrics_bind_address="0", health_probe_bind_address="0", watchdog=False
    )
    manager = Manager(Operator(secrets), config_from_kubeconfig(server.kubeconfig), options)
    running = asyncio.create_task(manager.run())
    await manager.ready.wait()
    while sum(manager.statistics().controllers[0].outcomes.values()) < 2 or _is_busy(manager):  # noqa: ASYNC110 (its statistics cannot be awaited)
        await asyncio.sleep(0.05)  # the first reconcile, and the one that its own write leads to
    sys.setprofile(event)
    event.active = True
    server.change()
    await done.wait()
    running.cancel()
    await asyncio.wait([running])
    return {
        "event": [name for name in event.files if not name.startswith(SERVER_SIDE)],
        f"cached read ({' > '.join(read.classes)})": list(read.files),
        "write": [name for name in write.files if not name.startswith(SERVER_SIDE)],
        "write, server side": [name for name in server.trace.files if name.startswith(SERVER_SIDE)],
    }


def _is_busy(manager: Manager) -> bool:
    queue = manager.statistics().controllers[0].queue
    return bool(queue.ready or queue.delayed or queue.in_flight)


def main() -> None:
    """Trace, and print the count of each step, with `--files` also the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--files", action="store_true", help="print the files, in the order of their first call"
    )
    arguments = parser.parse_args()
    server = ServerThread()
    server.start()
    try:
        found = asyncio.run(trace_paths(server))
    finally:
        server.stop()
    for step, files in found.items():
        sys.stdout.write(f"{step}: {len(files)} files\n")
        if arguments.files:
            sys.stdout.writelines(f"  {name}\n" for name in files)


if __name__ == "__main__":
    main()
