"""The program of one replica in `Cluster.disturbed`: it runs an operator and writes its state to a file.

It is started by its path and imports nothing from `kubewright.testing`, which takes several times as long to load as the
modules that run an operator.
"""

import asyncio
import importlib
import logging
import os
import secrets
import signal
import sys
from pathlib import Path

import msgspec

from kubewright.client import load_config
from kubewright.controller import Operator
from kubewright.election import ElectionOptions, LeaseTimes
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.tracebacks import folded_traceback

LEASE_TIMES = LeaseTimes(duration=4.0, renew_deadline=2.5, retry_period=0.25, main_loop_silence=2.5)
"""Short, so that a test sees another replica take over; a leader on a busy machine that loses its lease is restarted."""
_OFF, _ANY_PORT = "0", "127.0.0.1:0"
_POLL = 0.05
_GRACEFUL_TIMEOUT = 2.0


class ReplicaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a replica, passed as JSON on its command line."""

    name: str
    target: str
    kubeconfig: str
    report: str
    """The file to which it writes its `ReplicaReport`."""
    namespaces: tuple[str, ...]
    elects: bool
    """Whether it uses leader election."""
    local: bool
    """Whether the API server runs on this machine, and reaches webhooks by a URL."""


class ReplicaReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a replica; the defaults are the state of a process that has just started."""

    synced: bool = False
    ready: bool = False
    busy_reason: str = ""
    """Why the replica is not idle; empty if it is."""


def load_reference(reference: str) -> Operator:
    """Return the operator that `module:object` refers to: an Operator, or a function that returns one."""
    module, _, name = reference.partition(":")
    found = getattr(importlib.import_module(module), name or "operator")
    made = found if isinstance(found, Operator) else found()
    if not isinstance(made, Operator):
        raise TypeError(
            f"{reference} is a {type(made).__name__}: expected an Operator or a function that returns one"
        )
    return made


def busy_controllers(manager: Manager, name: str) -> str:
    """Return the controllers that have keys in flight, queued or in backoff, as text; `name` is the replica's name."""
    busy: list[str] = []
    for found in manager.statistics().controllers:
        queue = found.queue
        counts = {"queued": queue.ready, "in flight": queue.in_flight, "in backoff": queue.retrying}
        if keys := ", ".join(f"{count} {state}" for state, count in counts.items() if count):
            busy.append(f"{found.controller} on {name} with keys {keys}")
    return ", ".join(busy)


async def run_replica(settings: ReplicaSettings) -> None:
    """Run the operator until SIGTERM."""
    operator = load_reference(settings.target)
    # It must differ between a process and its successor.
    identity = f"{settings.name}_{secrets.token_hex(4)}"
    options = ManagerOptions(
        namespaces=settings.namespaces,
        election=ElectionOptions(identity=identity, times=LEASE_TIMES) if settings.elects else None,
        webhooks=WebhookOptions(bind_address=_ANY_PORT, reach="url" if settings.local else None),
        metrics_bind_address=_OFF,
        health_probe_bind_address=_OFF,
        graceful_timeout=_GRACEFUL_TIMEOUT,
    )
    config = await asyncio.to_thread(load_config, Path(settings.kubeconfig))
    manager = Manager(operator, config, options)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(manager.run())
        reporting = group.create_task(_report(manager, settings))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        await asyncio.wait([work])
        reporting.cancel()


async def _report(manager: Manager, settings: ReplicaSettings) -> None:
    last: ReplicaReport | None = None
    while True:
        found = ReplicaReport(
            synced=manager.synced.is_set(),
            ready=manager.ready.is_set(),
            busy_reason=busy_controllers(manager, settings.name),
        )
        if found != last:
            await asyncio.to_thread(_write, Path(settings.report), msgspec.json.encode(found))
            last = found
        await asyncio.sleep(_POLL)


def _write(path: Path, data: bytes) -> None:
    """Replace a file atomically, so that a reader never sees a part of it."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(data)
    os.replace(fresh, path)


class _Lines(logging.Formatter):
    """Write records as `TIME MESSAGE`, with tracebacks trimmed to the author's frames, indented."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += "\n" + folded_traceback(record.exc_info[1])
        return f"{record.created:.3f} " + text.replace("\n", "\n    ")


def main() -> None:
    """Run the replica that the only argument describes."""
    settings = msgspec.json.decode(sys.argv[1], type=ReplicaSettings)
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    asyncio.run(run_replica(settings))


if __name__ == "__main__":
    main()
