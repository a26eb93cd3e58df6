"""The command `prove`: on a project, with a bug, and with input that cannot be proved."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubewright.cli.app import main

OPERATOR = '''
import kubewright as kw
from kubewright.api.builtin import core_v1

{globals}

class JarSpec(kw.Model):
    size: int = 1

class Jar(kw.Resource[JarSpec, kw.Model], group="proving.example.com", version="v1"):
    """Holds something."""

@kw.controller(Jar, owns=[core_v1.ConfigMap], needs=[kw.needs(core_v1.ConfigMap, "create")])
async def jars(jar: Jar, ctx: kw.Context) -> None:
    {body}
'''
CORRECT = 'await ctx.apply(core_v1.ConfigMap(kw.Meta(jar.metadata.name), data={"size": str(jar.spec.size)}))'
FORGETFUL = """if jar.metadata.name not in LABELLED:
        await ctx.create(core_v1.ConfigMap(kw.Meta(generate_name="label-")))
        LABELLED.add(jar.metadata.name)"""
SAMPLE = """
apiVersion: proving.example.com/v1
kind: Jar
metadata: {name: honey}
spec: {size: 1}
"""
QUICK = ["--only", "faults", "--seeds", "2", "--pairs", "1", "--jobs", "1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "jar.yaml").write_text(SAMPLE)
    write(tmp_path, CORRECT)
    return tmp_path


def write(folder: Path, body: str, globals_: str = "") -> None:
    (folder / "jars.py").write_text(OPERATOR.format(globals=globals_, body=body))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["prove", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_proves_an_operator_with_the_samples_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("jars.py", *QUICK, "--minutes", "0.1") == 0
    printed = capsys.readouterr()
    assert "Same final state   held in" in printed.out
    assert "jars: no violation found" in printed.out


def test_explores_only_the_orders_if_that_is_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jars.py", "--only", "orders", "--depth", "1", "--schedules", "4", "--jobs", "1") == 0
    printed = capsys.readouterr().out
    assert (
        "4 schedules to depth 1, 1 pruned in a state seen before; PARTIAL: complete to depth 0, 3 of "
        in printed
    )
    assert "crash points" not in printed


def test_explores_only_the_specs_if_that_is_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jars.py", "--only", "specs", "--sequences", "3", "--jobs", "1", "-o", "json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [stage["name"] for stage in report["stages"]] == ["changes of one field", "sequences of specs"]
    assert [stage["run"] for stage in report["stages"]] == [3, 3]
    assert report["specs"]["sequences"] == 6
    assert report["specs"]["childrenDeleted"] > 0
    assert report["properties"]["Valid specs"] == "held in 6 sequences"


def test_a_spec_that_breaks_the_operator_is_reported_with_a_rule_and_written_as_a_test(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, f"{CORRECT}\n    assert jar.spec.size > 0")
    assert run("jars.py", "--only", "specs", "--jobs", "1", "--test", "test_found.py") == 1
    printed = capsys.readouterr().out
    assert "Healthy does not hold: a reconcile failed with AssertionError" in printed
    assert "here spec.size=0: kw.Field(ge=1)" in printed
    assert '- create with {"spec":{"size":0}}' in printed
    assert "you: create Jar honey: spec.size: 1 -> 0" in printed
    assert pytest_run(folder) == 1
    write(folder, CORRECT)
    assert pytest_run(folder) == 0


def test_reports_as_json_what_was_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jars.py", *QUICK, "-o", "json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["violations"] == []
    *systematic, pairs, seeds = report["stages"]
    assert all(stage["run"] == stage["planned"] for stage in systematic)
    assert (pairs["run"], seeds["run"]) == (1, 2)
    assert report["runs"] == 1 + sum(stage["run"] for stage in report["stages"])


def test_state_in_a_module_is_lost_in_a_restart_and_the_written_test_repeats_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, FORGETFUL, "LABELLED = set()")
    assert run("jars.py", *QUICK, "--test", "test_found.py") == 1
    printed = capsys.readouterr().out
    assert "does not hold" in printed
    assert "jars-0 starts with an empty memory" in printed
    assert pytest_run(folder) == 1
    write(folder, CORRECT)
    assert pytest_run(folder) == 0


def pytest_run(folder: Path, *arguments: str) -> int:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(arguments or ["test_found.py"]),
    ]
    return subprocess.run(
        command, cwd=folder, capture_output=True, env=dict(os.environ), check=False
    ).returncode


TWO_BUGS = """await ctx.apply(core_v1.ConfigMap(kw.Meta(jar.metadata.name), data={"size": str(jar.spec.size)}))
    assert jar.spec.size >= 0, "negative"
    1 // jar.spec.size"""


def test_reports_each_distinct_violation_with_its_runs_and_writes_a_test_for_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, TWO_BUGS)
    (folder / "tests").mkdir()
    arguments = ["--only", "specs", "--sequences", "8", "--jobs", "2", "-o", "json"]
    assert run("jars.py", *arguments, "--test", "tests/test_found.py") == 1
    report = json.loads(capsys.readouterr().out)
    found = {violation["message"].partition(" at ")[0]: violation for violation in report["violations"]}
    assert set(found) == {
        "a reconcile failed with AssertionError: negative",
        "a reconcile failed with ZeroDivisionError: integer division or modulo by zero",
    }
    assert all(violation["part"] == "specs" for violation in report["violations"])
    failed = sum(violation["runs"] for violation in report["violations"])
    assert failed == sum(stage["failed"] for stage in report["stages"]) >= 2
    assert report["properties"]["Healthy"] == f"FAILED in {failed} of {report['runs']} runs"
    text = (folder / "tests" / "test_found.py").read_text()
    assert "def test_jars_healthy() -> None:" in text
    assert "def test_jars_healthy_2() -> None:" in text
    assert str(folder) not in text
    moved = folder / "elsewhere"
    moved.mkdir()
    (folder / "tests").rename(moved / "tests")
    (folder / "jars.py").rename(moved / "jars.py")
    assert pytest_run(moved, "tests/test_found.py", "-k", "healthy_2") == 1
    write(moved, CORRECT)
    assert pytest_run(moved, "tests/test_found.py") == 0


