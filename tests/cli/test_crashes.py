import io
import logging
import sys
from pathlib import Path

import pytest

from kubewright.api import Meta, decode
from kubewright.cli.app import main
from kubewright.cli.crashes import crash_report, place_of, stack_trace
from kubewright.cli.logs import TextLines

LIFESPAN = '''
from contextlib import asynccontextmanager
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Glass(kw.Resource[Spec, Status], group="crash.example.com", version="v1"):
    """A glass."""

@kw.controller(Glass)
async def glasses(glass: Glass, ctx: kw.Context) -> None:
    pass

@asynccontextmanager
async def session():
    raise RuntimeError("no session today")
    yield

operator = kw.Operator(glasses, lifespan=session)
'''


def failure() -> Exception:
    try:
        decode(Meta, b"{")
    except Exception as error:
        return error
    raise AssertionError("it must fail")


def test_the_authors_line_comes_first_and_our_frames_not_at_all() -> None:
    error = failure()
    told = crash_report(error).splitlines()
    line = failure.__code__.co_firstlineno + 2
    assert told[0].startswith(f"{__file__}:{line}: DecodeError: ")
    assert place_of(error) == f"{__file__}:{line}"
    assert not any("kubewright/api" in text for text in told)


def test_a_failure_of_ours_alone_is_told_whole() -> None:
    assert crash_report(ValueError("x")) == "ValueError: x"


def test_a_logged_failure_shows_the_authors_line_first() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(TextLines(colour=False))
    error = failure()
    record = logging.LogRecord(
        "kubewright",
        logging.ERROR,
        "x.py",
        1,
        "Reconciler error",
        (),
        (type(error), error, error.__traceback__),
    )
    handler.handle(record)
    first, second, *_ = out.getvalue().splitlines()
    assert first.endswith("Reconciler error")
    assert second.startswith(f"    {__file__}:")


def test_an_operator_that_crashes_is_told_by_its_own_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fragile_operator.py"
    path.write_text(LIFESPAN)
    quiet = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(path), "--dev", *quiet])
    assert ended.value.code == 1
    line = next(text for text in capsys.readouterr().err.splitlines() if text.startswith("Error: "))
    assert line == f"Error: {path}:20: RuntimeError: no session today"
    assert "fragile_operator" in sys.modules


def _fail(number: int) -> Exception:
    try:
        raise LookupError(f"number {number}")
    except LookupError as error:
        return error


def test_a_stack_trace_names_the_line_and_each_failure() -> None:
    for number in range(2):
        lines = stack_trace(_fail(number)).splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert __file__ in lines[1]
        assert lines[2].strip() == 'raise LookupError(f"number {number}")'
        assert lines[-1] == f"LookupError: number {number}"


def test_a_stack_trace_shows_the_cause() -> None:
    error = RuntimeError("outer")
    error.__cause__ = _fail(3)
    assert "LookupError: number 3" in stack_trace(error)
    assert stack_trace(error).rstrip().endswith("RuntimeError: outer")
