"""A replay as a pytest: a file with the test, and beside it the part of the record that it needs."""

import os
from pathlib import Path

from kubewright.api import ConfigError
from kubewright.journal import ReconcileRecord
from kubewright.replay import RecordedReconcile, extract

_TEST = '''"""Reconcile {id} of {kind} {name}, recorded at {at:%Y-%m-%d %H:%M:%S} UTC, must do {expected}.

The last line of the record beside this file is what is expected.
"""

import asyncio
from pathlib import Path

from kubewright.cli.target import load_operator
from kubewright.replay import find_reconcile, replay

HERE = Path(__file__).parent
RECORD = Path(__file__).with_suffix(".jsonl")


def test_reconcile_of_{function}_does_what_is_expected() -> None:
    operator = load_operator({target})
    replayed = asyncio.run(replay(operator, find_reconcile(RECORD, {id!r})))
    assert replayed.differences == [], "\\n".join(replayed.differences)
'''


def write_test(
    path: Path,
    record_file: Path,
    target: str,
    recorded: RecordedReconcile,
    expected: ReconcileRecord | None,
) -> Path:
    """Write the test and its record, and return the path of the record.

    The test expects what was recorded, or else what a replay did (`expected`). Raise ConfigError if one of them exists or cannot be written.
    """
    record = recorded.record
    part = path.with_suffix(".jsonl")
    text = _TEST.format(
        id=record.id,
        kind=record.kind,
        name=record.name,
        at=record.started_at,
        expected="the same again" if expected is None else "what it did when this test was written",
        function="".join(each if each.isalnum() else "_" for each in f"{record.kind}_{record.name}").lower(),
        target=_target(path, target),
    )
    for each in (path, part):
        if each.exists():
            raise ConfigError(f"{each} exists: choose another name with --test, or delete it")
    try:
        extract(record_file, recorded, part, expected=expected)
        path.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename or path}: {error.strerror}") from None
    return part


def _target(test: Path, target: str) -> str:
    """Return the expression for TARGET; a file is found from the test, whatever the working directory is."""
    file, colon, name = target.partition(":")
    if not Path(file).exists():
        return repr(target)
    relative = os.path.relpath(Path(file).resolve(), test.resolve().parent)
    return f'f"{{HERE / {relative!r}}}{colon}{name}"'
