"""Run the cases of an exploration in several processes (`worker`)."""

import asyncio
import itertools
import os
import re
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.cli.prove.worker import RUN_LIMIT, violation_from, violation_to_json
from kubewright.testing.proving import (
    Case,
    CaseResult,
    CrashPoint,
    DistinctViolation,
    Effort,
    Observed,
    ProofError,
    Report,
)
from kubewright.testing.proving.cases import to_json
from kubewright.testing.proving.exploration import ExplorationBudget, begin_parts, begin_report, stages
from kubewright.testing.proving.report import Stage
from kubewright.testing.proving.sequence_run import SpecsSeen
from kubewright.testing.proving.violations import ViolationLog, reduced
from kubewright.testing.simulation.schedule import ChoicePoint
from kubewright.tracebacks import package_of

SHRINKING_LIMIT = 600.0
PROGRESS_INTERVAL = 3.0
"""Seconds between two lines about the progress."""
_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>\S+)')
_LINE_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Setup:
    """What each worker loads: the operator, its samples and invariants."""

    target: str
    samples: Sequence[JsonObject]
    invariants: Path | None = None
    invariant_count: int = 0
    keeps: Sequence[str] = ()

    def json(self) -> JsonObject:
        """Return the first request to a worker."""
        return {
            "do": "open",
            "target": self.target,
            "samples": list(self.samples),
            "invariants": "" if self.invariants is None else str(self.invariants),
            "keeps": list(self.keeps),
        }


