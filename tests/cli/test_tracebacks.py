import json
import logging
import re
import sys
from pathlib import Path

import pytest

from kubewright.api import Meta, decode
from kubewright.cli.app import main
from kubewright.cli.logs import JsonLines, TextLines
from kubewright.tracebacks import crash_report, folded_traceback, place_of, stack_trace

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


def test_tracebacks_begin_with_the_line_of_the_author_and_omit_our_frames() -> None:
    error = failure()
    shown = crash_report(error).splitlines()
    line = failure.__code__.co_firstlineno + 2
    assert shown[0].startswith(f"{__file__}:{line}: DecodeError: ")
    assert place_of(error) == f"{__file__}:{line}"
    assert not any("kubewright/api" in text for text in shown)


def test_a_failure_without_frames_is_reported_whole() -> None:
    assert crash_report(ValueError("x")) == "ValueError: x"


def test_a_logged_traceback_shows_the_authors_frames_and_counts_the_others() -> None:
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
    line = failure.__code__.co_firstlineno + 2
    lines = TextLines(colour=False).format(record).splitlines()
    assert lines[0].endswith("Reconciler error")
    assert f'      File "{__file__}", line {line}, in failure' in lines
    assert any(re.fullmatch(r"      \.\.\. \d+ frames? in kubewright", text) for text in lines)
    assert not any("kubewright/api" in text for text in lines)
    whole = TextLines(colour=False, whole=True).format(record)
    assert "kubewright/api" in whole


def test_folded_tracebacks_fold_causes_groups_and_the_standard_library() -> None:
    def wrong(text: str) -> None:
        try:
            json.loads(text)
        except ValueError as error:
            raise ExceptionGroup("several", [failure()]) from error

    with pytest.raises(ExceptionGroup) as raised:
        wrong("{")
    shown = folded_traceback(raised.value)
    assert "... 3 frames in the standard library" in shown
    assert " in kubewright" in shown
    assert "in wrong" in shown
    assert "in failure" in shown
    assert "json/decoder.py" not in shown


def test_a_traceback_without_frames_of_the_author_is_whole() -> None:
    with pytest.raises(ValueError, match="Expecting") as raised:
        json.loads("{")
    error = raised.value
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    assert "json/decoder.py" in folded_traceback(error)


def test_json_keeps_the_whole_traceback_of_a_repeated_failure() -> None:
    error = failure()
    record = logging.LogRecord("kubewright", logging.ERROR, "x.py", 1, "Reconciler error", (), None)
    record.fields = {"error": "DecodeError: no"}
    record.raised = error
    line = json.loads(JsonLines().format(record))
    assert line["error"] == "DecodeError: no"
    assert "kubewright/api" in line["stacktrace"]


def test_an_operator_that_crashes_names_the_authors_line(
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
