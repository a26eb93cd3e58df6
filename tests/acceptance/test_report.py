"""The table of cases: every test it names is there, and a run fills its own column only."""

import re
from pathlib import Path

from acceptance_report import Report, cases, table

ROOT = Path(__file__).parents[2]


def written_tests() -> list[str]:
    places = ("tests/test_*.py", "tests/acceptance/test_*.py", "examples/*/test_*.py")
    files = [file for place in places for file in ROOT.glob(place)]
    return [
        f"{file.name}::{name}"
        for file in files
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    ]


def test_every_acceptance_case_has_tests_that_exist() -> None:
    written = written_tests()
    missing = [
        test for case in cases() for test in case.tests if not any(name.startswith(test) for name in written)
    ]
    assert missing == []
    assert len({case.id for case in cases()}) == len(cases())


def test_a_run_fills_its_own_column() -> None:
    first, second = Report("embedded"), Report("real")
    first.outcomes = {"tests/acceptance/test_lives.py::test_a_life_cycle_uses_every_rule[foo]": "passed"}
    second.outcomes = {"tests/acceptance/test_lives.py::test_a_life_cycle_uses_every_rule[foo]": "failed"}
    text = table(second, table(first))
    (line,) = (line for line in text.splitlines() if line.startswith("| COM 3 |"))
    assert line.endswith("| yes | NO |")
    assert table(Report("real"), text) == text


def test_the_written_table_has_the_cases_of_today() -> None:
    written = (ROOT / "docs" / "acceptance.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", written, re.MULTILINE)
    assert [row for row in rows if row[0] != "case"] == [(case.id, case.case) for case in cases()]
