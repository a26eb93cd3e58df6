"""`kubewright replay`."""

import inspect
import pdb  # noqa: T100 (what --pdb is)
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import click

from kubewright.cli.documents import show
from kubewright.cli.logs import escaped, set_up
from kubewright.cli.loops import run_program
from kubewright.cli.options import FILE, target_argument
from kubewright.cli.replay.generated_test import write_test
from kubewright.cli.target import load_operator
from kubewright.controller import Operator
from kubewright.replay import RecordedReconcile, Replayed, find_reconcile, replay
from kubewright.replay.writes import write_lines


@click.command()
@click.argument("file", type=FILE)
@target_argument
@click.option(
    "--reconcile",
    "id",
    metavar="ID",
    required=True,
    help="The id of the reconcile or the beginning of it, as `why` shows it; last: the last that failed.",
)
@click.option("--diff", is_flag=True, help="Compare with what was recorded; exit with 1 if it differs.")
@click.option(
    "--test",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write a pytest, with the part of the record that it needs beside it, that fails if anything differs.",
)
@click.option("--pdb", "debugging", is_flag=True, help="Stop in the debugger at the reconciler's first line.")
def command(
    file: Path,
    target: str,
    id: str,  # noqa: A002 (the option's name)
    diff: bool,
    test: Path | None,
    debugging: bool,
) -> int:
    """Run a recorded reconcile again, with the code of TARGET as it is now.

    FILE comes from `kubewright run --record FILE`. The reconcile runs on an embedded server with the objects that it
    read, at the time that it was, and gets the errors that it got; nothing is read from or written to a cluster.
    External systems are replaced by Operator(planning=...).
    """
    set_up("text")
    recorded = find_reconcile(file, id)
    operator = load_operator(target)
    record = recorded.record
    place = f"{record.namespace}/{record.name}" if record.namespace else record.name
    click.echo(
        f"{record.kind} {place}, generation {record.generation}, reconciled by {record.controller} at "
        f"{record.started_at:%Y-%m-%d %H:%M:%S} UTC: {record.outcome}",
        err=True,
    )
    for text in recorded.unknown:
        click.echo(f"not in the record: {escaped(text)}", err=True)
    before = _debugger(operator, recorded) if debugging else None
    replayed = run_program(lambda: replay(operator, recorded, before=before))
    if test is not None:
        part = write_test(test, file, target, recorded)
        click.echo(f"wrote {test} and {part}", err=True)
    return _show(replayed, diff=diff)


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


def _debugger(operator: Operator, recorded: RecordedReconcile) -> Callable[[], None]:
    """Return a function that makes the debugger stop at the first line of the reconciler and of the finalizer."""
    controllers = {controller.name: controller for controller in operator.controllers}
    controller = controllers.get(recorded.record.controller)
    functions = () if controller is None else controller.functions

    def stop() -> None:
        debugger = pdb.Pdb(nosigint=True)
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
