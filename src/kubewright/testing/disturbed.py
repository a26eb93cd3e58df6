"""An operator in separate processes behind a fault proxy: the target of a plan on any API server.

Each replica is a process that reaches the API server through an endpoint of the proxy. A crash is SIGKILL: when the proxy
has received the request and not forwarded it, or when it has received the response and not passed it on. A pause is
SIGSTOP. A replica that ends is started again after a second, with an empty memory. The entry point is `Cluster.disturbed`.
"""

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubewright.api.builtin import coordination_v1
from kubewright.client import Client, ClusterConfig
from kubewright.devserver import Match, RequestFaults
from kubewright.devserver.faults import Matcher, Moment
from kubewright.testing import operator_program
from kubewright.testing.fault_proxy import FaultProxy, ProxyEndpoint
from kubewright.testing.operator_program import ReplicaReport, ReplicaSettings
from kubewright.testing.processes import Process
from kubewright.testing.recorder import LogLine
from kubewright.testing.waiting import DEFAULT_TIMEOUT, poll

RESTART_AFTER = 1.0
"""Seconds until a replica that has ended is started again."""
LONGEST = 2.0
"""Default maximum of seconds for a fault of a plan, a delay, and the pause before a fault."""
QUIET = 1.0
"""Seconds without a write after which an idle operator counts as settled."""
_GRACE = 5.0
_LOG_LINES = 200


