"""Which case holds on which server: a table at the end of a run, and in a file where one is named.

KUBEWRIGHT_ACCEPTANCE names the Markdown file; a run fills its own server's column and leaves the others' as they are.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = Path(__file__).parent / "cases.yaml"
SERVERS = ("embedded", "real")
HEAD = """# Acceptance
What the five example operators must do, and the results on the embedded server and on a real Kubernetes control plane.
`tests/acceptance/cases.yaml` lists the tests of each case; a run with `KUBEWRIGHT_ACCEPTANCE=docs/acceptance.md` writes its
column. "part" means that some tests of the case were skipped, because they need something that was missing or run only on the other server.

"""


@dataclass(frozen=True)
class Case:
    """One thing that must hold, and the tests that show it."""

    id: str
    case: str
    tests: list[str]

    def includes(self, node: str) -> bool:
        """Return True if a test belongs to this case."""
        name = node.rpartition("/")[2]
        return any(name.startswith(test) for test in self.tests)


def cases() -> list[Case]:
    """Read all cases."""
    return [Case(**entry) for entry in yaml.safe_load(CASES.read_text())]


@dataclass
class Report:
    """Collects what came of each test."""

    server: str
    outcomes: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, report: pytest.TestReport) -> None:
        """Note a test's outcome: the worst of its phases."""
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.skipped:
            self.outcomes.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, "passed")

    def verdict(self, case: Case) -> str:
        """Return the outcome of a case."""
        found = [outcome for node, outcome in self.outcomes.items() if case.includes(node)]
        if not found:
            return "-"
        if "failed" in found:
            return "NO"
        if "skipped" in found:
            return "part" if "passed" in found else "-"
        return "yes"

    def rows(self) -> list[tuple[Case, str]]:
        """Pair each case with its verdict."""
        return [(case, self.verdict(case)) for case in cases()]


def table(report: Report, before: str = "") -> str:
    """Render all cases; what the other servers' runs have written stays."""
    kept = {
        found[1]: dict(zip(SERVERS, found[2].split(" | "), strict=True))
        for found in re.finditer(r"^\| ([^|]+) \| [^|]+ \| (\S+ \| \S+) \|$", before, re.MULTILINE)
    }
    lines = [f"| case | what | {' | '.join(SERVERS)} |", "|---|---|" + "---|" * len(SERVERS)]
    for case, verdict in report.rows():
        columns: dict[str, Any] = dict.fromkeys(SERVERS, "-") | kept.get(case.id, {})
        if verdict != "-":
            columns[report.server] = verdict
        lines.append(f"| {case.id} | {case.case} | {' | '.join(columns[server] for server in SERVERS)} |")
    return HEAD + "\n".join(lines) + "\n"


class Reporter:
    """Listens to every test of a run, those beside the examples too."""

    def __init__(self, server: str) -> None:
        self.report = Report(server)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test's outcome."""
        self.report.add(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, and write it where that is asked for."""
        rows = [(case, verdict) for case, verdict in self.report.rows() if verdict != "-"]
        if not rows:
            return
        terminalreporter.section(f"acceptance on the {self.report.server} server")
        for case, verdict in rows:
            terminalreporter.write_line(f"{verdict:4}  {case.id:6}  {case.case}")
        if name := os.environ.get("KUBEWRIGHT_ACCEPTANCE"):
            file = Path(name)
            file.write_text(table(self.report, file.read_text() if file.exists() else ""))
