"""`kubewright replay`."""

import bdb
import inspect
import pdb  # noqa: T100 (what --pdb is)
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

from kubewright.cli.documents import show
from kubewright.cli.logs import escaped, set_up
from kubewright.cli.loops import run_program
from kubewright.cli.options import FILE, optional_target_argument, target_or_project
from kubewright.cli.progress import reading_progress
from kubewright.cli.replay.generated_test import write_test
from kubewright.cli.target import load_operator
from kubewright.controller import Operator
from kubewright.replay import (
    RecordedReconcile,
    Replayed,
    ReplayError,
    find_reconcile,
    recorded_reconciles,
    replay,
)
from kubewright.replay.writes import write_lines

SHORT_ID = 8
"""Characters of an id that are listed: as many as are unique in most files."""


@click.command()
@click.argument("file", type=FILE)
@optional_target_argument
@click.option(
    "--reconcile",
    "id",
    metavar="ID",
    default="",
    help="The id of the reconcile or the beginning of it; last: the last that failed; KIND/NAME: the last of this"
    " object that failed, or its last one. Without this option the reconciles of FILE are listed.",
)
@click.option(
    "-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace of KIND/NAME; default: any."
)
@click.option("--diff", is_flag=True, help="Compare with what was recorded; exit with 1 if it differs.")
@click.option(
    "--test",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write a pytest, with the part of the record that it needs beside it, that fails if anything differs.",
)
@click.option(
    "--expect",
    type=click.Choice(["recorded", "replayed"]),
    default="recorded",
    show_default=True,
    help="What the test of --test expects: what was recorded, or what the code does now, for a bug that you fixed.",
)
@click.option("--pdb", "debugging", is_flag=True, help="Stop in the debugger at the reconciler's first line.")
def command(
    file: Path,
    target: str | None,
    id: str,  # noqa: A002 (the option's name)
    namespace: str,
    diff: bool,
    test: Path | None,
    expect: str,
    debugging: bool,
) -> int:
    """Run a recorded reconcile again, with the code of TARGET as it is now; or list the reconciles of FILE.

    FILE comes from `kubewright run --record FILE`. The reconcile runs on an embedded server with the objects that it
    read, at the recorded time, and gets the recorded errors; nothing is read from or written to a cluster. External
    systems are replaced by the results that ctx.record recorded, then by Operator(planning=...).
    """
    set_up("text")
    if not id:
        if diff or debugging or test is not None:
            raise click.UsageError("--diff, --pdb and --test need --reconcile")
        return _list(file)
    with reading_progress(file, passes=2) as progress:
        recorded = find_reconcile(file, id, namespace=namespace, progress=progress)
    if recorded.missing and (diff or test is not None):
        raise ReplayError(
            f"reconcile {recorded.record.id} cannot be compared: {file} lacks {', '.join(recorded.missing)}; "
            "without --diff and --test it runs as if these objects did not exist"
        )
    target = target_or_project(target)
    operator = load_operator(target)
    record = recorded.record
    click.echo(
        f"{escaped(record.object)}, generation {record.generation}, reconciled by {record.controller} at "
        f"{record.started_at:%Y-%m-%d %H:%M:%S} UTC: {record.outcome}",
        err=True,
    )
    for text in (*recorded.missing, *recorded.unknown):
        click.echo(f"not in the record: {escaped(text)}", err=True)
    before = _debugger(operator, recorded) if debugging else None
    try:
        replayed = run_program(lambda: replay(operator, recorded, before=before))
    except DebuggerQuit:
        click.echo("left the debugger before the reconcile ended", err=True)
        return 1
    if test is not None:
        expected = replayed.record if expect == "replayed" else None
        part = write_test(test, file, target, recorded, expected)
        click.echo(f"wrote {test} and {part}", err=True)
    return _show(replayed, diff=diff)


def _list(file: Path) -> int:
    """Print the reconciles of a record, one line each; return 1 if all that it had may be damaged."""
    listed, damaged = 0, list[int]()
    with reading_progress(file) as progress:
        for record in recorded_reconciles(file, progress, damaged.append):
            listed += 1
            reason = f": {record.error}" if record.error else ""
            writes = "1 write" if len(record.writes) == 1 else f"{len(record.writes)} writes"
            text = (
                f"{record.id[:SHORT_ID]}  {record.started_at:%Y-%m-%d %H:%M:%S}  {record.object}  "
                f"{record.controller}  {record.outcome}  {writes}{reason}"
            )
            click.echo(escaped(" ".join(text.split("\n"))))
    if not listed:
        click.echo(f"{file} has no reconciles", err=True)
    if len(damaged) == 1:
        click.echo(f"1 truncated or damaged line was skipped: line {damaged[0]}", err=True)
    elif damaged:
        click.echo(
            f"{len(damaged)} truncated or damaged lines were skipped, the first is line {damaged[0]}",
            err=True,
        )
    return int(bool(damaged) and not listed)


def _show(replayed: Replayed, *, diff: bool) -> int:
    if diff:
        show([escaped(line) for line in replayed.differences] or ["the same writes, Events and outcome"])
        return int(bool(replayed.differences))
    lines = write_lines(replayed.record.writes)
    for line in lines or ["no writes"]:
        click.echo(escaped(line))
    error = f": {replayed.record.error}" if replayed.record.error else ""
    click.echo(escaped(f"{replayed.record.outcome}{error}"))
    return 0


class DebuggerQuit(KeyboardInterrupt):
    """The user left the debugger; like an interrupt, it is no failure of the reconcile."""


class ReplayDebugger(pdb.Pdb):
    """A debugger whose `quit` ends the replay."""

    def trace_dispatch(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Handle an event of the tracing."""
        try:
            return super().trace_dispatch(frame, event, arg)
        except bdb.BdbQuit:
            raise DebuggerQuit from None


def _debugger(operator: Operator, recorded: RecordedReconcile) -> Callable[[], None]:
    """Return a function that makes the debugger stop at the first line of the reconciler and of the finalizer."""
    controllers = {controller.name: controller for controller in operator.controllers}
    controller = controllers.get(recorded.record.controller)
    functions = () if controller is None else controller.functions

    def stop() -> None:
        debugger = ReplayDebugger(nosigint=True)
        debugger.reset()
        for function in functions:
            if function is not None:
                code = inspect.unwrap(getattr(function, "__func__", function)).__code__
                debugger.set_break(code.co_filename, _first_line(code), temporary=True)
        # Only at the breakpoints: without a frame of its own the debugger stops at whatever runs next.
        debugger.botframe = inspect.currentframe()
        debugger.set_continue()
        sys.settrace(debugger.trace_dispatch)

    return stop


def _first_line(code: CodeType) -> int:
    """Return the first line of a coroutine function's body."""
    source, begin = inspect.getsourcelines(code)
    signature = next((n for n, text in enumerate(source) if text.lstrip().startswith("async def")), 0)
    lines = {line for _, _, line in code.co_lines() if line is not None}
    return min((line for line in lines if line > begin + signature), default=code.co_firstlineno)