class WorkerProcess:
    """One process, which handles one request at a time."""

    def __init__(self, process: Process, output: IO[bytes]) -> None:
        self._process = process
        self._output = output

    async def send(self, request: JsonObject) -> JsonObject:
        """Send a request and return the response; raise ProofError if the case cannot be run."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(msgspec.json.encode(request) + b"\n")
        try:
            await stdin.drain()
        except ConnectionError:
            line = b""
        else:
            line = await stdout.readline()
        if not line:
            raise ProofError(await asyncio.to_thread(self._exit_reason))
        response = cast("JsonObject", msgspec.json.decode(line))
        if error := response.get("error"):
            raise ProofError(error)
        return response

    def _exit_reason(self) -> str:
        self._output.seek(0)
        printed = self._output.read().decode("utf-8", "replace")
        _, timeout, stack = printed.rpartition("Timeout (")
        if timeout:
            for found in _FRAME.finditer(stack):
                if not package_of(found["file"]):
                    return (
                        f"{found['file']}:{found['line']}: {found['function']} blocks the event loop: a run did not end "
                        f"within {RUN_LIMIT:g} s; await something in it, or use ctx.run_sync"
                    )
            return f"a run did not end within {RUN_LIMIT:g} s"
        return f"the process that ran the operator exited unexpectedly; its last output:\n{printed[-2000:].strip()}"


@asynccontextmanager
async def worker_process() -> AsyncGenerator[WorkerProcess, None]:
    """Start a worker process, and end it when the context is left."""
    with TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kubewright.cli.prove.worker",
            stdin=PIPE,
            stdout=PIPE,
            stderr=output,
            limit=_LINE_LIMIT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        try:
            yield WorkerProcess(process, output)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class Exploration:
    """Run the cases of all stages in several processes, then shrink each distinct violation."""

    def __init__(self, setup: Setup, effort: Effort, jobs: int, progress: Callable[[str], None]) -> None:
        self._setup = setup
        self._effort = effort
        self._jobs = jobs
        self._progress = progress
        self._shown = 0.0
        self._numbers = itertools.count(1)

    async def run(self) -> Report:
        """Run everything and return the report."""
        began = time.monotonic()
        async with worker_process() as first:
            self._progress("running the operator without faults")
            opened = await first.send(self._setup.json())
            observed = _observed(opened)
            report = begin_report(
                opened["name"],
                self._setup.samples,
                observed,
                self._setup.invariant_count,
                opened["notes"],
            )
            report.jobs = self._jobs
            log = report.log = ViolationLog(self._effort.violations)
            failure = None if opened["failure"] is None else violation_from(opened["failure"])
            parts = begin_parts(self._effort, log, report, failure)
            self._budget = ExplorationBudget(self._effort, parts, log)
            await self._explore(first, parts, observed, report)
        report.elapsed = time.monotonic() - began
        return report

    async def _explore(
        self, first: WorkerProcess, parts: Sequence[str], observed: Observed, report: Report
    ) -> None:
        async with asyncio.TaskGroup() as group:
            idle: asyncio.Queue[WorkerProcess] = asyncio.Queue()
            idle.put_nowait(first)
            finished = asyncio.Event()
            for _ in range(self._jobs - 1 if parts else 0):
                group.create_task(self._run_worker(idle, finished))
            try:
                for part in parts:
                    await self._run_part(part, idle, observed, report)
                report.stopped = self._budget.reason
                report.violations = await self._reduce(report.log.violations(), idle)
            finally:
                finished.set()

    async def _reduce(
        self, violations: Sequence[DistinctViolation], idle: "asyncio.Queue[WorkerProcess]"
    ) -> list[DistinctViolation]:
        """Shrink each violation to its smallest case, with all processes."""

        async def reduce(violation: DistinctViolation, worker: WorkerProcess) -> DistinctViolation:
            found = await worker.send(
                {"do": "shrink", "failure": violation_to_json(violation.found), "limit": SHRINKING_LIMIT}
            )
            idle.put_nowait(worker)
            return reduced(violation, violation_from(found["failure"]), found["timeline"])

        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[DistinctViolation]] = []
            for number, violation in enumerate(violations, 1):
                worker = await idle.get()
                self._progress(
                    f"{violation.found.property.title} does not hold: looking for the smallest case "
                    f"(violation {number} of {len(violations)})"
                )
                tasks.append(group.create_task(reduce(violation, worker)))
        return [task.result() for task in tasks]

    async def _run_part(
        self, part: str, idle: "asyncio.Queue[WorkerProcess]", observed: Observed, report: Report
    ) -> None:
        for stage, cases in stages(part, self._setup.samples, observed, self._effort):
            report.stages.append(stage)
            await self._run_stage(part, stage, cases, idle, report)
            if self._budget.is_over(part):
                return

    async def _run_worker(self, idle: "asyncio.Queue[WorkerProcess]", finished: asyncio.Event) -> None:
        """Start another process, and keep it until the exploration has finished."""
        async with worker_process() as worker:
            await worker.send(self._setup.json())
            idle.put_nowait(worker)
            await finished.wait()

    async def _run_stage(
        self,
        part: str,
        stage: Stage,
        cases: Iterable[Case],
        idle: "asyncio.Queue[WorkerProcess]",
        report: Report,
    ) -> None:
        async with asyncio.TaskGroup() as group:
            for case in cases:
                worker = await idle.get()
                if self._budget.is_over(part):
                    idle.put_nowait(worker)
                    return
                number = next(self._numbers)
                group.create_task(self._run_case(worker, case, part, stage, number, idle, report))

    def _show(self, stage: Stage) -> None:
        """Print the progress every few seconds; a line for each case would be too many."""
        now = time.monotonic()
        if now >= self._shown + PROGRESS_INTERVAL:
            self._shown = now
            self._progress(str(stage))

    async def _run_case(
        self,
        worker: WorkerProcess,
        case: Case,
        part: str,
        stage: Stage,
        number: int,
        idle: "asyncio.Queue[WorkerProcess]",
        report: Report,
    ) -> None:
        found = await worker.send({"do": "run", "case": to_json(case)})
        failure = None if found["failure"] is None else violation_from(found["failure"])
        report.add(
            part,
            stage,
            CaseResult(
                case,
                failure,
                found["reconciles"],
                found["requests"],
                found["writes"],
                found["seconds"],
                [ChoicePoint(options) for options in found["points"]],
                pruned=found["pruned"],
                not_pruned=found["notPruned"],
                specs=msgspec.convert(found["specs"], SpecsSeen),
                early_claims=frozenset(found["earlyClaims"]),
            ),
            number,
        )
        self._show(stage)
        idle.put_nowait(worker)


def _observed(opened: JsonObject) -> Observed:
    return Observed(
        points=[CrashPoint(*point) for point in opened["points"]],
        changes={number: (text, changed) for number, text, changed in opened["changes"]},
        webhooks=opened["webhooks"],
        external=opened["external"],
        shards=opened["shards"],
        early_claims=set(opened["earlyClaims"]),
        reconciles=opened["reconciles"],
        requests=opened["requests"],
        seconds=opened["seconds"],
        schemas=dict(opened["schemas"]),
    )
