"""What starting an operator loads: nothing that it does not use.

The start of an operator is mostly the import of modules, so their number is limited here: a count does not depend on the
machine. If a limit fails, look at what is new in the output before you raise it.
"""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.cli.app import cli
from kubewright.cli.run.arguments import RunOptions, parse_arguments

# An embedded cluster, CRDs and their rules, certificates and metrics pages are for those who ask for them; click, YAML and
# what reads them are for people at a terminal.
UNUSED = (
    "kubewright.cli.app",
    "kubewright.cli.run.command",
    "kubewright.client.exec_plugin",
    "kubewright.client.oidc",
    "kubewright.devcluster",
    "kubewright.devserver",
    "kubewright.documents",
    "kubewright.generate",
    "kubewright.journal.recording",
    "kubewright.replay",
    "kubewright.scaffold",
    "kubewright.schema",
    "kubewright.testing",
    "kubewright.ui",
    "kubewright.webhook.admission",
    "kubewright.webhook.server",
    "kubewright.why",
    "kubewright.api.builtin.core_v1.pods",
    "aiohttp",
    "click",
    "cryptography",
    "difflib",
    "email",
    "http.client",
    "hypothesis",
    "prometheus_client",
    "pydantic",
    "pygments",
    "pytest",
    "rich",
    "sysconfig",
    "tempfile",
    "tomllib",
    "yaml",
)
MOST_OF_OURS = 188
MOST_DECLARED = 72
"""Modules of kubewright in a running operator, and after `import kubewright`."""

OPERATOR = """
import sys
import kubewright as kw
from kubewright.api.builtin import core_v1

@kw.controller(core_v1.ConfigMap)
async def note(subject: core_v1.ConfigMap, ctx: kw.Context) -> None: ...

print(*sys.modules, file=sys.stderr)
"""
RUN = "from kubewright.cli import main; main()"


def loaded_by(program: str, *arguments: str) -> set[str]:
    """Return the modules that a program has loaded when it prints them to standard error."""
    command = [sys.executable, "-c", program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return set(result.stderr.split())


def ours(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.split(".")[0] == "kubewright")


@pytest.fixture
def modules_of_a_run(tmp_path: Path) -> set[str]:
    """Return what is loaded when a deployed operator, started by its image's command, has been declared."""
    operator = tmp_path / "counted.py"
    operator.write_text(OPERATOR)
    return loaded_by(RUN, "run", str(operator), "--leader-elect", "--log-format=json", "--metrics-secure")


def test_a_deployed_operator_loads_nothing_that_only_other_commands_use(modules_of_a_run: set[str]) -> None:
    assert "kubewright.manager" in modules_of_a_run
    assert not modules_of_a_run.intersection(UNUSED)


def test_a_deployed_operator_loads_few_modules(modules_of_a_run: set[str]) -> None:
    found = ours(modules_of_a_run)
    assert len(found) <= MOST_OF_OURS, found


def test_importing_kubewright_loads_few_modules() -> None:
    modules = loaded_by("import sys, kubewright; print(*sys.modules, file=sys.stderr)")
    assert "kubewright.controller" in modules
    assert not modules.intersection((*UNUSED, "asyncio", "ssl", "kubewright.client", "kubewright.manager"))
    assert len(ours(modules)) <= MOST_DECLARED, ours(modules)


def options_of_click(words: list[str]) -> RunOptions:
    """Return what click makes of the arguments of `kubewright run`."""
    command = cli.get_command(click.Context(cli), "run")
    assert command is not None
    given = command.make_context("run", words).params
    return RunOptions(
        **{name: value for name, value in given.items() if name in RunOptions.__struct_fields__}
    )


ADDRESSES = st.sampled_from(["0", ":8080", "127.0.0.1:0"])
NAMES = st.from_regex(r"[a-z]([a-z0-9]{0,6})", fullmatch=True)
VALUES = {
    "--kubeconfig": st.just("no-such-file"),
    "--context": st.one_of(NAMES, st.just("")),
    "--leader-election-id": NAMES,
    "--leader-election-namespace": NAMES,
    "--shards": st.sampled_from(["1", "8", "8,namespace", "8,uid", "0", "many"]),
    "--metrics-bind-address": ADDRESSES,
    "--health-probe-bind-address": ADDRESSES,
    "--webhook-bind-address": ADDRESSES,
    "--journal-limit": st.sampled_from(["0", "1Mi", "32Mi", "1", "much"]),
    "--log-format": st.sampled_from(["text", "json", "xml"]),
    "--namespace": st.one_of(NAMES, st.just(""), st.just("a,b"), st.just("Not-A-Name")),
    "-n": NAMES,
    "--webhook-reach": st.sampled_from(["service", "url"]),
}
FLAGS = st.sampled_from(
    ["--leader-elect", "--metrics-secure", "-v", "--verbose", "--dev", "--no-such-option"]
)


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    words: list[list[str]] = [[flag] for flag in draw(st.lists(FLAGS, max_size=2))]
    for name in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4)):
        value = draw(VALUES[name])
        joined = name.startswith("--") and draw(st.booleans())
        words.append([f"{name}={value}"] if joined else [name, value])
    words += [[target] for target in draw(st.lists(st.just("operator.py"), max_size=2))]
    return [word for group in draw(st.permutations(words)) for word in group]


@given(words=arguments())
def test_arguments_mean_the_same_with_and_without_click(words: list[str]) -> None:
    found = parse_arguments(["run", *words])
    if found is not None:
        assert found == options_of_click(words)


@pytest.mark.parametrize(
    "words",
    [
        ["operator.py"],
        [
            "my_operator",
            "--leader-elect",
            "--log-format=json",
            "--metrics-bind-address=:8443",
            "--metrics-secure",
        ],
        ["--namespace=a,b", "-n", "c", "my_operator", "--health-probe-bind-address", ":8081"],
        ["my_operator", "--shards", "8,namespace", "--kubeconfig", "no-such-file", "-v"],
    ],
    ids=" ".join,
)
def test_the_arguments_of_a_deployment_are_understood_without_click(words: list[str]) -> None:
    assert parse_arguments(["run", *words]) == options_of_click(words)


@pytest.mark.parametrize(
    "words",
    [
        ["get", "pods"],
        ["run"],
        ["run", "a.py", "b.py"],
        ["run", "a.py", "--help"],
        ["run", "a.py", "--dev"],
        ["run", "a.py", "--shards"],
        ["run", "a.py", "--shards", "none"],
        ["run", "a.py", "--namespace", "Not-A-Name"],
        ["run", "a.py", "--leader-elect=yes"],
        ["run", "--", "a.py"],
    ],
    ids=" ".join,
)
def test_other_arguments_are_left_to_click(words: list[str]) -> None:
    assert parse_arguments(words) is None
