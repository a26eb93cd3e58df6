"""What simulated containers do with their commands."""

import subprocess
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devcluster.simulated_commands import PROGRAMS, SimulatedRun, simulate


def ends(seconds: float, code: int = 0) -> SimulatedRun:
    return SimulatedRun(timedelta(seconds=seconds), code)


FOREVER = SimulatedRun(None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sleep", "5"], ends(5)),
        (["/bin/sleep", "1m", "0.5"], ends(60.5)),
        (["sleep", "infinity"], FOREVER),
        (["true"], ends(0)),
        (["/usr/bin/false"], ends(0, 1)),
        (["tail", "-f", "/dev/null"], FOREVER),
        (["tail", "/dev/null"], None),
        (["/pause"], FOREVER),
        (["busybox", "sleep", "3"], ends(3)),
        (["tini", "--", "sh", "-c", "exit 2"], ends(0, 2)),
        (["bash", "-ec", "false; sleep 5"], ends(0, 1)),
        (["bash", "-euo", "pipefail", "-c", "false | true; sleep 5"], ends(0, 1)),
        (["bash", "-c", "false | true; sleep 5"], ends(5)),
        (["env", "CODE=4", "sh", "-c", "exit $CODE"], ends(0, 4)),
        (["sleep", "$(SECONDS_TO_SLEEP)"], ends(7)),
        (["./server", "--port=80"], None),
        (["sh", "run.sh"], None),
        ([], None),
    ],
)
def test_a_command_line_is_simulated_or_unknown(words: list[str], expected: SimulatedRun | None) -> None:
    assert simulate(words, {"SECONDS_TO_SLEEP": "7"}) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sleep 5; exit 3", ends(5, 3)),
        ("sleep 1m && exit 2", ends(60, 2)),
        ("false || exit 4", ends(0, 4)),
        ("false && ./unknown; exit 5", ends(0, 5)),
        ("exit 6; ./unknown", ends(0, 6)),
        ("true && ./unknown", None),
        ("set -e\nfalse\nsleep 5", ends(0, 1)),
        ("set -e\nfalse || true\nsleep 5", ends(5)),
        ("while true; do echo still here; sleep 1; done", FOREVER),
        ("until false; do sleep 1; done", FOREVER),
        ("while true; do if true; then break; fi; done; exit 9", ends(0, 9)),
        ("go=true; while $go; do go=false; done", None),
        ("for part in a b c; do sleep 2; done", ends(6)),
        ("if false; then sleep 5; elif true; then exit 7; else exit 8; fi", ends(0, 7)),
        ("if ./unknown; then exit 1; fi", None),
        ("n=3; sleep $n; exit ${n}", ends(3, 3)),
        ("exit $UNKNOWN", None),
        ("echo $(date); exit 1", None),
        ("false; exit $?", ends(0, 1)),
        ("sleep 5 & sleep 2; wait; exit 1", ends(5, 1)),
        ("tail -f /var/log/app & exit 2", ends(0, 2)),
        ("sleep 1 | sleep 3", ends(3)),
        ("exec sleep 4", ends(4)),
        ("trap 'exit 0' TERM; sleep 3600", ends(3600)),
        ("trap 'exit 5' EXIT; exit 1", None),
        ("echo working > /tmp/log 2>&1; sleep 2", ends(2)),
        ("echo ';' exit 5; echo '#'; exit 6 # exit 7", ends(0, 6)),
        ("echo 'two\nlines'; exit 2", ends(0, 2)),
        ("(exit 3)", None),
        ("echo 'no end", None),
    ],
)
def test_a_script_is_followed_as_a_shell_would(script: str, expected: SimulatedRun | None) -> None:
    assert simulate(["sh", "-c", script], {}) == expected


def test_users_add_programs_to_the_table() -> None:
    table = {**PROGRAMS, "migrate": "sleep 3", "manage.py migrate": "sleep 2; exit 1", "loop": "loop"}
    assert simulate(["/app/migrate", "--all"], {}, table) == ends(3)
    assert simulate(["manage.py", "migrate"], {}, table) == ends(2, 1)
    assert simulate(["manage.py", "serve"], {}, table) is None
    assert simulate(["sh", "-c", "migrate && exit 4"], {}, table) == ends(3, 4)
    assert simulate(["loop"], {}, table) is None


_COMMANDS = st.sampled_from(
    ["true", "false", "echo hi", "sleep 0", "exit 3", "exit $?", ":", "! false", "x=1", "wait"]
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["; ", " && ", " || ", "\n"]), inner).map("".join),
        st.tuples(inner, inner, inner).map(lambda parts: "if {}; then {}; else {}; fi".format(*parts)),
        inner.map(lambda body: f"for i in a b; do {body}; done"),
        inner.map(lambda body: f"while true; do {body}; break; done"),
        inner.map(lambda body: f"set -e; {body}"),
    )


@given(script=st.recursive(_COMMANDS, _compound, max_leaves=8))
def test_exit_codes_are_those_of_a_real_shell(script: str) -> None:
    found = simulate(["sh", "-c", script], {})
    real = subprocess.run(["sh", "-c", script], stdout=subprocess.DEVNULL, timeout=60, check=False)
    assert found is not None
    assert (found.run_time, found.exit_code) == (timedelta(0), real.returncode)