def test_violations_are_the_same_for_any_number_of_processes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, TWO_BUGS)
    found: list[object] = []
    for jobs in ("1", "3"):
        assert run("jars.py", "--only", "specs", "--sequences", "4", "--jobs", jobs, "-o", "json") == 1
        found.append(json.loads(capsys.readouterr().out)["violations"])
    assert found[0] == found[1]


def test_a_bound_in_the_report_names_its_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jars.py", "--only", "specs", "--sequences", "1", "--jobs", "1") == 0
    assert "changes of one field (at most 1; more with --sequences)" in capsys.readouterr().out


def test_reports_a_violation_as_markdown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, 'await ctx.apply(core_v1.ConfigMap(kw.Meta("label")), owned=False)')
    assert run("jars.py", *QUICK, "-o", "markdown") == 1
    printed = capsys.readouterr().out
    assert "### kubewright prove: `jars`, **Nothing left** does not hold" in printed
    assert "| Nothing left | FAILED in 1 of 1 run |" in printed
    assert "faults not explored: they are compared with the run without faults, which fails" in printed


def test_checks_invariants_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "invariants.py").write_text(
        "from kubewright.testing import prove\n\n\n@prove.invariant\ndef never(world, write):\n"
        '    assert write.resource != "configmaps" or write.writer == "cluster", "a ConfigMap was written"\n'
    )
    assert run("jars.py", *QUICK, "--invariants", "invariants.py") == 1
    assert "Invariants does not hold: never: a ConfigMap was written" in capsys.readouterr().out


def no_sample(folder: Path) -> None:
    (folder / "samples" / "jar.yaml").unlink()


def wrong_sample(folder: Path) -> None:
    (folder / "samples" / "jar.yaml").write_text(SAMPLE.replace("size: 1", "size: big"))


def sleeping(folder: Path) -> None:
    write(folder, "import time; time.sleep(1)")


def busy(folder: Path) -> None:
    write(folder, "while True: jar.spec.size += 1")


def connected(folder: Path) -> None:
    write(folder, 'import asyncio; await asyncio.open_connection("accounts.example.com", 443)')


LIFESPAN = """
from contextlib import asynccontextmanager

@asynccontextmanager
async def session():
    yield

operator = kw.Operator(jars, name="jars", lifespan=session)
"""


def with_lifespan(folder: Path) -> None:
    with (folder / "jars.py").open("a") as file:
        file.write(LIFESPAN)


def unreadable(folder: Path) -> None:
    write(folder, "", "def")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (no_sample, "no samples: write at least one object"),
        (wrong_sample, "the server refuses sample Jar honey"),
        (sleeping, "time.sleep(1) was called on the event loop: use asyncio.sleep, or ctx.run_sync"),
        (busy, "jars blocks the event loop"),
        (connected, "the operator tried to connect to accounts.example.com:443: a simulation has no network"),
        (with_lifespan, "operator 'jars' has a lifespan, which may use an external system: pass"),
        (with_lifespan, "kubewright.testing.External whose External.resources() returns what exists in it"),
        (unreadable, "SyntaxError"),
    ],
)
def test_says_why_something_cannot_be_proved(
    folder: Path, broken: Callable[[Path], None], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(folder)
    assert run("jars.py", *QUICK) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err


def test_says_that_an_operator_reads_the_real_clock(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, f"import datetime; datetime.datetime.now(); {CORRECT}")
    assert (
        run("jars.py", "--seeds", "0", "--pairs", "0", "--jobs", "1", "--minutes", "0.01", "-o", "json") == 0
    )
    [note] = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("jars.py:")
    assert "datetime.now() reads the real clock" in note


def test_the_same_case_gives_the_same_trace_in_two_processes(folder: Path) -> None:
    write(folder, f"{CORRECT}\n    for word in {{'a', 'b', 'c'}}:\n        ctx.event('Found', word)")
    request = {"target": "jars.py", "samples": [SAMPLE_OBJECT], "invariants": "", "keeps": [], "do": "digest"}
    case = {
        "seed": 7,
        "faults": [{"fault": "Crash", "after": 0.0, "replica": 0, "request": 4, "when": "after"}],
        "lateFaults": [],
        "replicas": 2,
        "pauses": [0.3, 2.0],
        "samples": None,
        "change": True,
        "ending": "delete",
        "order": None,
    }
    digests = {worker({**request, "case": case}, folder) for _ in range(3)}
    assert len(digests) == 1
    assert worker({**request, "case": {**case, "seed": 8}}, folder) not in digests


SAMPLE_OBJECT = {
    "apiVersion": "proving.example.com/v1",
    "kind": "Jar",
    "metadata": {"name": "honey"},
    "spec": {"size": 1},
}


def worker(request: object, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kubewright.cli.prove.worker"],
        input=json.dumps(request).encode(),
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=True,
    )
    found: str = json.loads(done.stdout)["digest"]
    assert len(found) == 64
    return found
