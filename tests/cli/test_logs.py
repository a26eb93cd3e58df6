import io
import json
import logging

import pytest

from kubewright.cli.logs import BURST, FoldedBursts, JsonLines, TextLines

FIELDS = {
    "controller": "shells",
    "controllerGroup": "example.com",
    "controllerKind": "Shell",
    "Shell": {"namespace": "default", "name": "demo"},
    "namespace": "default",
    "name": "demo",
    "reconcileID": "1",
    "friend": "funny joe",
}


def logged(formatter: logging.Formatter, *records: tuple[int, str, dict[str, object]]) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    handler.addFilter(FoldedBursts())
    for level, message, fields in records:
        record = logging.LogRecord("kubewright.controller", level, "x.py", 1, message, (), None)
        record.fields = fields
        handler.handle(record)
    return out.getvalue()


def test_text_logs_name_the_object_first() -> None:
    line = logged(TextLines(colour=False), (logging.INFO, "hello", FIELDS))
    assert line.endswith('hello  controller=shells namespace=default name=demo friend="funny joe"\n')


def test_text_logs_show_a_list_in_one_line() -> None:
    line = logged(TextLines(colour=False), (logging.INFO, "serving", {"paths": ["/a", "/b c"]}))
    assert line.endswith('serving  paths=["/a","/b c"]\n')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n12:00:00 INFO    all is well", "a\\n12:00:00 INFO    all is well"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\rb\tc\x00d\x7fe\x9bf", "a\\rb\\tc\\x00d\\x7fe\\x9bf"),
        ("a\u2028b\u202ec", "a\\u2028b\\u202ec"),
        ("größer als 日本 🚀", "größer als 日本 🚀"),
    ],
)
def test_text_logs_escape_control_characters(text: str, shown: str) -> None:
    formatter = TextLines(colour=False)
    line = logged(formatter, (logging.INFO, f"{text}!", {}))
    assert line.endswith(f" {shown}!\n")
    assert line.count("\n") == 1
    line = logged(formatter, (logging.INFO, "hello", {"friend": text}))
    assert line.count("\n") == 1
    assert "\x1b" not in line
    [raised] = logged(formatter, (logging.INFO, "hello", {text: "friend"})).splitlines()
    assert f"{shown}=friend" in raised


@pytest.mark.parametrize("whole", [True, False])
def test_the_lines_of_a_failure_are_indented_and_escaped(whole: bool) -> None:
    try:
        raise ValueError("no\x1b[31m room\n12:00:00 INFO    all is well")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "x.py", 1, "failed", (), (ValueError, error, error.__traceback__)
        )
    first, *lines = TextLines(colour=False, whole=whole).format(record).split("\n")
    assert first.endswith("failed")
    assert all(line.startswith("    ") for line in lines)
    assert any("no\\x1b[31m room" in line for line in lines)


def test_json_logs_hold_every_field() -> None:
    line = json.loads(logged(JsonLines(), (logging.INFO, "hello", FIELDS)))
    assert line["msg"] == "hello"
    assert line["level"] == "info"
    assert {name: line[name] for name in FIELDS} == FIELDS


def test_text_logs_show_an_error_once() -> None:
    fields: dict[str, object] = {"controller": "shells", "error": "no room", "terminal": False}
    printed = logged(TextLines(colour=False), (logging.ERROR, "Reconciler error: no room", fields))
    assert printed.endswith("Reconciler error: no room  controller=shells terminal=false\n")
    other = logged(TextLines(colour=False), (logging.ERROR, "Could not write", fields))
    assert 'error="no room"' in other


def test_errors_are_coloured_only_if_colours_are_enabled() -> None:
    assert "\x1b[31m" in logged(TextLines(colour=True), (logging.ERROR, "bad", {}))
    assert "\x1b" not in logged(TextLines(colour=False), (logging.ERROR, "bad", {}))


def test_a_burst_of_equal_errors_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("kubewright.cli.logs.time.monotonic", lambda: now)
    folded = FoldedBursts()
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed", (), None)
    assert [folded.filter(record) for _ in range(BURST + 3)] == [True] * BURST + [False] * 3
    now = 200.0
    assert folded.filter(record)
    assert record.getMessage() == "failed (3 similar messages suppressed)"


def test_another_error_is_shown_in_the_middle_of_a_burst() -> None:
    folded = FoldedBursts()

    def shown(name: str, error: str) -> bool:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "Reconciler error: %s", (error,), None)
        record.fields = {"name": name, "namespace": "default", "error": error}
        return folded.filter(record)

    same = [shown(f"shop-{number}", f"no room for shop-{number}") for number in range(BURST + 3)]
    assert same == [True] * BURST + [False] * 3
    assert shown("shop-1", "no money")


def test_new_messages_are_never_folded() -> None:
    folded = FoldedBursts()
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "news", (), None)
    assert all(folded.filter(record) for _ in range(100))


def test_errors_that_are_not_retried_are_never_folded() -> None:
    folded = FoldedBursts()
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "Reconciler error: %s", ("no room",), None)
    for _ in range(BURST + 1):
        folded.filter(record)
    record.fields = {"terminal": True}
    assert folded.filter(record)