class ReplicaProcess:
    """One replica of an operator: a process that can be killed, paused, and started again with an empty memory."""

    def __init__(
        self,
        run: "DisturbedRun",
        endpoint: ProxyEndpoint,
        settings: ReplicaSettings,
        *,
        log: Path,
        directory: Path,
    ) -> None:
        self._run = run
        self._report = Path(settings.report)
        self._process = Process(
            # -P: the folder of the program holds modules of kubewright, which must not hide others.
            [sys.executable, "-P", operator_program.__file__, msgspec.json.encode(settings).decode()],
            log=log,
            directory=directory,
            # The process finds what the test can import.
            environment={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path or str(directory) for path in sys.path),
            },
        )
        self.name: str = endpoint.name
        self.endpoint: ProxyEndpoint = endpoint
        self.exits: list[int] = []
        """The exit status of each process that ended by itself, for example after it lost its lease."""
        self.starts: int = 0
        """How often it was started."""
        self.paused: bool = False
        endpoint.on_crash = self.crash

    @property
    def running(self) -> bool:
        """Return True while the process runs."""
        return self._process.running

    def match(self, **which: Any) -> Matcher:
        """Return a function that matches requests of this replica with the fields of `Match`."""
        return self.endpoint.match(**which)

    def crash(self) -> None:
        """Kill the process with SIGKILL; it is started again after a second."""
        if self.running:
            # Requests that the proxy has not read yet are lost.
            self.endpoint.closed = True
            self._run.record_fault(f"{self.name} is killed")
            self._process.send_signal(signal.SIGKILL)

    def crash_at(self, request: int, when: Moment = "before") -> None:
        """Crash the replica at its n-th request from now: before the API server sees it, or after it was carried out."""
        self.endpoint.crash_at[self.endpoint.requests + request] = when

    def lose_response_at(self, request: int) -> None:
        """Break the connection of its n-th request from now after it was carried out."""
        self._run.faults.add(match=self.endpoint.match_number(request), fail="reset", when="after", times=1)

    def refuse_at(self, request: int, status: int, retry_after: int | None = None) -> None:
        """Respond to its n-th request from now with an error, without carrying it out."""
        match = self.endpoint.match_number(request)
        self._run.faults.add(match=match, fail=status, retry_after=retry_after, times=1)

    def pause(self) -> None:
        """Stop the process with SIGSTOP; its connections stay open."""
        if self.running:
            self.paused = True
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the process with SIGCONT."""
        if self.paused:
            self.paused = False
            self._process.send_signal(signal.SIGCONT)

    async def report(self) -> ReplicaReport:
        """Return the last state that the process reported."""
        return await asyncio.to_thread(self._read_report)

    async def busy_reason(self) -> str:
        """Return why the replica is not idle, or an empty string.

        It is not idle if it does not run, is paused, has to reopen a watch, or has keys in flight, queued or in backoff.
        """
        found = await self.report()
        if not self.running or not found.synced:
            return f"{self.name} does not run"
        if self.paused:
            return f"{self.name} is paused"
        if missing := self.endpoint.missing_watches():
            return f"{self.name} does not watch {', '.join(missing)}"
        return found.busy_reason

    def log_lines(self) -> list[str]:
        """Return the last lines of its log, each with its time."""
        try:
            text = self._process.log.read_text(errors="replace")
        except FileNotFoundError:
            return []
        lines: deque[str] = deque(maxlen=_LOG_LINES)
        for line in text.splitlines():
            stamp, _, message = line.partition(" ")
            try:
                created = float(stamp)
            except ValueError:
                # A further line of a message, or what Python itself writes.
                created, message = getattr(lines[-1], "created", 0.0) if lines else 0.0, line
            lines.append(_line_at(created, f"{self.name}: {message}"))
        return list(lines)

    async def supervise(self) -> None:
        """Start the process, and again whenever it ends; stop it when this is cancelled."""
        try:
            while True:
                await asyncio.to_thread(self._report.unlink, missing_ok=True)
                self.endpoint.reopen()
                self.paused = False
                await self._process.start()
                self.starts += 1
                code = await self._process.wait()
                if not self.endpoint.closed:
                    self.endpoint.closed = True
                    self.exits.append(code)
                    self._run.record_fault(f"{self.name} ended with exit status {code}")
                await asyncio.sleep(RESTART_AFTER)
        finally:
            self.resume()
            await self._process.stop(grace=_GRACE)

    async def check_started(self) -> None:
        """Raise ProcessError with the end of the log if the process has ended by itself."""
        if self.exits:
            raise await self._process.failure(f"of {self.name} did not start")

    def _read_report(self) -> ReplicaReport:
        try:
            return msgspec.json.decode(self._report.read_bytes(), type=ReplicaReport)
        except FileNotFoundError:
            return ReplicaReport()


class DisturbedRun:
    """Replicas of an operator behind a fault proxy; `Plan.run` takes it."""

    def __init__(
        self, proxy: FaultProxy, client: Client, namespace: str, log: deque[str], longest: float
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._namespace = namespace
        self._log = log
        self._longest = longest
        self._elects = False
        self._supervisors: list[asyncio.Task[None]] = []
        self.replicas: list[ReplicaProcess] = []

    @property
    def faults(self) -> RequestFaults:
        """Inject faults into the operator's requests: those that fail, are slow or lost, and watches that end."""
        return self._proxy.faults

    def operators(self, **which: Any) -> Matcher:
        """Return a function that matches requests of all replicas with the fields of `Match`."""
        return Match(**which)

    def duration(self, seconds: float) -> float:
        """Return the seconds of a plan, at most `longest`."""
        return min(seconds, self._longest)

    def record_fault(self, what: str) -> None:
        """Add what happens to the log of the cluster, which error messages show."""
        self._log.append(_line_at(time.time(), f"fault: {what}"))

    @contextmanager
    def active(self, fault: object) -> Generator[None]:
        """Record when a fault is over."""
        yield
        self.record_fault(f"over: {fault!r}")

    async def leader(self) -> ReplicaProcess | None:
        """Return the replica that holds a lease, if any."""
        leases = await self._client.list(coordination_v1.Lease, namespace=self._namespace)
        holders = [lease.spec.holder_identity or "" for lease in leases]
        return next(
            (
                replica
                for replica in self.replicas
                if any(holder.startswith(f"{replica.name}_") for holder in holders)
            ),
            None,
        )

    async def start(
        self, group: asyncio.TaskGroup, settings: ReplicaSettings, *, user: str, replicas: int, folder: Path
    ) -> None:
        """Start replicas in a task group, and wait until they are ready.

        The settings are those of all replicas; names and files of each are added to them.
        """
        self._elects = settings.elects
        directory = await asyncio.to_thread(Path.cwd)
        for number in range(replicas):
            name = f"{settings.name}-{number}"
            endpoint = await self._proxy.open_endpoint(name, user=user)
            kubeconfig, report = folder / f"{name}.kubeconfig", folder / f"{name}.report"
            await asyncio.to_thread(_write_kubeconfig, kubeconfig, endpoint.config)
            own = msgspec.structs.replace(settings, name=name, kubeconfig=str(kubeconfig), report=str(report))
            log = folder / f"{name}.log"
            self.replicas.append(ReplicaProcess(self, endpoint, own, log=log, directory=directory))
        self._supervisors = [group.create_task(replica.supervise()) for replica in self.replicas]
        await self.wait_ready()

    def stop(self) -> None:
        """Stop the processes, without any faults; their task group waits for that."""
        self.faults.clear()
        for task in self._supervisors:
            task.cancel()

    async def wait_ready(self, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Wait until the caches of all replicas are synced, and the leader, or without leader election every replica, works."""
        __tracebackhide__ = True

        async def look() -> bool | None:
            for replica in self.replicas:
                await replica.check_started()
            return await self._is_ready() or None

        if await poll(look, timeout) is None:
            raise AssertionError(f"the operator is not ready within {timeout:g} s\n{await self._explain()}")

    async def settled(self, *, quiet: float = QUIET, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Wait until every replica runs, has no key queued or retried, and has written nothing for `quiet` seconds.

        Raise AssertionError after `timeout` seconds.
        """
        __tracebackhide__ = True
        loop = asyncio.get_running_loop()
        since = loop.time()
        busy: Sequence[str] = ()

        async def look() -> bool | None:
            nonlocal since, busy
            busy = [found for replica in self.replicas if (found := await replica.busy_reason())]
            if not busy and not await self._is_ready():
                busy = ["no replica leads"]
            if busy:
                since = loop.time()
            last = max(since, *(replica.endpoint.last_write for replica in self.replicas))
            return True if loop.time() - last >= quiet else None

        if await poll(look, timeout) is None:
            why = ", ".join(busy) or "it still writes"
            raise AssertionError(
                f"the operator did not settle within {timeout:g} s: {why}\n{await self._explain()}"
            )

    def log_lines(self) -> list[str]:
        """Return the last lines of the logs of all replicas."""
        return [line for replica in self.replicas for line in replica.log_lines()]

    async def _is_ready(self) -> bool:
        reports = [await replica.report() for replica in self.replicas]
        ready = [report.ready for report in reports]
        return all(report.synced for report in reports) and (any(ready) if self._elects else all(ready))

    async def _explain(self) -> str:
        requests = [line for replica in self.replicas for line in replica.endpoint.last_requests]
        lines = [*self._log, *await asyncio.to_thread(self.log_lines)]
        lines.sort(key=lambda line: getattr(line, "created", 0.0))
        return "\n".join(["the last requests:", *requests, "the log:", *lines[-_LOG_LINES:]])


def _line_at(created: float, text: str) -> LogLine:
    line = LogLine(text)
    line.created, line.repeated = created, None
    return line


def _write_kubeconfig(path: Path, config: ClusterConfig) -> None:
    """Write how a replica connects; only the owner of the file can read it, because it has a token."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": config.server}}],
        "users": [{"name": "operator", "user": {"token": config.token}}],
        "contexts": [
            {
                "name": "proxy",
                "context": {"cluster": "proxy", "user": "operator", "namespace": config.namespace},
            }
        ],
        "current-context": "proxy",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document))
